// Random pipelines and what they must do, for threads of any kind (base/threads.hpp).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/threads.hpp"
#include "pipeline/flow.hpp"
#include "pipeline/flow_graph.hpp"
#include "pipeline/offload_executor.hpp"

namespace weir::rt::random_pipeline {

/// Random numbers that depend on the seed only (splitmix64).
class Random {
 public:
  explicit Random(std::uint64_t seed) noexcept : state_(seed) {}
  std::uint64_t next() noexcept { return mix(state_ += 0x9E3779B97F4A7C15u); }
  std::uint64_t below(std::uint64_t limit) noexcept { return next() % limit; }
  bool bernoulli(unsigned percent) noexcept { return below(100) < percent; }
  static std::uint64_t mix(std::uint64_t x) noexcept {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
  }

 private:
  std::uint64_t state_;
};

struct Item {
  std::uint64_t value;
  std::uint32_t energy;  ///< generations that may still come from it
  std::uint32_t epoch;
};

struct StagePlan {
  std::vector<std::size_t> outputs;  ///< tunnels; that of stage i is i
  std::size_t workers = 0;
  std::size_t capacity = 0;
  weir_overflow overflow = WEIR_OVERFLOW_BLOCK;
  std::size_t group = 0;
  bool speaks_at_end = false;
  bool ordered = false;
  std::size_t slots = 0, room = 0;  ///< of a device that works on it; 0: workers do
};

struct SourcePlan {
  std::vector<std::size_t> outputs;
  std::size_t items = 0;
  bool feed = false;  ///< a thread of the program; with one output
  std::size_t group = 0;
};

/// A pipeline: what comes of an item depends on it and the plan alone.
struct Plan {
  std::uint64_t seed = 0;
  std::vector<StagePlan> stages;
  std::vector<SourcePlan> sources;
  std::vector<std::size_t> groups;  ///< workers of each
  std::size_t batch = 0;
  std::size_t epochs = 0;
  std::size_t items_of_epoch = 0;
  std::uint32_t energy = 0;
  unsigned failing_percent = 0;
  bool drops = false;
  weir_relief relief = WEIR_RELIEF_BOTH;

