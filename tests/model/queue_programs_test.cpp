// Random programs of tasks against their sequential execution.
//
//   WEIR_TEST_PROGRAMS, WEIR_TEST_SEED: as for random_programs
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <weir/weir.hpp>

#include "hang_guard.hpp"
#include "settings.hpp"

namespace weir::model {
namespace {

using Bytes = std::vector<std::uint8_t>;

/// A region of a buffer: its bytes one after the other are `at(i)`.
struct Part {
  std::size_t buffer, offset, row, rows, stride;

  std::size_t size() const { return row * rows; }
  std::size_t at(std::size_t i) const { return offset + i / row * stride + i % row; }
  weir_region region() const { return {offset, {row, rows, 1}, {rows > 1 ? stride : 0, 0}}; }
};

struct Access {
  std::size_t part;
  weir_access kind;
};

struct PlannedTask {
  std::vector<Access> accesses;
  std::uint64_t seed;
  bool throws = false;
  int priority = 0;
  int domain = -1;  ///< the only one that may run it
};

struct Step {
  enum class Kind { task, acquire, change, flush, synchronize } kind = Kind::task;
  PlannedTask task;
  std::size_t part = 0;
};

struct Platform {
  const char* name;
  const char* domains;
  std::size_t count;   ///< of domains
  std::size_t places;  ///< of each domain
};

constexpr std::array<Platform, 7> kPlatforms = {{
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
}};
constexpr std::array<const char*, 5> kPolicies = {"finish", "steal", "locality", "static",
                                                  "round-robin"};

struct Plan {
  std::size_t platform = 0;
  std::string policy;
  std::vector<std::size_t> buffers;  ///< bytes
  std::vector<Part> parts;
  std::vector<Step> steps;
  bool fails = false;
};

class Planner {
 public:
  explicit Planner(std::uint64_t seed) : random_(seed) {}

  Plan plan() {
    Plan plan;
    plan.platform = below(kPlatforms.size());
    plan.policy = kPolicies[below(kPolicies.size())];
    for (std::size_t i = 0, n = 1 + below(3); i < n; ++i) plan.buffers.push_back(16 + below(80));
    for (std::size_t i = 0, n = 2 + below(10); i < n; ++i) plan.parts.push_back(part(plan));
    plan.fails = below(3) == 0;
    for (std::size_t i = 0, n = 5 + below(60); i < n; ++i) plan.steps.push_back(step(plan));
    plan.steps.push_back({Step::Kind::synchronize, {}, 0});
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
    const std::size_t what = below(40);
    const std::size_t part = below(plan.parts.size());
    if (what == 0) return {Step::Kind::synchronize, {}, 0};
    if (what == 1) return {Step::Kind::flush, {}, part};
    if (what == 2 && !plan.fails) return {Step::Kind::acquire, {}, part};
    if (what == 3 && !plan.fails) return {Step::Kind::change, {}, part};
    return {Step::Kind::task, task(plan), 0};
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
    if (below(5) == 0) task.priority = static_cast<int>(below(3)) - 1;
    const Platform& platform = kPlatforms[plan.platform];
    if (below(4) == 0) task.domain = static_cast<int>(below(platform.count));
    return task;
  }

