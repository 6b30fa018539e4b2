// Shares: one index space over many places.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <weir/share.h>

#include "base/handle.hpp"
#include "base/signal.hpp"
#include "base/spin_lock.hpp"
#include "base/threads.hpp"
#include "core/event.hpp"
#include "core/failure.hpp"
#include "runtime/place_set.hpp"
#include "runtime/waiting.hpp"
#include "sched/chunk_policy.hpp"
#include "sched/items.hpp"
#include "sched/share_counter.hpp"
#include "sched/speedometer.hpp"

namespace weir::rt {

class Runtime;

/// Hands out chunks until there are none left.
///
/// The thread that completes a chunk visits the counter for its place; there is no thread and no
/// lock of the share. What a place publishes of itself is in atomics, which others read as they
/// are. A place whose policy wants nothing now rests, until a chunk ends anywhere. Chunks in
/// flight, and threads at work for the share, are counted: whoever makes that 0 sees to the rest.
class Share {
 public:
  /// Enqueues a chunk; throws Error.
  using Enqueue = std::function<weir_event(const weir_chunk&)>;

  Share(Runtime& runtime, const weir_share_options& options, std::string name, Enqueue enqueue);
  Share(const Share&) = delete;
  Share& operator=(const Share&) = delete;
  /// Waits for everything.
  ~Share();

  Runtime& runtime() const noexcept { return runtime_; }
  const std::string& name() const noexcept { return name_; }

  // The program. They throw Error.
  WaitResult wait(std::int64_t timeout_ns);
  void cancel();
  /// Waits, and cancels what there is when the time is over.
  void outlast(std::int64_t timeout_ns) noexcept;
  void get_info(weir_share_info& info, weir_share_part* parts, std::size_t count);

 private:
  static constexpr std::size_t kDepth = 2;  ///< chunks that a place has at once

  struct Part;
  struct Range {
    std::uint64_t first, count;
  };
  /// What a place has.
  struct Chunk : Waiter {
    Part* part = nullptr;
    Range range{0, 0};         ///< of no items: free
    std::uint64_t number = 0;  ///< of the visit that brought it
    std::size_t way = 0;
    bool cut = false;  ///< its actions may have been enqueued before and after they were cancelled
  };

  /// A place, and what it has.
  struct Part {
    Share* share = nullptr;
    std::size_t index = 0;
    weir_place* place = nullptr;
    weir_stream* stream = nullptr;

    SpinLock lock;  // of what follows, but the atomics
    std::array<Chunk, kDepth> chunks;
    std::size_t in_flight = 0;
    Speedometer meter;
    std::size_t untried = 0;  ///< ways that are to be tried, from the last
    std::size_t way = 0;      ///< the best so far
    double way_speed = 0;
    std::uint64_t done = 0;
    double work_done = 0;
    std::int64_t busy_since_ns = 0, busy_ns = 0;

    // For the others.
    sys::Atomic<double> speed{0};
    sys::Atomic<double> pending{0}, current{0};  ///< work of its chunks, and of the one it is at
    sys::Atomic<std::int64_t> since_ns{0};       ///< when that began
    sys::Atomic<std::uint64_t> grain{1}, visits{0};
    sys::Atomic<bool> resting{false}, lost{false};
  };

  // Making and ending.
  void add_part(weir_place& place);
  void close_parts() noexcept;
  bool tries_ways() const noexcept;

  // Any thread that is counted.
  void advance(Part& part, bool forced) noexcept;
  Chunk* visit(Part& part, bool forced) noexcept;
  std::uint64_t size_of_next(const Part& part) noexcept;
  Range next_range(std::uint64_t taken) noexcept;
  bool fetch(std::uint64_t count, Range& range) noexcept;
  double work_of(const Range& range) const noexcept {
    return items_.work(range.first, range.first + range.count);
  }
  SharePeer peer_of(const Part& part, std::int64_t now_ns) const noexcept;
  bool hand_out(Chunk& chunk) noexcept;
  void account(Chunk& chunk, weir_status status, const FailureRef& failure) noexcept;
  void measure(Part& part, const Chunk& chunk, std::int64_t now_ns) noexcept;
  void publish(Part& part) noexcept;
  void give_back(const Range& range) noexcept;
  void fail_with(weir_status status, FailureRef failure) noexcept;
  void wake_resting() noexcept;
  void release() noexcept;
  bool anybody_takes_more() noexcept;
  static void on_end(Waiter& waiter, weir_status status, const FailureRef& failure);

  Runtime& runtime_;
  const std::string name_;
  const std::string chunks_;
  const Items items_;
  const std::size_t ways_;
  const Enqueue enqueue_;
  const std::unique_ptr<ShareCounter> counter_;
  const PlaceSet places_;
  const std::unique_ptr<ChunkPolicy> policy_;
  std::deque<Part> parts_;  // they do not move
  const std::int64_t started_ns_;

  sys::Atomic<std::uint64_t> in_flight_{1};  ///< chunks, and the thread that starts
  sys::Atomic<std::uint64_t> done_{0};
  sys::Atomic<bool> stopped_{false};    ///< no more chunks
  sys::Atomic<bool> cancelled_{false};  ///< and the actions of those that there are
  sys::Atomic<std::int64_t> ended_ns_{-1};
  Signal over_;

  SpinLock returning_;
  std::vector<Range> returned_;  ///< of places that failed
  sys::Atomic<std::uint64_t> returned_items_{0};

  SpinLock failing_;
  weir_status status_ = WEIR_STATUS_OK;  ///< of the failure that ended the share
  FailureRef failure_;
  FailureRef last_loss_;  ///< of a place
};

}  // namespace weir::rt

/// The public handle.
struct weir_share final : weir::rt::Handle<weir_share>, weir::rt::Share {
  static constexpr const char* kNoun = "share";
  using Share::Share;
};