  std::string describe() const {
    std::ostringstream text;
    text << "seed " << seed << ", relief " << relief << ", batch " << batch << ", epochs " << epochs
         << ", groups";
    for (const std::size_t workers : groups) text << ' ' << workers;
    for (std::size_t i = 0; i < sources.size(); ++i) {
      text << "\n  " << (sources[i].feed ? "feed" : "source") << " of " << sources[i].items
           << " ->";
      for (const std::size_t out : sources[i].outputs) text << ' ' << out;
    }
    for (std::size_t i = 0; i < stages.size(); ++i) {
      text << "\n  stage " << i << ", capacity " << stages[i].capacity << ", overflow "
           << stages[i].overflow << ", workers " << stages[i].workers << ", group "
           << stages[i].group;
      if (stages[i].slots > 0) {
        text << ", device of " << stages[i].slots << " x " << stages[i].room;
      }
      text << (stages[i].ordered ? ", ordered ->" : " ->");
      for (const std::size_t out : stages[i].outputs) text << ' ' << out;
    }
    return text.str();
  }
};

/// Some have last words for a stage that ends after them, and some keep the order.
inline void let_stages_speak(Plan& plan, Random& random) {
  std::vector<std::vector<std::size_t>> edges;
  for (const StagePlan& stage : plan.stages) edges.push_back(stage.outputs);
  const FlowShape shape = shape_of(edges);
  for (std::size_t i = 0; i < plan.stages.size(); ++i) {
    StagePlan& stage = plan.stages[i];
    stage.speaks_at_end = !stage.outputs.empty() &&
                          shape.component[stage.outputs.back()] != shape.component[i] &&
                          random.bernoulli(50);
    stage.ordered = !shape.cyclic[shape.component[i]] && random.bernoulli(30);
    if (random.bernoulli(30)) {
      stage.slots = 1 + random.below(3);
      stage.room = 1 + random.below(6);
      stage.speaks_at_end = false;
    }
  }
}

/// Loops that no source leads to get one.
inline void feed_loops(Plan& plan, Random& random) {
  std::vector<bool> fed(plan.stages.size(), false);
  const auto feed = [&](const auto& self, std::size_t stage) -> void {
    if (fed[stage]) return;
    fed[stage] = true;
    for (const std::size_t out : plan.stages[stage].outputs) self(self, out);
  };
  for (const SourcePlan& source : plan.sources) feed(feed, source.outputs[0]);
  for (std::size_t i = 0; i < plan.stages.size(); ++i) {
    if (fed[i]) continue;
    plan.sources.push_back({{i}, random.below(3), false, 0});
    feed(feed, i);
  }
}

inline Plan plan_of(std::uint64_t seed) {
  Random random(seed);
  Plan plan;
  plan.seed = seed;
  plan.groups.assign(1 + random.below(2), 0);
  for (std::size_t& workers : plan.groups) workers = 1 + random.below(3);
  plan.batch = std::size_t{1} << random.below(4);
  plan.energy = static_cast<std::uint32_t>(1 + random.below(4));
  plan.epochs = random.bernoulli(30) ? 1 + random.below(3) : 0;
  plan.items_of_epoch = 1 + random.below(6);
  plan.failing_percent = random.bernoulli(20) ? 10 : 0;
  const std::size_t stages = 1 + random.below(4);
  const bool drops = random.bernoulli(25);
  for (std::size_t i = 0; i < stages; ++i) {
    StagePlan stage;
    const std::size_t outputs = random.below(3);
    for (std::size_t o = 0; o < outputs; ++o) {
      const bool back = random.bernoulli(30) || i + 1 == stages;
      stage.outputs.push_back(back ? random.below(i + 1) : i + 1 + random.below(stages - i - 1));
    }
    if (i + 1 < stages && random.bernoulli(70)) stage.outputs.push_back(i + 1);
    stage.workers = random.below(3);
    stage.capacity = 1 + random.below(6);
    if (drops && random.bernoulli(50)) stage.overflow = static_cast<weir_overflow>(random.below(4));
    plan.drops = plan.drops || stage.overflow != WEIR_OVERFLOW_BLOCK;
    stage.group = random.below(plan.groups.size());
    plan.stages.push_back(stage);
  }
  let_stages_speak(plan, random);
  const std::size_t sources = 1 + random.below(2);
  for (std::size_t s = 0; s < sources; ++s) {
    SourcePlan source;
    source.outputs.push_back(s == 0 ? 0 : random.below(stages));
    source.items = random.below(14);
    source.feed = random.bernoulli(40);
    source.group = random.below(plan.groups.size());
    plan.sources.push_back(source);
  }
  // What nothing leads to gets a source that has nothing.
  std::vector<bool> reached(stages, false);
  for (const auto& each : plan.sources) reached[each.outputs[0]] = true;
  for (const auto& each : plan.stages) {
    for (const std::size_t out : each.outputs) reached[out] = true;
  }
  for (std::size_t i = 0; i < stages; ++i) {
    if (!reached[i]) plan.sources.push_back({{i}, random.below(3), false, 0});
  }
  feed_loops(plan, random);
  constexpr weir_relief kLess[] = {WEIR_RELIEF_WARP, WEIR_RELIEF_OFF};
  if (random.bernoulli(25)) plan.relief = kLess[random.below(2)];
  return plan;
}

/// Calls put(output, item) for each item that a stage makes from one.
template <class Put>
void children_of(const StagePlan& stage, const Item& item, Put&& put) {
  if (item.energy == 0 || stage.outputs.empty()) return;
  Random random(item.value);
  const std::uint64_t count = random.below(4);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::size_t output = random.below(stage.outputs.size());
    put(output, Item{random.next(), item.energy - 1, item.epoch});
  }
}
inline bool fails(const Plan& plan, const Item& item) {
  return Random::mix(item.value) % 100 < plan.failing_percent;
}
inline Item root(const Plan& plan, std::size_t source, std::size_t number) {
  return {Random::mix(plan.seed * 1000 + source * 100 + number), plan.energy,
          static_cast<std::uint32_t>(plan.epochs > 0 ? number / plan.items_of_epoch : 0)};
}
inline Item last_words(const Plan& plan, std::size_t stage, std::uint32_t epoch) {
  return {Random::mix(plan.seed + 77 * stage), 0, epoch};
}

