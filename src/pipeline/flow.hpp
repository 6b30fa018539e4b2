// A running pipeline: a state machine; the threads that run it belong to the caller.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <weir/pipeline.h>

#include "base/error.hpp"
#include "base/handle.hpp"
#include "base/threads.hpp"
#include "pipeline/bell.hpp"
#include "pipeline/flow_graph.hpp"
#include "pipeline/flow_worker.hpp"
#include "pipeline/retained_items.hpp"
#include "pipeline/tunnel.hpp"

namespace weir::rt {

/// The tunnels, stages and workers of a pipeline.
///
/// A worker takes items in this order: its own buffers, downstream stages first; rings, downstream
/// first; sources. Most items therefore stay with the worker that made them. When other workers are
/// idle it moves the older half of its items to the ring. It takes nothing from a ring for a stage
/// while it buffers what that stage has put for later stages: rings fill when these are slow, and
/// producers wait (backpressure).
///
/// Termination. A worker without work first checks for the end, so that the worker with the last
/// item ends the pipeline itself: a component of stages ends when all its producers have ended and
/// its counts are balanced(). One thread checks at a time; another that arrives sets a flag, and
/// the checker repeats. If the program is notified of ends, busy workers check periodically.
///
/// Sleeping. A worker announces that it sleeps, checks every source of work once more, and sleeps.
/// A thread that changes one of these wakes a worker.
class Flow {
 public:
  Flow(std::string name, const weir_pipeline_options& options);
  Flow(const Flow&) = delete;
  Flow& operator=(const Flow&) = delete;
  ~Flow();

  const std::string& name() const noexcept { return name_; }

  // Building. They throw Error.
  weir_tunnel* add_tunnel(const weir_tunnel_options& options);
  /// Adds a stage to a group, an index into the argument of seal(). With an executor, which must
  /// outlive all work, workers of the group only move the stage's items.
  void add_stage(const weir_stage_options& options, std::size_t group,
                 OffloadExecutor* executor = nullptr);
  /// Sets virtual time: pass_time() advances it and returns whether an event happened, clock()
  /// returns nanoseconds. Before seal().
  void let_time_pass(std::function<bool()> pass_time, std::function<std::int64_t()> clock) {
    pass_time_ = std::move(pass_time);
    clock_ = std::move(clock);
  }
  weir_feed* open_feed(Tunnel& tunnel);
  /// Checks the shape and creates the workers: group_workers[i] in group i.
  void seal(const std::vector<std::size_t>& group_workers);
  bool sealed() const noexcept { return sealed_.load(std::memory_order_acquire); }

  // Running.
  std::size_t workers() const noexcept { return workers_.size(); }
  std::size_t first_worker(std::size_t group) const noexcept { return groups_[group].first_worker; }
  /// Runs a worker until the pipeline ends or the deadline passes, for at least one step. One
  /// thread at a time for each worker.
  void work(std::size_t worker, std::int64_t deadline_ns = sys::kNever) noexcept;
  void cancel() noexcept {
    const ScopedVisit visit(*this);
    stop(WEIR_STATUS_CANCELLED, "the pipeline was cancelled");
  }
  /// Fails the pipeline, unless it has ended.
  void stop(weir_status status, const char* message) noexcept;
  /// Called by an executor when a batch is complete. Reports a failed batch at once, because all
  /// workers may be in calls that only the end of the pipeline ends.
  void on_batch_complete(Stage& stage, std::size_t slot) noexcept;
  /// Waits until no code of the program runs. Returns false at the deadline.
  bool wait(std::int64_t deadline_ns);
  /// The outcome, valid after wait() has returned true.
  const Outcome& outcome() const noexcept { return outcome_; }
  /// Notes that the outcome has been reported to the program.
  void mark_reported() noexcept { reported_.store(true); }
  /// Logs an unreported failure, once.
  void report_unreported() noexcept;

  // Retained items. They throw Error.
  weir_item* keep(StageCall& call, std::size_t index);
  /// Checks the handle, too: the pipeline of the item may have been destroyed.
  static void complete(weir_item* item);

