// Collective operations: exchanges, reductions, broadcasts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/threads.hpp"
#include "fabric/port.hpp"

namespace weir::rt {

/// Collective operations. All ranks call the same operations in the same order, one thread at a
/// time.
///
/// Rank 0 gathers the contributions and sends all of them to all ranks. All ranks then compute from
/// the same bytes in the same order, so that results have the same bits. Rank 0 also detects a rank
/// that calls another operation, is lost, or has failed locally, and reports it to all ranks.
class Collectives final : private Listener {
 public:
  explicit Collectives(Port& port);
  Collectives(const Collectives&) = delete;
  Collectives& operator=(const Collectives&) = delete;
  ~Collectives();

  using Bytes = std::vector<std::byte>;

  /// Returns the contribution of each rank, by rank. `what` describes the operation ("broadcast of
  /// 8 bytes from rank 0") and must be the same on all ranks. Throws Error; every later collective
  /// operation then fails, except after {busy}, which a call inside a listener throws before it
  /// does anything.
  std::vector<Bytes> exchange(const std::string& what, std::span<const std::byte> contribution,
                              std::int64_t timeout_ns);

 private:
  enum class Kind : std::uint32_t;
  struct Header;
  struct Call {
    std::string what;
    Bytes bytes;
  };
  struct Result {
    weir_status status = WEIR_STATUS_OK;
    std::string message;
    Bytes bytes;
  };

  void call(std::uint32_t number, const std::string& what, std::span<const std::byte> contribution);
  void on_message(Rank from, std::span<const std::byte> message) noexcept override;
  void on_rank_lost(Rank rank, const std::string& why) noexcept override;
  template <class Act>
  void attempt(const Act& act) noexcept;
  void take_call(Rank from, const Header& header, std::span<const std::byte> rest);
  void take_result(const Header& header, std::span<const std::byte> rest);
  void give_up() noexcept;
  void answer_if_complete();
  const std::string* due() const;
  std::string why_blocked(const std::string& what) const;
  void answer(const Result& result);
  std::string difference() const;
  std::vector<Bytes> unpack(const Bytes& bytes) const;

  Port& port_;
  sys::Mutex mutex_;
  std::vector<std::map<std::uint32_t, Call>> calls_;  ///< on rank 0, by rank and operation number
  std::vector<std::string> given_up_;                 ///< on rank 0, by rank: why it gave up
  std::map<std::uint32_t, Result> results_ WEIR_GUARDED_BY(mutex_);
  std::string lost_ WEIR_GUARDED_BY(mutex_);  ///< why no more results will arrive
  std::uint32_t number_ = 0;                  ///< number of the next operation of this rank
  std::uint32_t answered_ = 0;                ///< operations that rank 0 has answered
  std::string broken_;                        ///< why an operation failed; "": none has
};

}  // namespace weir::rt