/// A source, a stage of one worker that makes an order, one that keeps it, both with last words,
/// and one that sees it; returns what is wrong.
class OrderTrial {
 public:
  explicit OrderTrial(std::uint64_t seed) : random_(seed), flow_("order", options()) {
    weir_tunnel* const first = add_tunnel();
    weir_tunnel* const second = add_tunnel();
    weir_tunnel* const third = add_tunnel();
    add_stage(nullptr, first, make, nullptr, false);
    add_stage(first, second, count, count_one_more, false);
    add_stage(second, third, repeat, put_last, true);
    add_stage(third, nullptr, check, nullptr, false);
    flow_.seal({1 + random_.below(3)});
  }
  std::string run() {
    std::vector<sys::Thread> threads;
    for (std::size_t i = 1; i < flow_.workers(); ++i) {
      threads.emplace_back("worker" + std::to_string(i), [this, i] { flow_.work(i); });
    }
    flow_.work(0);
    threads.clear();
    if (mixed_) return "items are not in order";
    return seen_ == kItems + 1 ? "" : std::to_string(seen_) + " items came";
  }

 private:
  static constexpr std::uint64_t kItems = 15;  ///< with the last words of the stage that counts

  weir_pipeline_options options() {
    weir_pipeline_options options = WEIR_PIPELINE_OPTIONS_INIT;
    options.batch = 1 + random_.below(4);
    return options;
  }
  weir_tunnel* add_tunnel() {
    weir_tunnel_options options = WEIR_TUNNEL_OPTIONS_INIT;
    options.item_bytes = sizeof(std::uint64_t);
    options.capacity = 1 + random_.below(5);
    return flow_.graph.add_tunnel(options);
  }
  void add_stage(weir_tunnel* input, weir_tunnel* output, weir_stage_function function,
                 weir_stage_function at_end, bool ordered) {
    weir_stage_options options = WEIR_STAGE_OPTIONS_INIT;
    options.input = input;
    options.outputs = &output;
    options.output_count = output != nullptr ? 1 : 0;
    options.function = function;
    options.at_end = at_end;
    options.payload = this;
    options.workers = ordered ? 0 : 1;
    options.ordered = ordered;
    flow_.graph.add_stage(options, 0);
  }
  static void put(weir_batch* batch, std::uint64_t value) {
    *static_cast<std::uint64_t*>(weir_outlet_add(batch->outlets[0])) = value;
  }
  static weir_status make(weir_batch* batch) {
    OrderTrial& trial = *static_cast<OrderTrial*>(batch->payload);
    for (std::size_t i = 0; i < batch->count && trial.made_ < kItems - 1; ++i) {
      put(batch, trial.made_++);
    }
    batch->over = trial.made_ == kItems - 1;
    return WEIR_STATUS_OK;
  }
  static weir_status count(weir_batch* batch) {
    OrderTrial& trial = *static_cast<OrderTrial*>(batch->payload);
    for (std::size_t i = 0; i < batch->count; ++i) put(batch, trial.next_++);
    return WEIR_STATUS_OK;
  }
  static weir_status count_one_more(weir_batch* batch) {
    put(batch, static_cast<OrderTrial*>(batch->payload)->next_++);
    return WEIR_STATUS_OK;
  }
  static weir_status put_last(weir_batch* batch) {
    put(batch, 2 * kItems);
    return WEIR_STATUS_OK;
  }
  /// Puts 0, 1 or 2 items for each: as many as there were in all.
  static weir_status repeat(weir_batch* batch) {
    const auto* const items = static_cast<const std::uint64_t*>(batch->items);
    for (std::size_t i = 0; i < batch->count; ++i) {
      for (std::uint64_t copy = 0; copy < items[i] % 3; ++copy) put(batch, 2 * items[i] + copy);
    }
    return WEIR_STATUS_OK;
  }
  static weir_status check(weir_batch* batch) {
    OrderTrial& trial = *static_cast<OrderTrial*>(batch->payload);
    const auto* const items = static_cast<const std::uint64_t*>(batch->items);
    for (std::size_t i = 0; i < batch->count; ++i) {
      trial.mixed_ = trial.mixed_ || items[i] <= trial.last_;
      trial.last_ = items[i];
      ++trial.seen_;
    }
    return WEIR_STATUS_OK;
  }

