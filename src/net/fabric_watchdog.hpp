// Says what the ranks wait for when nothing comes any more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/threads.hpp"
#include "net/port.hpp"

namespace weir::rt {

/// Prints on standard error, once for each standstill and again when the ranks wait for something
/// else, when a thread of this rank has waited for others for a time and no message has come: what
/// each rank says that it waits for.
///
/// Every rank answers questions of the others, on the thread that moves its port on. One that has a
/// limit asks them, by a thread of its own.
class FabricWatchdog final : private Listener {
 public:
  /// limit_ns 0: only answers. Throws Error when no thread can be had.
  FabricWatchdog(Port& port, std::int64_t limit_ns);
  FabricWatchdog(const FabricWatchdog&) = delete;
  FabricWatchdog& operator=(const FabricWatchdog&) = delete;
  ~FabricWatchdog();

 private:
  enum class Kind : std::uint32_t { question, answer };
  struct Header {
    Kind kind;
    std::uint32_t number;  ///< of the question
  };
  /// What a rank has said of itself.
  struct Answer {
    bool received = false;
    std::string waits;  ///< as WaitRegistry::State
  };

  void on_message(Rank from, std::span<const std::byte> message) noexcept override;
  void on_rank_lost(Rank rank, const std::string& why) noexcept override;
  void answer(Rank to, std::uint32_t number);
  void watch();
  void check(std::int64_t now_ns);
  void print_report(std::int64_t for_ns);
  bool ask();
  bool all_answered() const noexcept WEIR_REQUIRES(mutex_);
  std::string describe(const std::string& own_waits);
  std::string describe_rank(Rank rank, const Answer& answer) const;

  Port& port_;
  const std::int64_t limit_ns_;
  std::uint64_t movement_ = 0;  // when last looked at
  std::int64_t moved_ns_ = 0;   ///< when something had come
  std::int64_t began_ns_ = 0;   ///< the standstill
  std::int64_t asked_ns_ = 0;
  std::string printed_;  ///< of this standstill

  sys::Mutex mutex_;  // of what follows
  sys::Condition changed_;
  std::uint32_t number_ WEIR_GUARDED_BY(mutex_) = 0;  ///< of the last question
  std::vector<Answer> answers_ WEIR_GUARDED_BY(mutex_);
  bool leaving_ WEIR_GUARDED_BY(mutex_) = false;
  std::optional<sys::Thread> thread_;  // last: it uses all of the above
};

}  // namespace weir::rt
