// Shares: one index space over many places.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <weir/share.h>

#include "base/handle.hpp"
#include "base/signal.hpp"
#include "base/spin_lock.hpp"
#include "base/threads.hpp"
#include "core/event.hpp"
#include "core/failure.hpp"
#include "core/unreported.hpp"
#include "runtime/place_set.hpp"
#include "runtime/share_group.hpp"
#include "runtime/waiting.hpp"
#include "sched/chunk_policy.hpp"
#include "sched/items.hpp"
#include "sched/range_set.hpp"
#include "sched/share_counter.hpp"
#include "sched/throughput_meter.hpp"

namespace weir::rt {

class Runtime;

/// Hands out chunks until there are none left.
///
/// The thread that completes a chunk fetches the next one for its place; a share has no thread and
/// no lock of its own. Places publish their state in atomics. A place whose policy takes nothing is
/// idle until a chunk completes anywhere. A counter of chunks and active threads detects the end:
/// the thread that brings it to 0 completes the share.
///
/// With several ranks (ADR 34) each has a share of the same items. Other ranks fetch chunks from
/// the counter of the root (rank 0), report completions to it and send it a request when no items
/// are left. The root represents their places by parts, which it counts until their rank has sent a
/// request and all results.
class Share : private ShareGroup::Listener {
 public:
  /// Enqueues the actions of a chunk. Throws Error.
  using Enqueue = std::function<weir_event(const weir_chunk&)>;

  /// Collective with a fabric.
  Share(Runtime& runtime, const weir_share_options& options, std::string name, Enqueue enqueue,
        ShareGroup::CollectiveJoin& join);
  Share(const Share&) = delete;
  Share& operator=(const Share&) = delete;
  ~Share();
  /// Starts the share after construction: other threads call it from then on. Throws Error.
  void start();
  /// Logs, once each, failures that the program has not seen. Any thread.
  void report_unreported() noexcept;
  /// Waits until the share is complete and no other thread calls it.
  void finish() noexcept;

  /// Returns a description of the options that must be the same on all ranks.
  static std::string describe(const weir_share_options& options);

  Runtime& runtime() const noexcept { return runtime_; }
  const std::string& name() const noexcept { return name_; }

  // Called by the program. They throw Error.
  WaitResult wait(std::int64_t timeout_ns);
  void cancel();
  /// Waits for the end of the share until the time-out, then cancels the rest.
  void finish_or_cancel(std::int64_t timeout_ns) noexcept;
  void get_info(weir_share_info& info, weir_share_part* parts, std::size_t count);

 private:
  static constexpr std::size_t kDepth = 2;  ///< maximum number of chunks that a place has at once

  struct Part;
  using Range = ItemRange;
  /// A chunk of a place.
  struct Chunk : Waiter {
    Part* part = nullptr;
    Range range{0, 0};         ///< no items: free
    std::uint64_t number = 0;  ///< number of the visit that took it
    std::size_t way = 0;
    bool cut = false;  ///< enqueued during a cancellation: may be cancelled in part
  };

  /// A fetch-and-add on the counter of the root. If it completes before start() has returned, the
  /// starting thread handles the result.
  struct CounterFetch final : Completion {
    Part* part = nullptr;
    std::uint64_t count = 0, old = 0;
    Outcome outcome;
    sys::Atomic<bool> one_side_done{false};  ///< start or completion has happened

    void completed(std::int64_t found, const Outcome& ended) noexcept override;
  };

  /// A place and its state.
  struct Part {
    Share* share = nullptr;
    std::size_t index = 0;  ///< index among the places of all ranks
    Rank rank = 0;
    std::string name;
    weir_place* place = nullptr;  ///< null: of another rank
    weir_stream* stream = nullptr;

    SpinLock lock;  // guards the fields below, except atomics
    std::array<Chunk, kDepth> chunks;
    std::size_t in_flight = 0;
    ThroughputMeter meter;
    std::size_t untried = 0;  ///< number of ways to try, from the last
    std::uint64_t trial = 0;  ///< items of a chunk for trying a way; 0: none is tried
    std::size_t way = 0;      ///< the best way so far
    double way_speed = 0;
    std::uint64_t done = 0;
    double work_done = 0;
    std::int64_t busy_since_ns = 0, busy_ns = 0;
    std::vector<SharePeer> peers;  ///< for size_of_next()