  Random random_;
  Flow flow_;
  // The stages', each of one worker.
  std::uint64_t made_ = 0, next_ = 0, last_ = 0, seen_ = 0;
  bool mixed_ = false;
};

using Seen = std::vector<std::uint64_t>;  ///< values, sorted

/// What each stage gets, one item after the other; nothing is dropped.
inline std::vector<Seen> expected(const Plan& plan) {
  std::vector<Seen> seen(plan.stages.size());
  std::vector<std::pair<std::size_t, Item>> open;
  for (std::size_t s = 0; s < plan.sources.size(); ++s) {
    for (std::size_t n = 0; n < plan.sources[s].items; ++n) {
      open.emplace_back(plan.sources[s].outputs[0], root(plan, s, n));
    }
  }
  for (std::size_t i = 0; i < plan.stages.size(); ++i) {
    if (plan.stages[i].speaks_at_end) {
      open.emplace_back(plan.stages[i].outputs.back(), last_words(plan, i, 0));
    }
  }
  while (!open.empty()) {
    const auto [stage, item] = open.back();
    open.pop_back();
    seen[stage].push_back(item.value);
    if (fails(plan, item)) continue;
    children_of(plan.stages[stage], item, [&](std::size_t output, const Item& child) {
      open.emplace_back(plan.stages[stage].outputs[output], child);
    });
  }
  for (Seen& each : seen) std::sort(each.begin(), each.end());
  return seen;
}

/// A device: a thread that works on the batches of a stage in any order, some at once on the worker
/// that brings them.
class Card final : public OffloadExecutor {
 public:
  /// work(items, count, put(output, item)) for each batch, one at a time.
  using Put = std::function<void(std::size_t output, const Item& item)>;
  using Work = std::function<void(const Item* items, std::size_t count, const Put& put)>;

  Card(std::uint64_t seed, const StagePlan& plan, Work work, std::function<void()> at_end)
      : random_(seed),
        room_(plan.room),
        batches_(plan.slots),
        work_(std::move(work)),
        at_end_(std::move(at_end)) {
    for (Batch& batch : batches_) {
      batch.items.resize(room_);
      batch.put.resize(plan.outputs.size());
    }
  }

  std::size_t slots() const noexcept override { return batches_.size(); }
  std::size_t room() const noexcept override { return room_; }
  bool room_is_given() const noexcept override { return false; }
  unsigned char* items(std::size_t slot) noexcept override {
    return reinterpret_cast<unsigned char*>(batches_[slot].items.data());
  }
  void launch(std::size_t slot, std::size_t count) noexcept override {
    bool now = false;
    {
      const sys::Lock lock(mutex_);
      batches_[slot].count = count;
      now = random_.bernoulli(20);
      if (now) {
        run(slot);
      } else {
        queue_.push_back(slot);
        changed_.notify_one();
      }
    }
    if (now) on_batch_complete(slot);
  }
  const Outcome& outcome(std::size_t) const noexcept override { return well_; }
  void collect(std::size_t slot, const Outputs& outputs) override {
    for (std::size_t i = 0; i < outputs.buffers.size(); ++i) {
      const std::vector<Item>& put = batches_[slot].put[i];
      outputs.buffers[i]->put(reinterpret_cast<const unsigned char*>(put.data()), put.size());
    }
  }
  void end() override { at_end_(); }

  /// The life of its thread, until stop().
  void live() {
    sys::Lock lock(mutex_);
    for (;;) {
      while (queue_.empty() && !stopped_) changed_.wait(lock);
      if (queue_.empty()) return;
      const std::size_t at = random_.below(queue_.size());
      const std::size_t slot = queue_[at];
      queue_.erase(queue_.begin() + static_cast<std::ptrdiff_t>(at));
      run(slot);
      lock.unlock();
      on_batch_complete(slot);
      lock.lock();
    }
  }
  void stop() {
    const sys::Lock lock(mutex_);
    stopped_ = true;
    changed_.notify_one();
  }

 private:
  struct Batch {
    std::vector<Item> items;
    std::size_t count = 0;
    std::vector<std::vector<Item>> put;  ///< by output
  };
  void run(std::size_t slot) {
    Batch& batch = batches_[slot];
    for (std::vector<Item>& each : batch.put) each.clear();
    work_(batch.items.data(), batch.count,
          [&](std::size_t output, const Item& item) { batch.put[output].push_back(item); });
  }