  std::mt19937_64 random_;
};

void print(const Plan& plan) {
  for (std::size_t i = 0; i < plan.parts.size(); ++i) {
    const Part& part = plan.parts[i];
    std::cout << "part " << i << ": buffer " << part.buffer << " at " << part.offset << ", "
              << part.rows << " rows of " << part.row << " every " << part.stride << "\n";
  }
  for (const Step& step : plan.steps) {
    constexpr std::array kNames = {"task", "acquire", "change", "flush", "synchronize"};
    std::cout << kNames[static_cast<std::size_t>(step.kind)];
    if (step.kind != Step::Kind::task) std::cout << " part " << step.part;
    for (const Access& access : step.task.accesses) {
      std::cout << " " << access.part << ":" << access.kind;
    }
    if (step.task.throws) std::cout << " throws";
    if (step.task.domain >= 0) std::cout << " on " << step.task.domain;
    std::cout << "\n";
  }
}

std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = (a ^ (b + 0x9E3779B97F4A7C15u)) * 0xBF58476D1CE4E5B9u;
  return x ^ x >> 29;
}

bool only_adds(std::uint64_t kind) {
  return kind == WEIR_ACCESS_COMMUTE || kind == WEIR_ACCESS_REDUCE;
}

/// What a task does, on bytes that get(operand, i) returns a reference to. Operands that commute or
/// reduce only add; the others get what depends on all that is read, in its order.
template <class Get>
void mix(std::uint64_t seed, std::size_t operands, const std::uint64_t* kinds,
         const std::size_t* sizes, Get&& get) {
  std::uint64_t read = seed;
  for (std::size_t k = 0; k < operands; ++k) {
    const bool reads = (kinds[k] & WEIR_ACCESS_READ) != 0 && !only_adds(kinds[k]);
    for (std::size_t i = 0; reads && i < sizes[k]; ++i) read = mixed(read, get(k, i));
  }
  for (std::size_t k = 0; k < operands; ++k) {
    if ((kinds[k] & WEIR_ACCESS_WRITE) == 0) continue;
    for (std::size_t i = 0; i < sizes[k]; ++i) {
      const auto value = static_cast<std::uint8_t>(mixed(read + k, i));
      std::uint8_t& byte = get(k, i);
      byte = only_adds(kinds[k]) ? static_cast<std::uint8_t>(byte + value) : value;
    }
  }
}

std::uint8_t& byte_at(const weir_view& view, std::size_t i) {
  return static_cast<std::uint8_t*>(
      view.address)[i / view.extent[0] * view.stride[0] + i % view.extent[0]];
}

void run_mix(const Call& call) {
  if (call.scalar<std::uint64_t>(1) != 0) throw std::runtime_error("as planned");
  const std::size_t operands = call.handle()->operand_count;
  std::vector<std::uint64_t> kinds;
  std::vector<std::size_t> sizes;
  for (std::size_t k = 0; k < operands; ++k) {
    const weir_view& view = call.operand(k);
    kinds.push_back(call.scalar<std::uint64_t>(2 + k));
    sizes.push_back(view.extent[0] * view.extent[1]);
  }
  mix(call.scalar<std::uint64_t>(0), operands, kinds.data(), sizes.data(),
      [&](std::size_t k, std::size_t i) -> std::uint8_t& { return byte_at(call.operand(k), i); });
}

void run_combine(const Call& call) {
  const weir_view &target = call.operand(0), &partial = call.operand(1);
  for (std::size_t i = 0; i < target.extent[0] * target.extent[1]; ++i) {
    std::uint8_t& byte = byte_at(target, i);
    byte = static_cast<std::uint8_t>(byte + byte_at(partial, i));
  }
}

/// Commuting tasks come in any order, so none of their operands may be read or written otherwise by
/// the same task, and what they read besides must not depend on the order: keep it simple. Which of
/// them a failure poisons depends on their order, too.
void simplify(Plan& plan) {
  for (Step& step : plan.steps) {
    const bool commutes = std::any_of(step.task.accesses.begin(), step.task.accesses.end(),
                                      [](const Access& access) { return only_adds(access.kind); });
    for (Access& access : step.task.accesses) {
      const bool ordered = plan.fails && only_adds(access.kind);
      if (ordered) access.kind = WEIR_ACCESS_READ_WRITE;
    }
    if (!commutes || plan.fails) continue;
    const weir_access kind = step.task.seed % 2 == 0 ? WEIR_ACCESS_COMMUTE : WEIR_ACCESS_REDUCE;
    step.task.accesses = {{step.task.accesses[0].part, kind}};
  }
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

/// The sequential execution, told of failures as they were.
class Oracle {
 public:
  explicit Oracle(const Plan& plan) : plan_(plan) {
    for (const std::size_t bytes : plan.buffers) {
      memory.emplace_back(bytes, 0);
      known.emplace_back(bytes, true);
      bad_.emplace_back(bytes, false);
    }
  }

  /// Returns what is wrong with a task that ended so, "" if nothing.
  std::string follow(const PlannedTask& task, weir_status status) {
    bool reads_bad = false, reads_unknown = false, reachable = task.throws;
    for (const Access& access : task.accesses) {
      const Part& part = plan_.parts[access.part];
      for (std::size_t i = 0; (access.kind & WEIR_ACCESS_READ) != 0 && i < part.size(); ++i) {
        reads_bad = reads_bad || bad_[part.buffer][part.at(i)];
        reads_unknown = reads_unknown || !known[part.buffer][part.at(i)];
      }
      for (const auto& [other, kind] : reached_) {
        const bool writes = ((kind | access.kind) & WEIR_ACCESS_WRITE) != 0;
        reachable = reachable || (writes && overlap(plan_.parts[other], part));
      }
    }
    if (reachable) reached_.insert(reached_.end(), task.accesses.begin(), task.accesses.end());
    const bool ok = status == WEIR_STATUS_OK;
    if (ok && task.throws) return "it threw and is OK";
    if (ok && reads_bad) return "it read what a failed task was to write, and is OK";
    if (!ok && !reachable) return "it is poisoned and depends on no failed task";
    if (ok && !reads_unknown) apply(task);
    for (const Access& access : task.accesses) {
      const Part& part = plan_.parts[access.part];
      for (std::size_t i = 0; (access.kind & WEIR_ACCESS_WRITE) != 0 && i < part.size(); ++i) {
        known[part.buffer][part.at(i)] = ok && !reads_unknown;
        bad_[part.buffer][part.at(i)] = !ok;
      }
    }
    return "";
  }

  void apply(const PlannedTask& task) {
    std::vector<std::uint64_t> kinds;
    std::vector<std::size_t> sizes;
    for (const Access& access : task.accesses) {
      kinds.push_back(access.kind);
      sizes.push_back(plan_.parts[access.part].size());
    }
    mix(task.seed, kinds.size(), kinds.data(), sizes.data(),
        [&](std::size_t k, std::size_t i) -> std::uint8_t& {
          const Part& part = plan_.parts[task.accesses[k].part];
          return memory[part.buffer][part.at(i)];
        });
  }

  void synchronized() {
    for (auto& flags : bad_) flags.assign(flags.size(), false);
    reached_.clear();
  }

  std::vector<Bytes> memory;
  std::vector<std::vector<bool>> known;

 private:
  const Plan& plan_;
  std::vector<std::vector<bool>> bad_;  ///< to be written by a task that failed
  std::vector<Access> reached_;         ///< of tasks that failed, or depend on such
};

/// Runs a plan and compares.
class Execution {
 public:
  explicit Execution(const Plan& plan)
      : plan_(plan),
        platform_(kPlatforms[plan.platform]),
        runtime_(platform_.domains),
        oracle_(plan) {
    kernel_ = runtime_.kernel("mix", run_mix);
    combine_ = runtime_.kernel("combine", run_combine);
    for (const std::size_t bytes : plan.buffers) memory_.emplace_back(bytes, 0);
    for (Bytes& bytes : memory_) buffers_.push_back(runtime_.wrap(bytes));
    std::vector<weir_place*> handles;
    for (std::size_t i = 0; i < platform_.count; ++i) {
      for (Place& place : runtime_.domain(i).partition(platform_.places)) {
        handles.push_back(place.handle());
        places_.push_back(std::move(place));
      }
    }
    weir_queue_options options = WEIR_QUEUE_OPTIONS_INIT;
    options.places = handles.data();
    options.place_count = handles.size();
    options.policy = plan.policy.c_str();
    options.no_models = true;
    queue_ = runtime_.queue(options);
  }

  std::string run() {
    for (const Step& step : plan_.steps) {
      const std::string wrong = perform(step);
      if (!wrong.empty()) return wrong;
    }
    return "";
  }

 private:
  Region region(const Part& part) const { return {buffers_[part.buffer].handle(), part.region()}; }

  std::string perform(const Step& step) {
    switch (step.kind) {
      case Step::Kind::task: return submit(step.task);
      case Step::Kind::flush: queue_.flush(region(plan_.parts[step.part])); return "";
      case Step::Kind::acquire: return acquire(plan_.parts[step.part], WEIR_ACCESS_READ);
      case Step::Kind::change: return acquire(plan_.parts[step.part], WEIR_ACCESS_READ_WRITE);
      case Step::Kind::synchronize: return synchronize();
    }
    return "";
  }

  std::string submit(const PlannedTask& task) {
    std::vector<Operand> operands;
    std::vector<Scalar> scalars = {task.seed, std::uint64_t{task.throws}};
    for (const Access& access : task.accesses) {
      operands.emplace_back(region(plan_.parts[access.part]), access.kind);
      scalars.emplace_back(std::uint64_t{access.kind});
    }
    TaskOptions options;
    options.priority = task.priority;
    options.domains = task.domain < 0 ? 0 : std::uint64_t{1} << task.domain;
    options.combine = combine_.handle();
    Event event;
    try {
      event = queue_.submit(kernel_, operands, scalars, options);
    } catch (const Error& error) {  // operands that overlap, or are too large, for all its places
      if (error.status() != WEIR_STATUS_UNSUPPORTED) return error.what();
      return "";
    }
    if (plan_.fails) {
      tasks_.push_back({&task, event});
    } else {
      oracle_.apply(task);
    }
    return "";
  }

  std::string acquire(const Part& part, weir_access access) {
    queue_.acquire(region(part), access);
    for (std::size_t i = 0; i < part.size(); ++i) {
      if (memory_[part.buffer][part.at(i)] != oracle_.memory[part.buffer][part.at(i)]) {
        return "byte " + std::to_string(part.at(i)) + " of buffer " + std::to_string(part.buffer) +
               " is wrong after acquire";
      }
    }
    if (access == WEIR_ACCESS_READ) return "";
    for (std::size_t i = 0; i < part.size(); ++i) {
      memory_[part.buffer][part.at(i)] ^= 0x5A;
      oracle_.memory[part.buffer][part.at(i)] ^= 0x5A;
    }
    return "";
  }

  std::string synchronize() {
    bool failed = false;
    try {
      queue_.synchronize();
    } catch (const Error& error) {
      failed = true;
      if (!plan_.fails) return std::string("synchronize says: ") + error.what();
    }
    bool should_fail = false;
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
      const weir_event_info info = tasks_[i].event.info();
      if (!info.complete) return "task " + std::to_string(i) + " is not complete";
      const std::string wrong = oracle_.follow(*tasks_[i].task, info.status);
      if (!wrong.empty()) print_ends();
      if (!wrong.empty()) return "task " + std::to_string(i) + ": " + wrong + ": " + info.message;
      should_fail = should_fail || info.status != WEIR_STATUS_OK;
    }
    if (failed != should_fail) return "synchronize does not say what the tasks say";
    tasks_.clear();
    oracle_.synchronized();
    for (std::size_t b = 0; b < memory_.size(); ++b) {
      for (std::size_t i = 0; i < memory_[b].size(); ++i) {
        if (oracle_.known[b][i] && memory_[b][i] != oracle_.memory[b][i]) {
          return "byte " + std::to_string(i) + " of buffer " + std::to_string(b) + " is wrong";
        }
      }
    }
    return "";
  }

  /// Of the tasks since the last synchronise.
  void print_ends() const {
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
      const weir_event_info info = tasks_[i].event.info();
      std::cout << i << ":";
      for (const Access& access : tasks_[i].task->accesses) {
        std::cout << " " << access.part << ":" << access.kind;
      }
      std::cout << " " << weir_status_name(info.status) << " " << info.message << "\n";
    }
  }