    CounterFetch counter_fetch;  ///< on other ranks than the root
    bool fetching = false;       ///< the fetch is in flight, or the root was sent a request
    // On the root, of a place of another rank.
    bool asked = false, counted = false;
    std::uint64_t changed = 0;  ///< number of the last change of its report
    std::uint64_t round = 0;    ///< round of its rank in which it last took a chunk
    std::uint64_t calls = 0;    ///< fetches, including one in flight that is not a visit yet
    std::uint64_t ended = 0;    ///< completed chunks that it has reported

    // For the other places.
    sys::Atomic<double> speed{0};
    sys::Atomic<double> pending{0}, current{0};  ///< work of its chunks, and of the current chunk
    sys::Atomic<std::int64_t> since_ns{0};       ///< start of the current chunk
    sys::Atomic<std::uint64_t> grain{1}, visits{0};
    sys::Atomic<bool> idle{false}, lost{false};
  };

  // Creation and destruction.
  void begin(ShareGroup::CollectiveJoin& join);
  void add_parts();
  void open_stream(Part& part);
  void close_parts() noexcept;
  bool tries_ways() const noexcept;

  // Any thread that holds a count.
  void advance(Part& part, bool forced) noexcept;
  std::size_t depth(const Part& part) const noexcept;
  Chunk* fetch_chunk(Part& part, bool forced) noexcept;
  Chunk& take(Part& part, const Range& range) noexcept;
  std::uint64_t size_of_next(Part& part) noexcept;
  Range next_range(std::uint64_t taken) noexcept;
  bool fetch(std::uint64_t count, Range& range) noexcept;
  double work_of(const Range& range) const noexcept {
    return items_.work(range.first, range.first + range.count);
  }
  SharePeer peer_of(const Part& part, std::int64_t now_ns) const noexcept;
  /// Whether the published state of a place is one visit old, so that the place has progressed
  /// since.
  bool has_stale_status(const Part& part) const noexcept { return !is_root() && !is_own(part); }
  double estimate_unreported(std::int64_t now_ns) const noexcept;
  bool hand_out(Chunk& chunk) noexcept;
  void account(Chunk& chunk, weir_status status, const FailureRef& failure) noexcept;
  void measure(Part& part, const Chunk& chunk, std::int64_t now_ns) noexcept;
  void publish(Part& part) noexcept;
  bool note_done(const Range& range, std::span<const std::byte> results) noexcept;
  void give_back(const Range& range) noexcept;
  void fail_with(weir_status status, FailureRef failure) noexcept;
  void wake_idle() noexcept;
  void release() noexcept;
  void cancel_chunks();
  bool wait_until_over(std::int64_t deadline_ns);
  bool any_place_takes_more() noexcept;
  static void on_end(Waiter& waiter, weir_status status, const FailureRef& failure);

  // Several ranks.
  bool is_root() const noexcept { return group_ == nullptr || group_->rank() == 0; }
  bool is_own(const Part& part) const noexcept { return part.place != nullptr; }
  /// Takes a count for the caller, which release() releases.
  void enter() noexcept;
  template <class Say>
  void send(const Say& say) noexcept;
  void broadcast_status() noexcept;
  std::span<std::byte> results_of(const Range& range) const noexcept;
  PartReport report_of(Part& part) noexcept;
  void update(Part& part, const PartReport& report) noexcept;
  // On other ranks than the root.
  void fetch_for(Part& part) noexcept;
  bool fetched(Part& part) noexcept;
  void raise_counter(std::uint64_t taken) noexcept;
  void accept(Part& part, const Range& range) noexcept;
  void send_end(Part& part, const Range& range, weir_status status,
                const FailureRef& failure) noexcept;
  void send_left() noexcept;
  void detach() noexcept;
  // On the root.
  bool sends_boards() const noexcept {
    return group_ != nullptr && is_root() && one_sided_ && policy_->uses_peer_speeds();
  }
  void note_change(Part& part) noexcept;
  bool begins_round(Part& part) noexcept;
  void send_board(Rank rank) noexcept;
  void assign_to(Part& part, bool forced) noexcept;
  void settle(Part& part) noexcept;
  void find_missing() noexcept;
  bool dismiss() noexcept;
  void remove_peer(Rank rank, bool lost) noexcept;