  sys::Mutex mutex_;
  sys::Condition changed_;
  Random random_;
  const std::size_t room_;
  std::vector<Batch> batches_;
  std::vector<std::size_t> queue_;  ///< slots
  const Work work_;
  const std::function<void()> at_end_;
  const Outcome well_;
  bool stopped_ = false;
};

/// A pipeline made after a plan, which notes what it sees.
class Trial {
 public:
  explicit Trial(const Plan& plan) : plan_(plan), flow_("random", options()) {
    for (std::size_t i = 0; i < plan.stages.size(); ++i) {
      weir_tunnel_options tunnel = WEIR_TUNNEL_OPTIONS_INIT;
      tunnel.item_bytes = sizeof(Item);
      tunnel.capacity = plan.stages[i].capacity;
      tunnel.overflow = plan.stages[i].overflow;
      tunnels_.push_back(flow_.graph.add_tunnel(tunnel));
      stages_.push_back(std::make_unique<StageState>(*this, i));
    }
    for (std::size_t i = 0; i < plan.stages.size(); ++i) add_stage(i);
    for (std::size_t s = 0; s < plan.sources.size(); ++s) {
      sources_.push_back(std::make_unique<SourceState>(*this, s));
      if (plan.sources[s].feed) {
        feeds_.emplace_back(s, flow_.feeds.open(*tunnels_[plan.sources[s].outputs[0]]));
      } else {
        add_source(s);
      }
    }
    flow_.seal(plan.groups);
  }

  /// Runs it on threads of its own; returns what is wrong, "" for nothing.
  std::string run() {
    std::vector<sys::Thread> threads;
    for (std::size_t i = 1; i < flow_.workers(); ++i) {
      threads.emplace_back("worker" + std::to_string(i), [this, i] { flow_.work(i); });
    }
    for (const auto& [source, feed] : feeds_) {
      threads.emplace_back("feed" + std::to_string(source),
                           [this, s = source, f = feed] { put_all(s, *f); });
    }
    std::vector<sys::Thread> cards;
    for (const auto& card : cards_) {
      cards.emplace_back("device" + std::to_string(cards.size()), [c = card.get()] { c->live(); });
    }
    flow_.work(0);
    flow_.completion.wait(sys::kNever);
    threads.clear();
    for (const auto& card : cards_) card->stop();
    cards.clear();
    return check_outcome();
  }

 private:
  struct StageState {
    StageState(Trial& of, std::size_t number) : trial(of), index(number), seen(of.workers() + 1) {}
    Trial& trial;
    const std::size_t index;
    std::vector<Seen> seen;  ///< by worker, and of a device
    unsigned ends = 0;
    std::uint64_t epochs_spoken = 0;  ///< up to that of its last words
  };
  struct SourceState {
    SourceState(Trial& of, std::size_t number) : trial(of), index(number) {}
    Trial& trial;
    const std::size_t index;
    std::size_t next = 0;
  };

  weir_pipeline_options options() {
    weir_pipeline_options options = WEIR_PIPELINE_OPTIONS_INIT;
    options.keep_going = true;
    options.batch = plan_.batch;
    options.relief = plan_.relief;
    options.epochs = plan_.epochs;
    if (plan_.epochs > 0) options.on_epoch = on_epoch;
    options.payload = this;
    return options;
  }
  std::size_t workers() const {
    std::size_t sum = 0;
    for (const std::size_t each : plan_.groups) sum += each;
    return sum;
  }