  // Feeds. They throw Error. put() sets the number of items put, also when it throws.
  void put(weir_feed& feed, const void* items, std::size_t count, std::int64_t deadline_ns,
           std::size_t& put);
  void next_epoch(weir_feed& feed);
  /// Closes the feed and retires its handle.
  void close(weir_feed& feed) noexcept;

  void get_info(weir_pipeline_info& info, weir_stage_info* stages, std::size_t count);
  /// Fills the state of the stage or tunnel with a number. From the first get_stage() on latencies
  /// are sampled. They throw Error.
  void get_stage(std::size_t number, weir_stage_state& state);
  void get_tunnel(std::size_t number, weir_tunnel_state& state);
  /// Names the stages with items that are not complete: "stage 'a' has 3 items, stage 'b' 1".
  std::string holders();
  /// Whether it has started and has not ended.
  bool running() const noexcept { return sealed() && !ended(); }
  /// Grows with every item that is put or complete; 0 before the start.
  std::uint64_t movement() noexcept;

 private:
  enum State : std::uint32_t { kOpen, kEnded, kStopping, kStopped };

  struct Component {
    std::vector<Stage*> stages;
    std::vector<std::size_t> producers;  ///< components
    bool over = false;                   ///< written by the checker only
  };

  /// Counts a thread in complete(), close(), cancel() or a blocking put(). Such a call may end the
  /// pipeline, and the thread that waits for the end may destroy it; the destructor waits for this
  /// count.
  class ScopedVisit {
   public:
    explicit ScopedVisit(Flow& flow) noexcept : flow_(flow) {
      flow_.visiting_.fetch_add(1, std::memory_order_acq_rel);
    }
    ScopedVisit(const ScopedVisit&) = delete;
    ScopedVisit& operator=(const ScopedVisit&) = delete;
    ~ScopedVisit() { flow_.visiting_.fetch_sub(1, std::memory_order_release); }

   private:
    Flow& flow_;
  };

  weir_stage_info info_of(const Stage& stage);
  std::size_t workers_of(const Stage& stage) const noexcept;
  std::uint64_t elapsed_ns() const noexcept;
  std::int64_t now_ns() const noexcept { return clock_ ? clock_() : sys::now_ns(); }
  /// Whether latencies are sampled.
  bool sampling() const noexcept { return sampling_.load(std::memory_order_relaxed); }
  [[noreturn]] void fail_put(weir_feed& feed, std::size_t left);
  void retire(FeedCounters& own) noexcept WEIR_REQUIRES(feeds_mutex_);
  ItemTag tag_of(FeedCounters& feed, std::uint64_t epoch) const noexcept;

  // Building.
  void refuse_when_sealed(const char* what) const;
  void check_shape() const;
  std::vector<std::vector<std::size_t>> edges() const;
  void check_fed(const std::vector<std::vector<std::size_t>>& edges, const FlowShape& shape) const;
  void check_batches(const FlowShape& shape) const;
  void make_components(const std::vector<std::vector<std::size_t>>& edges, const FlowShape& shape);
  std::unique_ptr<FlowWorker> make_worker(WorkerGroup& group);
  static void make_ordered(Stage& stage);
  void make_offloaded(Stage& stage, OffloadExecutor& executor);
  static void make_room(const Stage& stage, const OffloadExecutor& executor);
  static void list_order_preserving(Stage& stage);
  void make_blocks(Stage& stage) const;
  static void queue_up(Stage& stage) noexcept;
  std::unique_ptr<WorkerBuffer> make_worker_buffer(const Tunnel& tunnel) const;
  std::size_t most_at_once(const Tunnel& tunnel) const noexcept;