  void on_taken(std::size_t part, const PartReport& report) noexcept override;
  void on_done(std::size_t part, const PartReport& report, const ItemRange& range,
               std::span<const std::byte> results) noexcept override;
  void on_returned(std::size_t part, const PartReport& report, const ItemRange& range,
                   weir_status status, std::string_view why) noexcept override;
  void on_request(std::size_t part, const PartReport& report) noexcept override;
  void on_failure(Rank rank, weir_status status, std::string_view why) noexcept override;
  void on_left(Rank rank) noexcept override;
  void on_assigned(std::size_t part, const ItemRange& range) noexcept override;
  void on_counter(std::uint64_t taken) noexcept override;
  void on_peer_report(const PeerReport& peer) noexcept override;
  void on_complete(weir_status status, std::string_view why) noexcept override;
  void on_rank_lost(Rank rank, const std::string& why) noexcept override;

  Runtime& runtime_;
  const std::string name_;
  const std::string chunks_;
  const Items items_;
  const std::size_t ways_;
  const Enqueue enqueue_;
  const bool one_sided_;
  std::byte* const results_;
  const std::vector<std::size_t> result_offsets_;
  std::unique_ptr<ShareCounter> counter_;  ///< on other ranks a copy of the known value
  SpinLock counter_lock_;                  ///< on other ranks: guards updates of that
  const PlaceSet places_;
  std::unique_ptr<ShareGroup> group_;  ///< null: one rank
  std::unique_ptr<ChunkPolicy> policy_;
  std::deque<Part> parts_;  // a deque: elements do not move
  std::int64_t started_ns_ = 0;

  /// Counts chunks, counter fetches and active threads; at the root also places of other ranks that
  /// may hold items, and ranks that have not left; at other ranks one for "the share is not
  /// complete".
  sys::Atomic<std::uint64_t> in_flight_{1};
  sys::Atomic<std::uint64_t> done_{0};
  sys::Atomic<bool> stopped_{false};    ///< no more chunks are taken
  sys::Atomic<bool> cancelled_{false};  ///< the actions of chunks are cancelled, too
  sys::Atomic<std::int64_t> ended_ns_{-1};
  Signal complete_signal_;

  SpinLock returned_lock_;
  std::vector<Range> returned_;  ///< items of places that failed
  sys::Atomic<std::uint64_t> returned_items_{0};

  SpinLock failure_lock_;
  weir_status status_ = WEIR_STATUS_OK;  ///< of the failure that ended the share
  FailureRef failure_;
  FailureRef last_loss_;  ///< the last failure of a place
  /// A failure that a stream reported to a call that then timed out.
  WaitResult unreported_failure_;
  Unreported unreported_;

  SpinLock marks_lock_;
  RangeSet marks_;  ///< on the root: completed items
  struct PeerState {
    bool departed = false, awaited = false;
    // Of the thread that receives messages.
    std::uint64_t round = 0;  ///< starts when a place takes its second chunk in the last one
    /// Number of the last change that a status broadcast has sent to the rank.
    std::uint64_t told = 0;
  };
  sys::Atomic<std::uint64_t> changes_{0};  ///< on the root: number of changes of reports
  SpinLock peers_lock_;
  std::vector<PeerState> peers_;  ///< on the root: the ranks
  sys::Atomic<bool> failed_{false}, announced_{false}, dismissed_{false};
  /// Several ranks: the share has succeeded, as the root has reported.
  sys::Atomic<bool> complete_{false};
  sys::Atomic<bool> attached_{false};  ///< on other ranks than the root
};

}  // namespace weir::rt

/// The public handle.
struct weir_share final : weir::rt::Handle<weir_share>, weir::rt::Share {
  static constexpr const char* kNoun = "share";
  using Share::Share;
  ~weir_share() override { finish(); }
};
