#include "pipeline/flow.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/counted.hpp"
#include "base/log.hpp"
#include "base/thread_role.hpp"
#include "pipeline/flow_templates.hpp"

namespace weir::rt {

namespace {

constexpr std::size_t kUsualCapacity = 1024, kMostCapacity = std::size_t{1} << 30;
constexpr std::size_t kUsualBatch = 64, kMostBatch = 65'536;
constexpr std::size_t kOrderedWindow = 64;  // batches
constexpr std::size_t kMostItemBytes = std::size_t{1} << 24;
constexpr std::size_t kMostEpochs = 65'536;
constexpr std::size_t kBatchBytes = std::size_t{1} << 18;
constexpr std::size_t kUsualTunnelBytes = std::size_t{1} << 24;
constexpr std::size_t kUsualKeepBytes = std::size_t{256} << 20;

std::size_t capacity_of(const weir_tunnel_options& options) {
  if (options.overflow == WEIR_OVERFLOW_KEEP_LATEST) return 1;
  if (options.capacity > 0) return options.capacity;
  return std::clamp<std::size_t>(kUsualTunnelBytes / options.item_bytes, 2, kUsualCapacity);
}

std::string name_or(const char* given, const char* noun, std::size_t number) {
  return given != nullptr ? given : fmt::format("{} {}", noun, number);
}

weir_pipeline_options completed(weir_pipeline_options options) {
  if (options.batch == 0) options.batch = kUsualBatch;
  if (options.keep_bytes == 0) options.keep_bytes = kUsualKeepBytes;
  return options;
}

}  // namespace

Tunnel::Tunnel(Flow& owner, std::size_t number, const weir_tunnel_options& options)
    : flow(owner),
      index(number),
      item_bytes(options.item_bytes),
      overflow(options.overflow),
      ring(capacity_of(options), options.item_bytes),
      sized(options.capacity > 0 || options.overflow == WEIR_OVERFLOW_KEEP_LATEST),
      name_(name_or(options.name, "tunnel", number)) {}

// ---- Building ----------------------------------------------------------------------------------

Flow::Flow(std::string name, const weir_pipeline_options& options)
    : name_(std::move(name)), options_(completed(options)), reports_ends_(options.epochs > 0) {
  if (options.batch > kMostBatch) {
    fail_argument("a batch of {} items is too large for pipeline '{}': at most {}", options.batch,
                  name_, kMostBatch);
  }
  if (options.epochs > kMostEpochs) {
    fail_argument("{} epochs at once are too many for pipeline '{}': at most {}", options.epochs,
                  name_, kMostEpochs);
  }
  if (options.relief < WEIR_RELIEF_BOTH || options.relief > WEIR_RELIEF_OFF) {
    fail_argument("relief {} of pipeline '{}' is none", static_cast<int>(options.relief), name_);
  }
  if (options.epochs == 0 && options.on_epoch != nullptr) {
    fail_argument("pipeline '{}' has on_epoch, but epochs is 0: say how many may be under way",
                  name_);
  }
}

Flow::~Flow() {
  std::string kept;
  if (retained_items_) {
    const sys::Lock ending(RetainedItems::ends());
    try {
      kept = retained_items_->names();
    } catch (...) {  // the destructor reports nothing
    }
    retained_items_->clear();
  }
  if (!kept.empty()) log::warning("pipeline '{}' is destroyed while {}", name_, kept);
  while (visiting_.load(std::memory_order_acquire) > 0) sys::yield();
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    if (releases_[i] != nullptr) releases_[i](stages_[i]->payload);
  }
}

void Flow::refuse_when_sealed(const char* what) const {
  if (sealed()) {
    fail(WEIR_STATUS_BUSY, "pipeline '{}' has started: it gets no more {}", name_, what);
  }
}

