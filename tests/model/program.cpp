#include "program.hpp"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <sstream>

namespace weir::model {

std::vector<std::size_t> Part::words() const {
  std::vector<std::size_t> list;
  list.reserve(planes * rows * row);
  each_word([&](std::size_t word) { list.push_back(word); });
  return list;
}

std::uint64_t Part::mask() const {
  std::uint64_t bits = 0;
  each_word([&](std::size_t word) { bits |= std::uint64_t{1} << word; });
  return bits;
}

weir_region Part::region() const {
  constexpr std::size_t word = sizeof(std::uint64_t);
  return {offset * word, {row * word, rows, planes}, {row_stride * word, plane_stride * word}};
}

namespace {

class Planner {
 public:
  Planner(std::uint64_t seed, const Platform& platform) : random_(seed), platform_(platform) {
    program_.seed = seed;
  }

  Program plan() {
    // Sizes vary over orders of magnitude: most bugs need one of them large.
    for (std::size_t i = 1 + below(4); i > 0; --i) program_.buffer_aliases.push_back(below(4) != 0);
    for (std::size_t i = up_to_power(5); i > 0; --i) {
      StreamPlan stream;
      stream.place = below(platform_.places.size());
      stream.policy =
          below(10) == 0 ? WEIR_DEPENDENCE_POLICY_FIFO : WEIR_DEPENDENCE_POLICY_OPERANDS;
      stream.priority = static_cast<int>(below(3)) - 1;
      program_.streams.push_back(stream);
    }
    program_.threads = below(4) == 0 ? 1 + below(4) : 1;
    failures_ = below(3) == 0;
    cancels_ = below(5) == 0;
    for (std::size_t i = up_to_power(7); i > 0; --i) add_step();
    return std::move(program_);
  }

 private:
  std::size_t below(std::size_t limit) { return random_() % limit; }
  std::size_t up_to_power(std::size_t most) { return 1 + below(std::size_t{1} << below(most + 1)); }
  std::size_t domain_of(std::size_t stream) const {
    return platform_.places[program_.streams[stream].place];
  }

  /// A part that an earlier step has too, or any other. Readers of one region must all be kept.
  Part random_part(std::size_t domain) {
    if (!program_.steps.empty() && below(4) == 0) {
      const Step& step = program_.steps[below(program_.steps.size())];
      Part part = step.parts.empty() ? Part() : step.parts[below(step.parts.size())];
      part.access = static_cast<weir_access>(1 + below(3));
      if (!step.parts.empty() &&
          part.memory == memory_of(platform_, program_, domain, part.buffer)) {
        return part;
      }
    }
    Part part;
    part.buffer = below(program_.buffer_aliases.size());
    part.memory = memory_of(platform_, program_, domain, part.buffer);
    part.row = 1 + below(6);
    if (below(3) == 0) {
      part.rows = 1 + below(4);
      part.row_stride = part.row + below(4);
    }
    std::size_t span = (part.rows - 1) * part.row_stride + part.row;
    if (below(6) == 0 && span * 2 < kWords) {
      part.planes = 2;
      part.plane_stride = span + below(4);
      span += part.plane_stride;
    }
    while (span > kWords) {
      part.planes = 1;
      --part.rows;
      span = (part.rows - 1) * part.row_stride + part.row;
    }
    part.offset = below(kWords - span + 1);
    part.access = static_cast<weir_access>(1 + below(3));
    return part;
  }

  Step& add(StepKind kind) {
    Step& step = program_.steps.emplace_back();
    step.kind = kind;
    step.stream = below(program_.streams.size());
    step.strict = below(4) == 0;
    return step;
  }

  void add_step() {
    const std::size_t dice = below(100);
    if (dice < 58) {
      add_compute();
    } else if (dice < 82) {
      add_transfer();
    } else if (dice < 90) {
      add_sync();
    } else if (dice < 93) {
      add_host_step(StepKind::host_wait);
    } else if (dice < 95) {
      add(StepKind::host_synchronize);
    } else if (dice < 97) {
      add_host_step(StepKind::host_callback);
    } else if (dice < 98) {
      add_host_step(StepKind::host_query);
    } else if (cancels_) {
      add(StepKind::host_cancel);
    }
  }

  void add_compute() {
    Step& step = add(StepKind::compute);
    for (std::size_t i = below(4); i > 0; --i) {
      step.parts.push_back(random_part(domain_of(step.stream)));
    }
    step.fails = failures_ && below(12) == 0;
    step.parallel = below(8) == 0;
    step.key = random_();
  }