  struct Submitted {
    const PlannedTask* task;
    Event event;
  };

  const Plan& plan_;
  const Platform& platform_;
  Runtime runtime_;
  Kernel kernel_{nullptr}, combine_{nullptr};
  std::vector<Bytes> memory_;
  std::vector<Buffer> buffers_;
  std::vector<Place> places_;
  Queue queue_;
  std::vector<Submitted> tasks_;
  Oracle oracle_;
};

#ifdef __SANITIZE_THREAD__
constexpr std::uint64_t kPrograms = 1000;
#else
constexpr std::uint64_t kPrograms = 3000;
#endif

/// Returns what is wrong, "" if nothing.
std::string run_plan(const Plan& plan, const std::string& replay) {
  const HangGuard guard(replay);
  try {
    return Execution(plan).run();
  } catch (const std::exception& error) {
    return std::string("it throws: ") + error.what();
  }
}

TEST(QueuePrograms, EqualTheirSequentialExecution) {
  const std::uint64_t programs = setting("WEIR_TEST_PROGRAMS", kPrograms);
  const std::uint64_t first = setting("WEIR_TEST_SEED", 1);
  for (std::uint64_t seed = first; seed < first + programs; ++seed) {
    Plan plan = Planner(seed).plan();
    simplify(plan);
    const std::string replay =
        "WEIR_TEST_SEED=" + std::to_string(seed) + " WEIR_TEST_PROGRAMS=1 queue_programs";
    const std::string wrong = run_plan(plan, replay);
    if (!wrong.empty()) print(plan);
    ASSERT_EQ(wrong, "") << "on " << kPlatforms[plan.platform].name << " with policy "
                         << plan.policy << (plan.fails ? ", some tasks throwing" : "")
                         << "; again: " << replay;
  }
  std::cout << "proof: " << grouped(programs) << " programs\n";
}

}  // namespace
}  // namespace weir::model