weir_tunnel* Flow::add_tunnel(const weir_tunnel_options& options) {
  refuse_when_sealed("tunnels");
  const std::string called = name_or(options.name, "tunnel", tunnels_.size());
  if (options.item_bytes == 0 || options.item_bytes > kMostItemBytes) {
    fail_argument("items of {} bytes do not fit tunnel '{}': 1 to {}", options.item_bytes, called,
                  kMostItemBytes);
  }
  if (options.capacity > kMostCapacity) {
    fail_argument("capacity {} of tunnel '{}' is too large: at most {}", options.capacity, called,
                  kMostCapacity);
  }
  if (options.overflow < WEIR_OVERFLOW_BLOCK || options.overflow > WEIR_OVERFLOW_KEEP_LATEST) {
    fail_argument("overflow {} of tunnel '{}' is none", static_cast<int>(options.overflow), called);
  }
  tunnels_.reserve(tunnels_.size() + 1);
  tunnels_.emplace_back(new weir_tunnel(*this, tunnels_.size(), options));
  tunnels_.back()->queued = options.overflow != WEIR_OVERFLOW_BLOCK;
  return tunnels_.back().get();
}

/// A device's batches are also sent in the order in which they were taken.
void Flow::make_offloaded(Stage& stage, OffloadExecutor& executor) {
  if (stage.input == nullptr) {
    fail_argument("source '{}' cannot be a kernel: it has no input", stage.name);
  }
  if (stage.function != nullptr || stage.at_end != nullptr) {
    fail_argument("stage '{}' has a kernel and a function: leave one out", stage.name);
  }
  make_room(stage, executor);
  stage.executor = &executor;
  stage.reorder = std::make_unique<Reorder>(executor.slots());
  if (options_.epochs > 0) {
    stage.leftover = std::make_unique<Leftover>(executor.room(), stage.input->item_bytes);
  }
  executor.attach(*this, stage);
}

/// Batches are gathered in the ring.
void Flow::make_room(const Stage& stage, const OffloadExecutor& executor) {
  Tunnel& input = *stage.input;
  if (input.sized || input.fed || executor.room() <= input.ring.capacity()) return;
  input.ring.grow(executor.room(), input.item_bytes);
}

/// Items to and from an ordered stage go through rings.
void Flow::make_ordered(Stage& stage) {
  if (stage.input == nullptr) {
    fail_argument("source '{}' cannot be ordered: it has no input", stage.name);
  }
  stage.reorder = std::make_unique<Reorder>(kOrderedWindow);
  stage.input->queued = stage.input->in_order = true;
  for (Tunnel* tunnel : stage.outputs) tunnel->queued = tunnel->in_order = true;
}

void Flow::add_stage(const weir_stage_options& options, std::size_t group,
                     OffloadExecutor* executor) {
  refuse_when_sealed("stages");
  auto stage = std::make_unique<Stage>();
  stage->name = name_or(options.name, "stage", stages_.size());
  if (options.function == nullptr && executor == nullptr)
    fail_argument("stage '{}' has no function", stage->name);
  if (options.outputs == nullptr && options.output_count > 0) {
    fail_argument("{} of stage '{}' {} given as NULL", counted(options.output_count, "output"),
                  stage->name, is_or_are(options.output_count));
  }
  const auto own = [&](weir_tunnel* tunnel) -> Tunnel& {
    weir_tunnel& checked = weir_tunnel::check(tunnel);
    if (&checked.flow != this) {
      fail_argument("tunnel '{}' of stage '{}' belongs to another pipeline than '{}'",
                    checked.name(), stage->name, name_);
    }
    return checked;
  };
  for (std::size_t i = 0; i < options.output_count; ++i) {
    stage->outputs.push_back(&own(options.outputs[i]));
  }
  if (options.input != nullptr) {
    stage->input = &own(options.input);
    if (stage->input->stage != nullptr) {
      fail(WEIR_STATUS_BUSY, "tunnel '{}' leads to stage '{}' already, and cannot lead to '{}'",
           stage->input->name(), stage->input->stage->name, stage->name);
    }
  }
  if (stage->input == nullptr && options.workers > 1 && options_.epochs > 0) {
    fail_argument("source '{}' has {} workers, but in a pipeline with epochs a source has one",
                  stage->name, options.workers);
  }
  for (const Tunnel* tunnel : stage->outputs) stage->output_numbers.push_back(tunnel->index);
  stage->index = stages_.size();
  stage->function = options.function;
  stage->at_end = options.at_end;
  stage->payload = options.payload;
  stage->group = group;
  stage->ordered = options.ordered;
  if (options.ordered) make_ordered(*stage);
  if (executor != nullptr) make_offloaded(*stage, *executor);
  const std::size_t usual = options.input == nullptr ? 1 : Permit::kMost;
  stage->permit.limit(options.workers == 0 ? usual : std::min(options.workers, Permit::kMost));
  releases_.reserve(releases_.size() + 1);
  stages_.push_back(std::move(stage));
  releases_.push_back(options.release);
  Stage& added = *stages_.back();
  if (added.input != nullptr) added.input->stage = &added;
  for (Tunnel* tunnel : added.outputs) tunnel->written = true;
  reports_ends_ = reports_ends_ || added.at_end != nullptr;
}

