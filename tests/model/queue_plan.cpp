#include "queue_plan.hpp"

#include <algorithm>
#include <array>
#include <random>
#include <stdexcept>

namespace weir::queue_model {

namespace {

constexpr std::array<Platform, 10> kPlatforms = {{
    {"host_direct", "host:cores=2", 1, 1},
    {"host_places", "host:cores=2", 1, 2},
    {"host_and_sim", "host:cores=1,sim:cores=1,gbps=1000,latency_us=0", 2, 1},
    {"sims", "sim:cores=1,gbps=1000,latency_us=0,sim:cores=1,gbps=1000,latency_us=0,duplex=half", 2,
     1},
    {"small_memory", "host:cores=1,sim:cores=1,gbps=1000,latency_us=0,memory=200B", 2, 1},
    {"queued_small", "sim:cores=2,gbps=1000,latency_us=0,order=device,memory=260B,host:cores=1", 2,
     1},
    {"virtual",
     "sim:cores=2,clock=virtual,gbps=6,sim:cores=1,clock=virtual,memory=300B,duplex=half", 2, 1},
    {"sim_places", "sim:cores=2,gbps=1000,latency_us=0,memory=300B", 1, 2},
    {"three",
     "sim:cores=1,gbps=1000,latency_us=0,order=device,memory=260B,host:cores=1,"
     "sim:cores=1,gbps=1000,latency_us=0,memory=200B,duplex=half",
     3, 1},
    {"three_places",
     "host:cores=2,sim:cores=2,gbps=1000,latency_us=0,memory=400B,"
     "sim:cores=2,gbps=1000,latency_us=0,order=device",
     3, 2},
}};
/// "later" is of the trial: it puts tasks off whenever it may.
constexpr std::array<const char*, 6> kPolicies = {"finish", "steal",       "locality",
                                                  "static", "round-robin", "later"};

class Planner {
 public:
  explicit Planner(std::uint64_t seed) : random_(seed) {}

  Plan plan() {
    Plan plan;
    plan.platform = &kPlatforms[below(kPlatforms.size())];
    plan.policy = kPolicies[below(kPolicies.size())];
    for (std::size_t i = 0, n = 1 + below(3); i < n; ++i) plan.buffers.push_back(16 + below(80));
    for (std::size_t i = 0, n = 2 + below(10); i < n; ++i) plan.parts.push_back(part(plan));
    plan.fails = below(3) == 0;
    plan.cancels = below(3) == 0;
    plan.producers = 1 + below(4) / 3;
    for (std::size_t i = 0, n = 5 + below(44); i < n; ++i) plan.steps.push_back(step(plan));
    plan.steps.push_back({Step::Kind::synchronize});
    return plan;
  }

 private:
  std::size_t below(std::size_t limit) { return random_() % limit; }

  /// Often one of a row of equal ones, sometimes anything.
  Part part(const Plan& plan) {
    const std::size_t buffer = below(plan.buffers.size()), bytes = plan.buffers[buffer];
    if (below(3) > 0) {
      const std::size_t eighth = bytes / 8;
      return {buffer, below(8) * eighth, eighth, 1, 0};
    }
    const std::size_t rows = 1 + below(3), stride = bytes / rows;
    const std::size_t row = 1 + below(std::min<std::size_t>(stride, 12));
    return {buffer, below(stride - row + 1), row, rows, stride};
  }

  Step step(const Plan& plan) {
    const std::size_t what = below(plan.fails ? 44 : 40);
    const std::size_t part = below(plan.parts.size());
    const bool brief = below(3) == 0, seldom = below(3) == 0;
    if (what == 0 || what >= 40) return {Step::Kind::synchronize, {}, 0, brief};
    if (what == 1) return {Step::Kind::flush, {}, part};
    if (what == 2) return {Step::Kind::acquire, {}, part, brief};
    if (what == 3) return {Step::Kind::change, {}, part, brief};
    if (what > 3 && what < 7 && plan.cancels) return {Step::Kind::cancel};
    if (what == 7 && seldom) return {Step::Kind::reopen};
    if (what == 8 && seldom) return {Step::Kind::release, {}, part};
    if (what == 9 && seldom) return {Step::Kind::inspect, {}, part};
    return {Step::Kind::task, task(plan)};
  }

