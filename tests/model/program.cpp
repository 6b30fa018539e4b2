#include "program.hpp"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <sstream>

namespace weir::model {

std::vector<std::size_t> Part::words() const {
  std::vector<std::size_t> list;
  for (std::size_t p = 0; p < planes; ++p) {
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t w = 0; w < row; ++w) {
        list.push_back(offset + p * plane_stride + r * row_stride + w);
      }
    }
  }
  return list;
}

std::uint64_t Part::mask() const {
  std::uint64_t bits = 0;
  for (const std::size_t word : words()) bits |= std::uint64_t{1} << word;
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
    for (std::size_t i = 1 + below(4); i > 0; --i) program_.buffer_aliases.push_back(below(4) != 0);
    for (std::size_t i = 1 + below(8); i > 0; --i) {
      StreamPlan stream;
      stream.place = below(platform_.places.size());
      stream.policy =
          below(10) == 0 ? WEIR_DEPENDENCE_POLICY_FIFO : WEIR_DEPENDENCE_POLICY_OPERANDS;
      stream.priority = static_cast<int>(below(3)) - 1;
      program_.streams.push_back(stream);
    }
    failures_ = below(3) == 0;
    // Lengths vary over orders of magnitude.
    const std::size_t steps = std::size_t{1} << below(7);
    for (std::size_t i = 1 + below(steps); i > 0; --i) add_step();
    return std::move(program_);
  }

 private:
  /// Accesses to one word of one instance that a later access may conflict with.
  struct WordHistory {
    std::size_t writer = kNone;
    std::set<std::size_t> readers;
  };
  static constexpr std::size_t kNone = SIZE_MAX;

  std::size_t below(std::size_t limit) { return random_() % limit; }
  std::size_t domain_of(std::size_t stream) const {
    return platform_.places[program_.streams[stream].place];
  }

  Part random_part(std::size_t domain) {
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

  void add_step() {
    const std::size_t dice = below(100);
    if (dice < 60) {
      add_compute();
    } else if (dice < 85) {
      add_transfer();
    } else if (dice < 94) {
      add_sync();
    } else if (dice < 97) {
      add_host_wait();
    } else {
      Step step;
      step.kind = StepKind::host_synchronize;
      step.stream = below(program_.streams.size());
      program_.steps.push_back(step);
    }
  }

  void add_compute() {
    Step step;
    step.stream = below(program_.streams.size());
    for (std::size_t i = below(4); i > 0; --i) {
      step.parts.push_back(random_part(domain_of(step.stream)));
    }
    step.fails = failures_ && below(12) == 0;
    step.parallel = below(8) == 0;
    step.key = random_();
    enqueue(std::move(step));
  }

  /// Between host memory and the stream's domain, or two domains that reach each other.
  void add_transfer() {
    Step step;
    step.kind = StepKind::transfer;
    step.stream = below(program_.streams.size());
    const std::size_t domain = domain_of(step.stream);
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
    if (below(3) == 0 && !platform_.aliases[peer] && !platform_.aliases[domain]) {
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
    step.parts = {source, target};
    enqueue(std::move(step));
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
    Step step;
    step.kind = StepKind::sync;
    step.stream = below(program_.streams.size());
    step.scope = static_cast<weir_sync_scope>(below(3));
    step.events = random_events();
    if (step.scope == WEIR_SYNC_SCOPE_OPERANDS) {
      for (std::size_t i = 1 + below(2); i > 0; --i) {
        Part part = random_part(domain_of(step.stream));
        part.access = WEIR_ACCESS_READ_WRITE;
        step.parts.push_back(part);
      }
    }
    program_.steps.push_back(std::move(step));
  }

  void add_host_wait() {
    Step step;
    step.kind = StepKind::host_wait;
    step.events = random_events();
    step.wait_any = below(2) == 0;
    if (!step.events.empty()) program_.steps.push_back(std::move(step));
  }

  /// Adds a step after a sync for whatever of other streams it conflicts with.
  void enqueue(Step step) {
    std::set<std::size_t> conflicts;
    for (const Part& part : step.parts) {
      for (const std::size_t word : part.words()) {
        const WordHistory& history = words_[{part.buffer, part.memory, word}];
        if (history.writer != kNone) conflicts.insert(history.writer);
        if (part.writes()) conflicts.insert(history.readers.begin(), history.readers.end());
      }
    }
    std::erase_if(conflicts,
                  [&](std::size_t other) { return program_.steps[other].stream == step.stream; });
    if (!conflicts.empty()) {
      Step sync;
      sync.kind = StepKind::sync;
      sync.stream = step.stream;
      sync.events.assign(conflicts.begin(), conflicts.end());
      const std::size_t domain = domain_of(step.stream);
      for (Part part : step.parts) {
        if (part.memory != memory_of(platform_, program_, domain, part.buffer)) continue;
        part.access = WEIR_ACCESS_READ_WRITE;
        sync.parts.push_back(part);
      }
      sync.scope =
          below(4) == 0 || sync.parts.empty() ? WEIR_SYNC_SCOPE_STREAM : WEIR_SYNC_SCOPE_OPERANDS;
      if (sync.scope == WEIR_SYNC_SCOPE_STREAM) sync.parts.clear();
      program_.steps.push_back(std::move(sync));
    }
    const std::size_t index = program_.steps.size();
    for (const Part& part : step.parts) {
      for (const std::size_t word : part.words()) {
        WordHistory& history = words_[{part.buffer, part.memory, word}];
        if (part.writes()) {
          history.writer = index;
          history.readers.clear();
        } else if (history.writer != index) {
          history.readers.insert(index);
        }
      }
    }
    program_.steps.push_back(std::move(step));
  }

  std::mt19937_64 random_;
  const Platform& platform_;
  Program program_;
  bool failures_ = false;
  std::map<std::array<std::size_t, 3>, WordHistory> words_;
};

}  // namespace

Program plan_program(std::uint64_t seed, const Platform& platform) {
  return Planner(seed, platform).plan();
}

std::string Program::describe(std::size_t index, const Platform& platform) const {
  static const char* const kinds[] = {"compute", "transfer", "sync", "host wait", "synchronize"};
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
  return text.str();
}

}  // namespace weir::model