weir_feed* Flow::open_feed(Tunnel& tunnel) {
  const sys::Lock lock(feeds_mutex_);
  if (sealed() && tunnel.open_feeds.load(std::memory_order_acquire) == 0) {
    fail(WEIR_STATUS_BUSY,
         "tunnel '{}' is closed: open a feed before the pipeline starts, or while another is open",
         tunnel.name());
  }
  feeds_.reserve(feeds_.size() + 1);
  open_feeds_.reserve(open_feeds_.size() + 1);
  auto counters = std::make_unique<FeedCounters>(tunnel, epochs_over_, options_.epochs);
  Owned<weir_feed> feed(new weir_feed(*counters));
  tunnel.fed = true;
  tunnel.open_feeds.fetch_add(1, std::memory_order_acq_rel);
  feeds_.push_back(std::move(counters));
  open_feeds_.push_back(std::move(feed));
  return open_feeds_.back().get();
}

void Flow::check_shape() const {
  if (stages_.empty()) fail_argument("pipeline '{}' has no stages", name_);
  for (const auto& tunnel : tunnels_) {
    if (tunnel->stage == nullptr) {
      fail_argument("no stage of pipeline '{}' takes items from tunnel '{}'", name_,
                    tunnel->name());
    }
    if (!tunnel->written && tunnel->open_feeds.load(std::memory_order_acquire) == 0) {
      fail_argument(
          "nothing puts items into tunnel '{}' of pipeline '{}': make it an output of a stage, or "
          "open a feed before the start",
          tunnel->name(), name_);
    }
  }
}

/// For each stage, the stages that it puts items for.
std::vector<std::vector<std::size_t>> Flow::edges() const {
  std::vector<std::vector<std::size_t>> edges(stages_.size());
  for (const auto& stage : stages_) {
    for (const Tunnel* tunnel : stage->outputs) {
      edges[stage->index].push_back(tunnel->stage->index);
    }
  }
  return edges;
}

/// Refuses loops that no source or feed can put a first item into.
void Flow::check_fed(const std::vector<std::vector<std::size_t>>& edges,
                     const FlowShape& shape) const {
  std::vector<bool> fed(shape.cyclic.size(), false);
  for (const auto& stage : stages_) {
    const Tunnel* const input = stage->input;
    if (input == nullptr || input->open_feeds.load(std::memory_order_acquire) > 0) {
      fed[shape.component[stage->index]] = true;
    }
  }
  for (auto at = shape.downstream_first.rbegin(); at != shape.downstream_first.rend(); ++at) {
    for (const std::size_t next : edges[*at]) {
      if (fed[shape.component[*at]]) fed[shape.component[next]] = true;
    }
  }
  const auto found = std::find(fed.begin(), fed.end(), false);
  if (found == fed.end()) return;
  std::vector<std::string> loop;
  for (const auto& stage : stages_) {
    if (fed.begin() + static_cast<std::ptrdiff_t>(shape.component[stage->index]) != found) continue;
    loop.push_back(fmt::format("stage '{}' with tunnel '{}'", stage->name, stage->input->name()));
  }
  fail_argument(
      "nothing puts a first item into a loop of pipeline '{}': {}; make one of these tunnels an "
      "output of a stage outside, or open a feed before the start",
      name_, fmt::join(loop, ", "));
}