  PlannedTask task(const Plan& plan) {
    PlannedTask task;
    task.seed = random_();
    for (std::size_t i = 0, n = 1 + below(3); i < n; ++i) {
      constexpr std::array kKinds = {WEIR_ACCESS_READ,    WEIR_ACCESS_READ,
                                     WEIR_ACCESS_WRITE,   WEIR_ACCESS_READ_WRITE,
                                     WEIR_ACCESS_COMMUTE, WEIR_ACCESS_REDUCE};
      task.accesses.push_back({below(plan.parts.size()), kKinds[below(kKinds.size())]});
    }
    task.throws = plan.fails && below(12) == 0;
    task.bytewise = below(2) == 0;
    if (below(5) == 0) task.priority = static_cast<int>(below(3)) - 1;
    const Platform& platform = *plan.platform;
    const std::size_t bound = below(8);
    if (bound < 2) task.domain = static_cast<int>(below(platform.count));
    if (bound == 2) task.place = static_cast<int>(below(platform.count * platform.places));
    task.init = below(3) == 0;
    return task;
  }

  std::mt19937_64 random_;
};

/// Commuting tasks come in any order, so none of their operands may be read or written otherwise by
/// the same task, and what they read besides must not depend on the order: keep it simple. A task
/// uses buffers of one producer.
void simplify(Plan& plan) {
  for (Step& step : plan.steps) {
    const bool commutes = std::any_of(step.task.accesses.begin(), step.task.accesses.end(),
                                      [](const Access& access) { return only_adds(access.kind); });
    if (!step.task.accesses.empty()) {
      const std::size_t producer = plan.producer_of(step);
      std::erase_if(step.task.accesses, [&](const Access& access) {
        return plan.parts[access.part].buffer % plan.producers != producer;
      });
    }
    if (!commutes) continue;
    const weir_access kind = step.task.seed % 2 == 0 ? WEIR_ACCESS_COMMUTE : WEIR_ACCESS_REDUCE;
    step.task.accesses = {{step.task.accesses[0].part, kind}};
  }
}

}  // namespace

const Platform& platform_named(std::string_view name) {
  const auto found = std::find_if(kPlatforms.begin(), kPlatforms.end(),
                                  [&](const Platform& each) { return each.name == name; });
  if (found == kPlatforms.end()) {
    throw std::runtime_error("no platform is named '" + std::string(name) + "'");
  }
  return *found;
}

bool overlap(const Part& a, const Part& b) {
  if (a.buffer != b.buffer) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < b.size(); ++j) {
      if (a.at(i) == b.at(j)) return true;
    }
  }
  return false;
}

std::string Step::describe() const {
  std::string line = kNames[static_cast<std::size_t>(kind)];
  if (brief) line += " briefly";
  if (has_part()) return line + " part " + std::to_string(part);
  for (const Access& access : task.accesses) {
    line += " " + std::to_string(access.part) + ":" + std::to_string(access.kind);
  }
  if (task.throws) line += " throws";
  if (task.bytewise) line += " bytewise";
  if (task.priority != 0) line += " priority " + std::to_string(task.priority);
  if (task.domain >= 0) line += " on " + std::to_string(task.domain);
  if (task.place >= 0) line += " at place " + std::to_string(task.place);
  if (task.init) line += " with init";
  return line;
}

std::string Plan::describe() const {
  std::string text = "seed " + std::to_string(seed) + " on " + platform->name + " with policy " +
                     policy + (fails ? ", some tasks throw" : "") + (cancels ? ", cancelled" : "") +
                     (producers > 1 ? ", by two threads\n" : "\n");
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Part& part = parts[i];
    text += "part " + std::to_string(i) + ": buffer " + std::to_string(part.buffer) + " at " +
            std::to_string(part.offset) + ", " + std::to_string(part.rows) + " rows of " +
            std::to_string(part.row) + " every " + std::to_string(part.stride) + "\n";
  }
  for (const Step& step : steps) text += step.describe() + "\n";
  return text;
}

Plan plan_of(std::uint64_t seed) {
  Plan plan = Planner(seed).plan();
  plan.seed = seed;
  simplify(plan);
  return plan;
}

}  // namespace weir::queue_model