  // Workers.
  bool ended() const noexcept { return state_.load(std::memory_order_acquire) != kOpen; }
  bool step(FlowWorker& worker) noexcept;
  bool run_kept(FlowWorker& worker) noexcept;
  bool run_kept(FlowWorker& worker, Stage& stage) noexcept;
  bool run_waiting(FlowWorker& worker) noexcept;
  bool run_waiting(FlowWorker& worker, Stage& stage) noexcept;
  bool run_source(FlowWorker& worker) noexcept;
  void run_source(FlowWorker& worker, Stage& source) noexcept;
  bool enter(Stage& stage) const noexcept { return !stage.limited || stage.permit.try_enter(); }
  void leave(FlowWorker& worker, Stage& stage) noexcept;
  bool admitted(std::uint64_t epoch) const noexcept {
    return options_.epochs == 0 ||
           epoch < epochs_done_.load(std::memory_order_seq_cst) + options_.epochs;
  }
  bool can_run(const Stage& source) const noexcept {
    return source.permit.free() && admitted(source.epoch.load(std::memory_order_relaxed));
  }
  std::size_t take(FlowWorker& worker, Stage& stage) noexcept;
  void run_taken(FlowWorker& worker, Stage& stage, std::size_t count, Outputs& outputs) noexcept;
  void run(FlowWorker& worker, Stage& stage, const WorkerBuffer::Batch& batch,
           Outputs& outputs) noexcept;
  weir_status call(FlowWorker& worker, Stage& stage, weir_stage_function function,
                   const WorkerBuffer::Batch& batch, const Outputs& outputs) noexcept;
  void note_retained(FlowWorker& worker, std::size_t done) noexcept;
  std::size_t count_created(FlowWorker& worker, const Stage& stage, const Tunnel& tunnel,
                            WorkerBuffer& put, const ItemTag& tag) noexcept;
  bool settle(FlowWorker& worker, Stage& stage, const WorkerBuffer::Batch& batch,
              Outputs& outputs) noexcept;
  void fail_item(FlowWorker& worker, const Stage& stage, const void* item,
                 weir_status status) noexcept;
  /// Any thread. Calls on_failure, and ends the pipeline unless keep_going is set.
  void report_failure(const weir_item_failure& failure) noexcept;

  // Devices.
  static bool can_load_waiting(const Stage& stage) noexcept;
  static bool can_load(const Stage& stage, std::size_t items) noexcept;
  bool load_waiting(FlowWorker& worker, Stage& stage) noexcept;
  bool load_kept(FlowWorker& worker, Stage& stage) noexcept;
  std::size_t fill(Stage& stage, Reorder::Block& block) noexcept;
  void launch_batch(Stage& stage, Reorder::Block& block) const noexcept;
  void collect_batch(FlowWorker& worker, Stage& stage, Reorder::Block& block) noexcept;
  void report_batch(Stage& stage, const Reorder::Block& block, const Outcome& outcome) noexcept;
  void fail_batch(Stage& stage, const Reorder::Block& block, const Outcome& outcome) noexcept;
  template <class Callback>
  void guarded(Callback&& callback) noexcept;
  void note_failure(weir_status status, const char* why) noexcept;

  // Moving.
  /// The counters of a worker or feed for one tunnel.
  struct Counters {
    Count& count;
    Count* epochs;  ///< by slot
    sys::Atomic<std::uint64_t>& dropped;
  };
  static Counters counters_of(FlowWorker& worker, const Tunnel& tunnel) noexcept;
  bool flush_all(FlowWorker& worker) noexcept;
  bool flush(FlowWorker& worker, Tunnel& tunnel, WorkerBuffer& buffer) noexcept;
  bool send_ordered(FlowWorker& worker) noexcept;
  bool send_ordered(FlowWorker& worker, Stage& stage) noexcept;
  void leave_held(FlowWorker& worker) noexcept;
  bool flush(FlowWorker& worker, Tunnel& tunnel) noexcept;
  /// Puts items into the ring; on overflow applies the policy of the tunnel. Returns how many items
  /// were put or dropped; calls claimed(number) for each part before other threads can see it.
  template <class Claimed>
  std::size_t offer(const Counters& counters, Tunnel& tunnel, const ItemsToPut& items,
                    std::size_t count, Claimed&& claimed) noexcept;
  bool one_by_one() const noexcept { return options_.relief == WEIR_RELIEF_OFF; }
  std::size_t at_once(std::size_t items) const noexcept {
    return one_by_one() ? std::min<std::size_t>(items, 1) : items;
  }
  /// Takes up to `count` items from a ring. Returns the number.
  std::size_t pop(Tunnel& tunnel, const ItemsToTake& to, std::size_t count) const noexcept;
  void drop(const Counters& counters, std::uint64_t epoch, std::size_t count) const noexcept;
  void drop_waiting(const Counters& counters, Tunnel& tunnel, std::size_t count) noexcept;
  void share(FlowWorker& worker) noexcept;
  void on_room(Tunnel& tunnel) noexcept;