/// Refuses batches larger than the ring, in which they are gathered outside of loops: they would
/// never be full.
void Flow::check_batches(const FlowShape& shape) const {
  for (const auto& stage : stages_) {
    if (stage->executor == nullptr || shape.cyclic[shape.component[stage->index]]) continue;
    const std::size_t batch = stage->executor->room(), capacity = stage->input->ring.capacity();
    if (batch <= capacity || !stage->executor->room_is_given()) continue;
    fail_argument(
        "batches of {} items of stage '{}' are never full: tunnel '{}' has room for {}; {}", batch,
        stage->name, stage->input->name(), capacity,
        stage->input->sized
            ? "make its capacity as large, or leave it out"
            : "add the stage before a feed is opened, or give the tunnel a capacity");
  }
}

void Flow::make_components(const std::vector<std::vector<std::size_t>>& edges,
                           const FlowShape& shape) {
  components_.resize(shape.cyclic.size());
  for (const auto& stage : stages_) {
    stage->component = shape.component[stage->index];
    stage->newest_first = shape.cyclic[stage->component];
    components_[stage->component].stages.push_back(stage.get());
    for (const std::size_t next : edges[stage->index]) {
      if (next == stage->index) stage->feeds_itself = true;
      const std::size_t there = shape.component[next];
      if (there != stage->component) components_[there].producers.push_back(stage->component);
    }
  }
  for (const std::size_t index : shape.downstream_first) {
    Stage& stage = *stages_[index];
    WorkerGroup& group = groups_[stage.group];
    (stage.input != nullptr ? group.stages : group.sources).push_back(&stage);
    stage.limited = stage.input == nullptr || stage.permit.below(group.workers);
    if (stage.permit.serial() && !stage.reorder) list_order_preserving(stage);
    stage.limited = stage.limited || !stage.order_preserving.empty();
    if (stage.executor != nullptr && !stage.newest_first) queue_up(stage);
    if (stage.reorder) make_blocks(stage);
  }
}

/// Sends all items of a stage through its device, which keeps results until there is room.
void Flow::queue_up(Stage& stage) noexcept {
  stage.input->queued = true;
  for (Tunnel* tunnel : stage.outputs) tunnel->queued = true;
}

/// Outputs into which a serial stage puts items in order, except in loops, which have no order.
void Flow::list_order_preserving(Stage& stage) {
  for (Tunnel* tunnel : stage.outputs) {
    if (tunnel->in_order && tunnel->stage->component != stage.component) {
      stage.order_preserving.push_back(tunnel);
    }
  }
}

void Flow::make_blocks(Stage& stage) const {
  if (stage.newest_first && stage.ordered) {
    fail_argument("stage '{}' is in a loop, where there is no order to keep", stage.name);
  }
  for (Reorder::Block& block : stage.reorder->blocks()) {
    for (const Tunnel* tunnel : stage.outputs) {
      block.memory.push_back(make_worker_buffer(*tunnel));
      block.outputs.add(*block.memory.back());
    }
  }
}

std::unique_ptr<WorkerBuffer> Flow::make_worker_buffer(const Tunnel& tunnel) const {
  return std::make_unique<WorkerBuffer>(tunnel.item_bytes, 2 * most_at_once(tunnel),
                                        options_.keep_bytes, tunnel.stage->name);
}

/// Items of a tunnel that a worker handles at once: fewer of large ones.
std::size_t Flow::most_at_once(const Tunnel& tunnel) const noexcept {
  return std::clamp<std::size_t>(kBatchBytes / tunnel.item_bytes, 1, options_.batch);
}