  void add_stage(std::size_t index) {
    const StagePlan& stage = plan_.stages[index];
    std::vector<weir_tunnel*> outputs;
    for (const std::size_t out : stage.outputs) outputs.push_back(tunnels_[out]);
    weir_stage_options options = WEIR_STAGE_OPTIONS_INIT;
    options.input = tunnels_[index];
    options.outputs = outputs.data();
    options.output_count = outputs.size();
    options.function = run_stage;
    options.at_end = end_stage;
    options.payload = stages_[index].get();
    options.workers = stage.workers;
    options.ordered = stage.ordered;
    if (stage.slots == 0) return flow_.graph.add_stage(options, stage.group);
    options.function = options.at_end = nullptr;
    cards_.push_back(make_card(index));
    flow_.graph.add_stage(options, stage.group, cards_.back().get());
  }
  std::unique_ptr<Card> make_card(std::size_t index) {
    StageState& state = *stages_[index];
    const auto work = [this, &state](const Item* items, std::size_t count, const Card::Put& put) {
      if (state.ends > 0) late_.store(true);
      for (std::size_t i = 0; i < count; ++i) {
        state.seen.back().push_back(items[i].value);
        if (plan_.epochs > 0) {
          if (items[i].epoch != items[0].epoch) mixed_.store(true);
          if (items[i].epoch < epochs_.load()) late_.store(true);
        }
        if (!fails(plan_, items[i])) children_of(plan_.stages[state.index], items[i], put);
      }
    };
    return std::make_unique<Card>(plan_.seed + index, plan_.stages[index], work,
                                  [&state] { ++state.ends; });
  }
  void add_source(std::size_t index) {
    const SourcePlan& source = plan_.sources[index];
    weir_tunnel* const output = tunnels_[source.outputs[0]];
    weir_stage_options options = WEIR_STAGE_OPTIONS_INIT;
    options.outputs = &output;
    options.output_count = 1;
    options.function = run_source;
    options.payload = sources_[index].get();
    flow_.graph.add_stage(options, source.group);
  }
  bool put_one(weir_feed& feed, const Item& item) {
    std::size_t put = 0;
    try {
      flow_.feeds.put(feed, &item, 1, sys::kNever, put);
    } catch (const Error&) {
      return false;
    }
    return put == 1;
  }
  void put_all(std::size_t source, weir_feed& feed) {
    for (std::size_t n = 0; n < plan_.sources[source].items; ++n) {
      const Item item = root(plan_, source, n);
      if (!put_one(feed, item)) refused_.store(true);
      if (plan_.epochs > 0 && (n + 1) % plan_.items_of_epoch == 0) flow_.feeds.next_epoch(feed);
    }
    flow_.feeds.close(feed);
  }

  static bool put(weir_outlet* outlet, const Item& item) {
    void* const room = weir_outlet_add(outlet);
    if (room == nullptr) return false;
    *static_cast<Item*>(room) = item;
    return true;
  }
  static weir_status run_stage(weir_batch* batch) {
    StageState& state = *static_cast<StageState*>(batch->payload);
    Trial& trial = state.trial;
    const auto* const items = static_cast<const Item*>(batch->items);
    for (std::size_t i = 0; i < batch->count; ++i) {
      const Item& item = items[i];
      state.seen[batch->worker].push_back(item.value);
      if (state.ends > 0) trial.late_.store(true);
      if (trial.plan_.epochs > 0) {
        if (item.epoch != batch->epoch) trial.mixed_.store(true);
        if (item.epoch < trial.epochs_.load()) trial.late_.store(true);
      }
      if (fails(trial.plan_, item)) {
        batch->index = i;
        return weir_batch_fail(batch, WEIR_STATUS_KERNEL_ERROR, "as planned");
      }
      children_of(trial.plan_.stages[state.index], item,
                  [&](std::size_t output, const Item& child) {
                    if (!put(batch->outlets[output], child)) trial.refused_.store(true);
                  });
    }
    return WEIR_STATUS_OK;
  }
  static weir_status end_stage(weir_batch* batch) {
    StageState& state = *static_cast<StageState*>(batch->payload);
    ++state.ends;
    const StagePlan& stage = state.trial.plan_.stages[state.index];
    if (stage.speaks_at_end) {
      state.epochs_spoken = batch->epoch + 1;
      put(batch->outlets[stage.outputs.size() - 1],
          last_words(state.trial.plan_, state.index, static_cast<std::uint32_t>(batch->epoch)));
    }
    return WEIR_STATUS_OK;
  }
  static weir_status run_source(weir_batch* batch) {
    SourceState& state = *static_cast<SourceState*>(batch->payload);
    const Plan& plan = state.trial.plan_;
    const std::size_t all = plan.sources[state.index].items;
    for (std::size_t i = 0; i < batch->count && state.next < all && !batch->epoch_over; ++i) {
      put(batch->outlets[0], root(plan, state.index, state.next++));
      batch->epoch_over = plan.epochs > 0 && state.next % plan.items_of_epoch == 0;
    }
    batch->over = state.next == all;
    return WEIR_STATUS_OK;
  }
  static void on_epoch(std::uint64_t epoch, void* payload) {
    Trial& trial = *static_cast<Trial*>(payload);
    if (epoch != trial.epochs_.load()) trial.mixed_.store(true);
    trial.epochs_.store(epoch + 1);
  }

