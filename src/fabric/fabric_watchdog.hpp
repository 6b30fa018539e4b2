// Reports what the ranks wait for when no messages arrive any more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/threads.hpp"
#include "fabric/port.hpp"

namespace weir::rt {

/// Detects a stall: a thread of this rank has waited for other ranks for the limit while no message
/// arrived. It then prints on standard error what each rank waits for, once per stall and again
/// whenever that changes.
///
/// Each rank answers the questions of the others on the thread that makes progress. A rank that has
/// a limit asks them from a thread of its own.
class FabricWatchdog final : private Listener {
 public:
  /// limit_ns 0: answers only. Throws Error if it cannot create its thread.
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
  /// A rank's description of its waits.
  struct Answer {
    bool received = false;
    std::string waits;  ///< in the format of WaitRegistry::State::waits
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
  std::uint64_t movement_ = 0;  // at the last check
  std::int64_t moved_ns_ = 0;   ///< when it last changed
  std::int64_t began_ns_ = 0;   ///< start of the current stall
  std::int64_t asked_ns_ = 0;
  std::string printed_;  ///< last report of the current stall

  sys::Mutex mutex_;
  sys::Condition changed_;
  std::uint32_t number_ WEIR_GUARDED_BY(mutex_) = 0;  ///< of the last question
  std::vector<Answer> answers_ WEIR_GUARDED_BY(mutex_);
  bool leaving_ WEIR_GUARDED_BY(mutex_) = false;
  std::optional<sys::Thread> thread_;  // last: it uses the members above
};

}  // namespace weir::rt