std::unique_ptr<FlowWorker> Flow::make_worker(WorkerGroup& group) {
  std::size_t bytes = 1;
  for (const auto& tunnel : tunnels_) {
    bytes = std::max(bytes, most_at_once(*tunnel) * tunnel->item_bytes);
  }
  auto worker =
      std::make_unique<FlowWorker>(workers_.size(), group, tunnels_.size(), stages_.size(),
                                   options_.epochs, options_.batch, bytes);
  for (const auto& tunnel : tunnels_) worker->buffers.push_back(make_worker_buffer(*tunnel));
  for (const auto& stage : stages_) {
    Outputs& outputs = worker->outputs.emplace_back();
    for (const Tunnel* tunnel : stage->outputs) outputs.add(*worker->buffers[tunnel->index]);
    worker->pace.emplace_back(stage->input != nullptr ? most_at_once(*stage->input)
                                                      : options_.batch);
  }
  worker->held.reserve(stages_.size());
  worker->call.worker = worker->index;
  worker->call.flow = this;
  return worker;
}

void Flow::seal(const std::vector<std::size_t>& group_workers) {
  refuse_when_sealed("workers");
  check_shape();
  const std::vector<std::vector<std::size_t>> edges = this->edges();
  const FlowShape shape = shape_of(edges);
  check_fed(edges, shape);
  check_batches(shape);
  groups_ = std::vector<WorkerGroup>(group_workers.size());
  for (std::size_t g = 0; g < groups_.size(); ++g) groups_[g].workers = group_workers[g];
  components_.clear();
  make_components(edges, shape);
  workers_.clear();
  retained_items_ = std::make_unique<RetainedItems>(tunnels_.size(), options_.epochs);
  for (WorkerGroup& group : groups_) {
    group.first_worker = workers_.size();
    for (std::size_t i = 0; i < group.workers; ++i) workers_.push_back(make_worker(group));
  }
  const sys::Lock lock(feeds_mutex_);
  started_ns_ = now_ns();
  sealed_.store(true, std::memory_order_release);
}

// ---- Feeds -------------------------------------------------------------------------------------

void Flow::put(weir_feed& feed, const void* items, std::size_t count, std::int64_t deadline_ns,
               std::size_t& put) {
  put = 0;
  if (count == 0) return;
  if (items == nullptr) {
    fail_argument("{} {} given as NULL", counted(count, "item"), is_or_are(count));
  }
  FeedCounters& own = feed.counters;
  Tunnel& tunnel = own.tunnel;
  const std::uint64_t epoch = own.epoch.load(std::memory_order_relaxed);
  const Counters counters{own.count, own.epochs.get(), own.dropped};
  const auto* const bytes = static_cast<const unsigned char*>(items);
  const ItemTag tag = tag_of(own, epoch);
  const auto try_it = [&] {
    if (ended()) return true;
    if (!admitted(epoch)) return false;
    put += offer(counters, tunnel, {bytes + put * tunnel.item_bytes, tag}, count - put,
                 [&](std::size_t claimed) {
                   own.epochs_used.store(epoch + 1, std::memory_order_release);
                   own.count.create(claimed);
                   if (options_.epochs > 0) own.epochs[slot_of(epoch)].create(claimed);
                 });
    return put == count;
  };
  if (try_it() && put == count) return;
  const ScopedVisit visit(*this);
  tunnel.room.listen(NoWaitScope::active() ? 0 : deadline_ns, try_it);
  if (put < count) fail_put(feed, count - put);
}

/// The tag of a feed's items: sampled now and then while latencies are measured.
ItemTag Flow::tag_of(FeedCounters& feed, std::uint64_t epoch) const noexcept {
  constexpr std::int64_t kBetweenNs = 20'000;
  if (!sampling()) return {epoch};
  const std::int64_t now = now_ns();
  if (feed.sampled_ns != INT64_MIN && now - feed.sampled_ns < kBetweenNs) return {epoch};
  feed.sampled_ns = now;
  return {epoch, now};
}