  // Idling.
  void spin_then_park(FlowWorker& worker) noexcept;
  void advance_time(FlowWorker& worker) noexcept;
  void park(FlowWorker& worker) noexcept;
  bool has_work(const FlowWorker& worker) const noexcept;
  bool stuck(const FlowWorker& worker) const noexcept;
  static bool can_send(const Stage& stage) noexcept;
  void check_others(FlowWorker& worker) noexcept;
  void wake_group_of(const Tunnel& tunnel) noexcept;
  void wake_one_of(WorkerGroup& group) noexcept;
  void wake_one() noexcept;
  void wake_workers() noexcept;
  void wake_everybody() noexcept;

  // Ends.
  bool check_ends(FlowWorker& worker) noexcept;
  bool find_ends(FlowWorker& worker) noexcept;
  bool is_over(const Component& component) noexcept;
  static bool has_sent(const Stage* stage) noexcept;
  void end(FlowWorker& worker, Component& component) noexcept;
  std::uint64_t last_epoch() const noexcept;
  void end_executor(FlowWorker& worker, Stage& stage) noexcept;
  void refuse_late_items(FlowWorker& worker, const Stage& stage) noexcept;
  bool find_epochs() noexcept;
  void finish() noexcept;
  /// Ends the epoch if it is complete, and returns whether it did: feeds opened later put nothing
  /// into it.
  bool end_epoch(std::uint64_t epoch) noexcept;
  bool epoch_balanced(std::uint64_t epoch) const noexcept WEIR_REQUIRES(feeds_mutex_);
  /// The number of epochs that all sources and feeds have closed and that had items.
  std::uint64_t closed_epochs() const noexcept WEIR_REQUIRES(feeds_mutex_);
  bool ends_with_items() const noexcept;
  std::size_t slot_of(std::uint64_t epoch) const noexcept { return epoch % options_.epochs; }
  template <class Act>
  void each_count(std::size_t tunnel, Act&& act) const WEIR_REQUIRES(feeds_mutex_);

  const std::string name_;
  const weir_pipeline_options options_;
  bool reports_ends_;  ///< to the program: busy workers check for ends, too
  std::function<bool()> pass_time_;
  std::function<std::int64_t()> clock_;
  std::int64_t started_ns_ = 0;
  sys::Atomic<std::int64_t> ended_ns_{sys::kNever};
  sys::Atomic<bool> sampling_{false};
  std::vector<Owned<weir_tunnel>> tunnels_;
  std::vector<std::unique_ptr<Stage>> stages_;
  std::vector<void (*)(void*)> releases_;  ///< by stage
  std::vector<Component> components_;      ///< upstream first
  std::vector<WorkerGroup> groups_;
  std::vector<std::unique_ptr<FlowWorker>> workers_;
  sys::Atomic<bool> sealed_{false};

  std::unique_ptr<RetainedItems> retained_items_;
  sys::Atomic<std::uint32_t> visiting_{0};  ///< by Visit

  mutable sys::Mutex feeds_mutex_;
  std::vector<std::unique_ptr<FeedCounters>> feeds_ WEIR_GUARDED_BY(feeds_mutex_);
  std::vector<Owned<weir_feed>> open_feeds_ WEIR_GUARDED_BY(feeds_mutex_);
  /// Epochs that have ended; their on_epoch calls may be pending.
  std::uint64_t epochs_over_ WEIR_GUARDED_BY(feeds_mutex_) = 0;

  sys::Atomic<std::uint32_t> state_{kOpen};
  sys::Atomic<std::uint32_t> working_{0};  ///< threads in work(), or reporting a batch
  Bell done_;                              ///< rung when state_ or working_ changes
  Bell stuck_;                             ///< where workers that keep items sleep
  sys::Atomic<std::uint32_t> checks_{0};   ///< requested checks for ends
  sys::Atomic<std::uint64_t> epochs_done_{0};
  sys::Mutex outcome_mutex_;
  Outcome outcome_ WEIR_GUARDED_BY(outcome_mutex_);
  sys::Atomic<bool> reported_{false};  ///< to the program
};

}  // namespace weir::rt