  std::string check_outcome() {
    std::ostringstream wrong;
    if (late_.load()) wrong << "an item came after the end\n";
    if (mixed_.load()) wrong << "epochs are mixed up\n";
    if (refused_.load()) wrong << "an item was refused\n";
    const std::vector<Seen> all = expected(plan_);
    std::vector<weir_stage_info> infos(plan_.stages.size());
    weir_pipeline_info info = WEIR_PIPELINE_INFO_INIT;
    flow_.get_info(info, infos.data(), infos.size());
    if (!info.at_end) wrong << "not at its end: " << flow_.completion.outcome().message << "\n";
    for (std::size_t i = 0; i < plan_.stages.size(); ++i) {
      Seen seen;
      for (const Seen& each : stages_[i]->seen) seen.insert(seen.end(), each.begin(), each.end());
      std::sort(seen.begin(), seen.end());
      const weir_stage_info& found = infos[i];
      if (!plan_.drops && seen != all[i]) {
        wrong << "stage " << i << " saw " << seen.size() << " items instead of " << all[i].size()
              << "\n";
      }
      if (found.created != found.complete || seen.size() + found.dropped != found.created) {
        wrong << "stage " << i << " saw " << seen.size() << ", dropped " << found.dropped
              << ", created " << found.created << ", complete " << found.complete << "\n";
      }
      if (found.dropped > 0 && plan_.stages[i].overflow == WEIR_OVERFLOW_BLOCK) {
        wrong << "stage " << i << " dropped items, but it blocks\n";
      }
      if (stages_[i]->ends != 1)
        wrong << "stage " << i << " ended " << stages_[i]->ends << " times\n";
    }
    check_epochs(info.epochs, wrong);
    return wrong.str().empty() ? "" : wrong.str() + plan_.describe() + "\n";
  }
  /// Last words are of an epoch that began, or one more where a feed has ended the last.
  void check_epochs(std::uint64_t ended, std::ostringstream& wrong) const {
    if (plan_.epochs == 0) return;
    const std::uint64_t put = epochs_put();
    const std::uint64_t most = feed_ends_last_epoch() ? put + 1 : std::max<std::uint64_t>(put, 1);
    std::uint64_t all = put;
    for (const auto& stage : stages_) all = std::max(all, stage->epochs_spoken);
    if (all > most) wrong << "last words came in epoch " << all - 1 << " of " << most << "\n";
    if (ended != all) wrong << ended << " epochs ended instead of " << all << "\n";
  }
  /// By sources and feeds.
  std::uint64_t epochs_put() const {
    std::uint64_t most = 0;
    for (const SourcePlan& source : plan_.sources) most = std::max(most, epochs_of(source));
    return most;
  }
  std::uint64_t epochs_of(const SourcePlan& source) const {
    return (source.items + plan_.items_of_epoch - 1) / plan_.items_of_epoch;
  }
  /// Whether some feed says that the last epoch is over before it is closed.
  bool feed_ends_last_epoch() const {
    return std::any_of(plan_.sources.begin(), plan_.sources.end(), [&](const SourcePlan& source) {
      return source.feed && source.items > 0 && source.items % plan_.items_of_epoch == 0 &&
             epochs_of(source) == epochs_put();
    });
  }

  const Plan& plan_;
  std::vector<std::unique_ptr<Card>> cards_;
  Flow flow_;
  std::vector<weir_tunnel*> tunnels_;
  std::vector<std::unique_ptr<StageState>> stages_;
  std::vector<std::unique_ptr<SourceState>> sources_;
  std::vector<std::pair<std::size_t, weir_feed*>> feeds_;
  sys::Atomic<std::uint64_t> epochs_{0};
  sys::Atomic<bool> late_{false}, mixed_{false}, refused_{false};
};

}  // namespace weir::rt::random_pipeline