void Flow::fail_put(weir_feed& feed, std::size_t left) {
  const char* const tunnel = feed.name().c_str();
  if (state_.load(std::memory_order_acquire) == kEnded) {
    fail(WEIR_STATUS_CANCELLED, "pipeline '{}' is at its end: {} for tunnel '{}' {} refused", name_,
         counted(left, "item"), tunnel, is_or_are(left));
  }
  if (ended()) {
    fail(WEIR_STATUS_CANCELLED, "pipeline '{}' was stopped with {} left for tunnel '{}'", name_,
         counted(left, "item"), tunnel);
  }
  const std::uint64_t epoch = feed.counters.epoch.load(std::memory_order_relaxed);
  if (!admitted(epoch)) {
    fail(WEIR_STATUS_TIMEOUT,
         "epoch {} did not begin before the deadline, {} for tunnel '{}' {} left: "
         "epoch {} is not complete, and pipeline '{}' has {} under way at most",
         epoch, counted(left, "item"), tunnel, is_or_are(left), epoch - options_.epochs, name_,
         options_.epochs);
  }
  fail(WEIR_STATUS_TIMEOUT, "tunnel '{}' had no room for {} before the deadline", tunnel,
       counted(left, "item"));
}

void Flow::next_epoch(weir_feed& feed) {
  if (options_.epochs == 0) {
    fail_argument("pipeline '{}' has no epochs: set epochs in its options", name_);
  }
  FeedCounters& own = feed.counters;
  const std::uint64_t next = own.epoch.load(std::memory_order_relaxed) + 1;
  own.epochs_used.store(next, std::memory_order_release);
  own.epoch.store(next, std::memory_order_seq_cst);
  wake_one();
}

void Flow::close(weir_feed& feed) noexcept {
  FeedCounters& own = feed.counters;
  Tunnel& tunnel = own.tunnel;
  const ScopedVisit visit(*this);
  {
    const sys::Lock lock(feeds_mutex_);
    std::erase_if(open_feeds_, [&](const auto& each) { return each.get() == &feed; });
    own.closed.store(true, std::memory_order_release);
    retire(own);
    tunnel.open_feeds.fetch_sub(1, std::memory_order_seq_cst);  // last: open_feed() relies on it
  }
  wake_one();
}

/// A program may open very many feeds: all closed feeds of a tunnel share one FeedCounters.
void Flow::retire(FeedCounters& own) noexcept {
  const auto common = std::find_if(feeds_.begin(), feeds_.end(), [&](const auto& each) {
    return each.get() != &own && &each->tunnel == &own.tunnel &&
           each->closed.load(std::memory_order_relaxed);
  });
  if (common == feeds_.end()) return;
  (*common)->take_over(own, options_.epochs);
  std::erase_if(feeds_, [&](const auto& each) { return each.get() == &own; });
}

// ---- Waiting -----------------------------------------------------------------------

void Flow::stop(weir_status status, const char* message) noexcept {
  {
    const sys::Lock lock(outcome_mutex_);
    std::uint32_t open = kOpen;
    if (!state_.compare_exchange_strong(open, kStopping, std::memory_order_seq_cst)) return;
    if (outcome_.ok()) outcome_ = failed_outcome(status, message);
    ended_ns_.store(now_ns(), std::memory_order_relaxed);
  }
  state_.store(kStopped, std::memory_order_seq_cst);
  wake_everybody();
}

void Flow::note_failure(weir_status status, const char* why) noexcept {
  const sys::Lock lock(outcome_mutex_);
  if (outcome_.ok()) outcome_ = failed_outcome(status, why);
}

void Flow::report_unreported() noexcept {
  const sys::Lock lock(outcome_mutex_);
  if (outcome_.ok() || outcome_.status == WEIR_STATUS_CANCELLED || reported_.exchange(true)) return;
  log::warning(
      "pipeline '{}' ends with a failure that the program did not ask for: {}; wait for it "
      "to be told",
      name_, outcome_.message);
}

bool Flow::wait(std::int64_t deadline_ns) {
  return done_.listen(deadline_ns, [this] {
    const std::uint32_t state = state_.load(std::memory_order_seq_cst);
    return state == kEnded || (state == kStopped && working_.load(std::memory_order_seq_cst) == 0);
  });
}

}  // namespace weir::rt
