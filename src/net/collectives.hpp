// What all ranks do together: exchanges, reductions, broadcasts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/threads.hpp"
#include "net/port.hpp"

namespace weir::rt {

/// Collective operations. Every rank calls the same ones in the same order, one thread at a time.
///
/// Rank 0 gathers what all contribute and sends all of it to all: every rank has the same bytes and
/// computes from them in the same order, so that results have the same bits. Rank 0 also sees who
/// calls something else, is gone, or has given up because it failed by itself, and all hear of it.
class Collectives final : private Listener {
 public:
  explicit Collectives(Port& port);
  Collectives(const Collectives&) = delete;
  Collectives& operator=(const Collectives&) = delete;
  ~Collectives();

  using Bytes = std::vector<std::byte>;

  /// Returns what each rank contributed, by rank. `what` says what is done, "broadcast of 8 bytes
  /// from rank 0", and must be the same on all. Throws Error, after which nothing collective works
  /// any more; but {busy} inside a listener, where it has done nothing.
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
  std::vector<std::map<std::uint32_t, Call>> calls_;  ///< at rank 0, by rank and number
  std::vector<std::string> given_up_;                 ///< at rank 0, by rank: why
  std::map<std::uint32_t, Result> results_ WEIR_GUARDED_BY(mutex_);
  std::string lost_ WEIR_GUARDED_BY(mutex_);  ///< why there will be no more results
  std::uint32_t number_ = 0;                  ///< of the next operation of this rank
  std::uint32_t answered_ = 0;                ///< operations that rank 0 has answered
  std::string broken_;                        ///< an operation that failed
};

}  // namespace weir::rt