  /// Between host memory and the stream's domain, or two domains that reach each other.
  void add_transfer() {
    const std::size_t stream = below(program_.streams.size());
    const std::size_t domain = domain_of(stream);
    Part source = random_part(domain), target = source;
    source.access = WEIR_ACCESS_READ;
    target.access = WEIR_ACCESS_WRITE;
    if (below(3) == 0) target.buffer = below(program_.buffer_aliases.size());
    const bool in = below(2) == 0;
    Part& here = in ? target : source;
    Part& there = in ? source : target;
    here.memory = memory_of(platform_, program_, domain, here.buffer);
    there.memory = 0;
    const std::size_t peer = below(platform_.aliases.size());
    const bool reached = platform_.linked || peer == domain;
    if (below(3) == 0 && reached && !platform_.aliases[peer] && !platform_.aliases[domain]) {
      there.memory = memory_of(platform_, program_, peer, there.buffer);
    }
    const bool within_host = source.memory == 0 && target.memory == 0;
    const bool own_end = source.memory == domain + 1 || target.memory == domain + 1;
    if (within_host ? !platform_.aliases[domain] : !own_end) return;
    const bool same = source.buffer == target.buffer && source.memory == target.memory;
    if (same && below(2) == 0) {
      const std::size_t span = target.words().back() - target.offset + 1;
      target.offset = below(kWords - span + 1);
      const bool equal = target.offset == source.offset;
      if (!equal && (target.mask() & source.mask()) != 0) return;
    }
    Step& step = add(StepKind::transfer);
    step.stream = stream;
    step.parts = {source, target};
  }

  std::vector<std::size_t> random_events() {
    std::vector<std::size_t> events;
    for (std::size_t i = below(4); i > 0 && !program_.steps.empty(); --i) {
      const std::size_t step = below(program_.steps.size());
      if (program_.steps[step].enqueues()) events.push_back(step);
    }
    return events;
  }

  void add_sync() {
    std::vector<std::size_t> events = random_events();
    Step& step = add(StepKind::sync);
    step.scope = static_cast<weir_sync_scope>(below(3));
    step.events = std::move(events);
    if (step.scope != WEIR_SYNC_SCOPE_OPERANDS) return;
    for (std::size_t i = 1 + below(2); i > 0; --i) {
      Part part = random_part(domain_of(step.stream));
      part.access = WEIR_ACCESS_READ_WRITE;
      step.parts.push_back(part);
    }
  }

  void add_host_step(StepKind kind) {
    std::vector<std::size_t> events = random_events();
    if (events.empty()) return;
    if (kind != StepKind::host_wait) events.erase(events.begin() + 1, events.end());
    Step& step = add(kind);
    step.events = std::move(events);
    step.wait_any = below(2) == 0;
  }

  std::mt19937_64 random_;
  const Platform& platform_;
  Program program_;
  bool failures_ = false;
  bool cancels_ = false;
};

/// Puts a sync before each step that conflicts with one of another stream.
class Orderer {
 public:
  Orderer(const Program& plan, const Platform& platform)
      : plan_(plan), platform_(platform), keeps_all_(plan.cancels()) {
    result_ = {plan.seed, plan.threads, plan.buffer_aliases, plan.streams, {}};
  }

  Program run() {
    for (Step step : plan_.steps) {
      for (std::size_t& event : step.events) event = moved_to_[event];
      if (step.kind == StepKind::compute || step.kind == StepKind::transfer) order(step);
      moved_to_.push_back(result_.steps.size());
      note(step);
      result_.steps.push_back(std::move(step));
    }
    return std::move(result_);
  }

 private:
  struct Access {
    std::size_t step;
    bool writes;
    std::uint64_t words;  ///< a mask of those that no step wrote since
  };
  using Instance = std::array<std::size_t, 2>;  ///< buffer, memory

