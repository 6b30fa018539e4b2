// Rank 0's end of Channel::rank.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.hpp"
#include "backends/rank/rank_wire.hpp"
#include "base/threads.hpp"
#include "fabric/port.hpp"

namespace weir::rt {

/// Receives the completions of the jobs of a place. Called on the progress thread; must not wait.
class RankPlaceSink {
 public:
  /// Reads the completed jobs of a RankMessageKind::done message, from after the place number.
  /// Throws Error. On the port's own thread a call of on_progress() follows.
  virtual void done(WireReader& message) = 0;
  /// Returns the completed jobs to the feed, without the progress lock.
  virtual void on_progress() noexcept = 0;
  /// The rank of the place is lost.
  virtual void on_rank_lost(const Outcome& why) noexcept = 0;

  /// Keeps the place from being destroyed.
  void pin() noexcept { pins_.fetch_add(1); }
  void unpin() noexcept { pins_.fetch_sub(1); }
  /// Waits until no thread has the place pinned. The caller prevents new pins.
  void wait_for_pins() const noexcept {
    while (pins_.load() > 0) sys::yield();
  }

 protected:
  ~RankPlaceSink() = default;

 private:
  sys::Atomic<std::uint32_t> pins_{0};
};

/// All requests of rank 0 to the ranks that serve it, through one port. Any thread.
class RankClient final : private Listener, private ProgressHook {
 public:
  /// Returns the client of a port, which must outlive it. A port has at most one client at a time.
  static std::shared_ptr<RankClient> of(Port& port);
  explicit RankClient(Port& port);
  RankClient(const RankClient&) = delete;
  RankClient& operator=(const RankClient&) = delete;
  ~RankClient();

  Port& port() noexcept { return port_; }

  /// Connects to a rank on first use: waits until it serves, and compares clocks. Throws Error.
  void connect(Rank rank);
  /// Returns how far the clock of a connected rank is ahead of this rank's, in nanoseconds.
  std::int64_t clock_ahead_ns(Rank rank) const;

  /// Sends a request: `word`, a request number, and what fill() writes. Waits for the answer and
  /// calls read() with it. Throws Error, including the one in the answer.
  void ask(Rank rank, RankMessageKind word, const std::function<void(WireWriter&)>& fill,
           const std::function<void(WireReader&)>& read);
  /// Sends a message without backpressure: a sender that waits could need a lock of the caller or
  /// have a deadline, and the number of such messages is bounded. Throws Error, {network_error}
  /// when the rank is lost.
  void post(Rank rank, const WireWriter& message);

  /// Returns a new number for a device or place.
  std::uint32_t next_number() noexcept { return numbers_.fetch_add(1, std::memory_order_relaxed); }

  void add_place(std::uint32_t number, Rank rank, RankPlaceSink& place);
  /// When it returns, the place receives no more calls.
  void remove_place(std::uint32_t number) noexcept;

  /// A copy that `rank` makes between a near end, in its own device, and another near end or a far
  /// end, in the memory of rank 0 or in a device of another rank.
  struct Copy {
    Rank rank = 0;
    std::uint32_t device = 0;
    RankCopyEnd source, target;
    Rank owner = 0;  ///< of the far end
    /// Far end in a device of `owner`, which has not lent it as a window yet; null: none.
    RankCopyEnd* lent = nullptr;
    CopySink* sink = nullptr;
    void* token = nullptr;
  };
  /// Requests a copy and returns at once. A far end on rank 0 is a window, which is withdrawn when
  /// the copy is complete.
  void copy(std::unique_ptr<Copy> copy) noexcept;

 private:
  struct PendingRequest;
  struct PlaceEntry {
    Rank rank;
    RankPlaceSink* sink;
  };
  using Copies = std::map<std::uint64_t, std::unique_ptr<Copy>>;

  void on_message(Rank from, std::span<const std::byte> message) noexcept override;
  void on_rank_lost(Rank rank, const std::string& why) noexcept override;
  void on_progress() noexcept override;
  RankPlaceSink* pin_behind(std::uint32_t& number) noexcept;
  void read(Rank from, WireReader& message);
  void take_answer(Rank from, WireReader& message);
  void take_lent(Rank from, WireReader& message);
  void take_copied(Rank from, WireReader& message);
  void end(std::unique_ptr<Copy> copy, Outcome outcome, std::int64_t started_ns,
           std::int64_t ended_ns) noexcept;
  void withdraw(Rank owner, WindowId window) noexcept;
  std::unique_ptr<Copy> take_copy(std::uint64_t number) noexcept;
  void check_copy(std::uint64_t number, Rank from) const;
  void check_alive(Rank rank) const WEIR_REQUIRES(mutex_);
  [[noreturn]] void throw_timeout(Rank rank, std::int64_t waited_ns) const;
  void forget(std::uint64_t question) noexcept;
  std::int64_t measure_clock(Rank rank);

  Port& port_;
  sys::Atomic<std::uint32_t> numbers_{1};
  sys::Mutex connect_mutex_;  ///< held while connecting
  bool done_ = false;         ///< by the port's own thread: jobs have completed

  mutable sys::Mutex mutex_;  // guards the members below
  /// Why a rank is lost; OK: it is not.
  std::vector<Outcome> lost_ WEIR_GUARDED_BY(mutex_);
  std::map<Rank, std::int64_t> clocks_ WEIR_GUARDED_BY(mutex_);  ///< of connected ranks
  std::map<std::uint64_t, PendingRequest*> requests_ WEIR_GUARDED_BY(mutex_);
  std::map<std::uint32_t, PlaceEntry> places_ WEIR_GUARDED_BY(mutex_);
  Copies copies_ WEIR_GUARDED_BY(mutex_);
  std::uint64_t asked_ WEIR_GUARDED_BY(mutex_) = 0, copies_made_ WEIR_GUARDED_BY(mutex_) = 0;
};

}  // namespace weir::rt