  void order(const Step& step) {
    const std::set<std::size_t> conflicts = conflicts_of(step);
    if (conflicts.empty()) return;
    Step sync;
    sync.kind = StepKind::sync;
    sync.ordering = true;
    sync.stream = step.stream;
    sync.events.assign(conflicts.begin(), conflicts.end());
    const std::size_t domain = platform_.places[plan_.streams[step.stream].place];
    for (Part part : step.parts) {
      if (part.memory != memory_of(platform_, plan_, domain, part.buffer)) continue;
      part.access = WEIR_ACCESS_READ_WRITE;
      sync.parts.push_back(part);
    }
    sync.scope =
        step.strict || sync.parts.empty() ? WEIR_SYNC_SCOPE_STREAM : WEIR_SYNC_SCOPE_OPERANDS;
    if (sync.scope == WEIR_SYNC_SCOPE_STREAM) sync.parts.clear();
    result_.steps.push_back(std::move(sync));
  }

  std::set<std::size_t> conflicts_of(const Step& step) const {
    std::set<std::size_t> conflicts;
    for (const Part& part : step.parts) {
      const auto found = accesses_.find({part.buffer, part.memory});
      if (found == accesses_.end()) continue;
      const std::uint64_t words = part.mask();
      for (const Access& access : found->second) {
        const bool other = result_.steps[access.step].stream != step.stream;
        const bool meets = (access.words & words) != 0 && (access.writes || part.writes());
        if (other && meets) conflicts.insert(access.step);
      }
    }
    return conflicts;
  }

  /// A write takes the place of all earlier accesses, which it waited for, unless it may be
  /// cancelled.
  void note(const Step& step) {
    if (step.kind != StepKind::compute && step.kind != StepKind::transfer) return;
    for (const Part& part : step.parts) {
      std::vector<Access>& accesses = accesses_[{part.buffer, part.memory}];
      const std::uint64_t words = part.mask();
      if (part.writes() && !keeps_all_) {
        for (Access& access : accesses) access.words &= ~words;
        std::erase_if(accesses, [](const Access& access) { return access.words == 0; });
      }
      accesses.push_back({result_.steps.size(), part.writes(), words});
    }
  }

  const Program& plan_;
  const Platform& platform_;
  const bool keeps_all_;
  Program result_;
  std::vector<std::size_t> moved_to_;
  std::map<Instance, std::vector<Access>> accesses_;
};

}  // namespace

Program plan_program(std::uint64_t seed, const Platform& platform) {
  return Planner(seed, platform).plan();
}

Program ordered(const Program& plan, const Platform& platform) {
  return Orderer(plan, platform).run();
}

Program without(const Program& plan, const std::vector<bool>& taken_out) {
  Program result = plan;
  result.steps.clear();
  std::vector<std::size_t> moved_to(plan.steps.size());
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    if (taken_out[i]) continue;
    Step step = plan.steps[i];
    std::erase_if(step.events, [&](std::size_t event) { return taken_out[event]; });
    for (std::size_t& event : step.events) event = moved_to[event];
    const bool about_events = step.kind == StepKind::host_wait ||
                              step.kind == StepKind::host_callback ||
                              step.kind == StepKind::host_query;
    if (about_events && step.events.empty()) {
      // Takes itself out: nothing names a host step.
      continue;
    }
    moved_to[i] = result.steps.size();
    result.steps.push_back(std::move(step));
  }
  return result;
}

bool Program::cancels() const {
  return std::any_of(steps.begin(), steps.end(),
                     [](const Step& step) { return step.kind == StepKind::host_cancel; });
}

std::string Program::list(const Platform& platform) const {
  std::string lines;
  for (std::size_t i = 0; i < steps.size(); ++i) lines += describe(i, platform) + "\n";
  return lines;
}

std::string Program::describe(std::size_t index, const Platform& platform) const {
  static const char* const kinds[] = {"compute",     "transfer", "sync",     "wait",
                                      "synchronize", "cancel",   "callback", "query"};
  const Step& step = steps[index];
  std::ostringstream text;
  text << "step " << index << " " << kinds[static_cast<int>(step.kind)] << " stream " << step.stream
       << " (domain " << platform.places[streams[step.stream].place] << ")";
  for (const Part& part : step.parts) {
    text << " [buffer " << part.buffer << " memory " << part.memory << " words " << part.offset
         << "+" << part.row << "x" << part.rows << "x" << part.planes << "/" << part.row_stride
         << "/" << part.plane_stride << (part.reads() ? " r" : " ") << (part.writes() ? "w" : "")
         << "]";
  }
  for (const std::size_t event : step.events) text << " after " << event;
  if (step.kind == StepKind::sync) text << " scope " << step.scope;
  if (step.fails) text << " fails";
  if (step.parallel) text << " parallel";
  return text.str();
}

}  // namespace weir::model
