// Random graphs beside a sequential model, through the public interface.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <weir/graph.hpp>

#include "gate.hpp"

namespace weir {

constexpr std::size_t kCells = 16;

/// A call: it mixes what it reads, its number and a parameter into each cell that it writes.
struct Step {
  struct Use {
    std::size_t buffer, first, count;
    weir_access access;
  };
  std::vector<Use> uses;
  bool parallel = false;
};

inline std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
  return (a ^ b) * 0x9E3779B97F4A7C15u + (a >> 7);
}

inline std::vector<Step> random_steps(std::mt19937& random) {
  std::vector<Step> steps(1 + random() % 40);
  for (Step& step : steps) {
    step.parallel = random() % 16 == 0;
    std::set<std::pair<std::size_t, std::size_t>> written;
    for (std::size_t i = 1 + random() % 4; i > 0; --i) {
      const std::size_t count = 1 + random() % 4, buffer = random() % 3;
      const std::size_t first = random() % (kCells - count + 1);
      auto access = static_cast<weir_access>(1 + random() % 3);
      // Operands of one call that it writes must not overlap others of it.
      const bool clear = std::ranges::none_of(step.uses, [&](const Step::Use& other) {
        return other.buffer == buffer && first < other.first + other.count &&
               other.first < first + count && ((access | other.access) & WEIR_ACCESS_WRITE) != 0;
      });
      if (clear) step.uses.push_back({buffer, first, count, access});
    }
  }
  return steps;
}

using Memory = std::vector<std::vector<std::uint64_t>>;

/// Does what the kernel does, on cells that a function gives.
template <class Cell>
void apply(const Step& step, std::uint64_t number, std::uint64_t parameter, const Cell& cell) {
  std::uint64_t seen = mixed(number, parameter);
  for (std::size_t use = 0; use < step.uses.size(); ++use) {
    if ((step.uses[use].access & WEIR_ACCESS_READ) == 0) continue;
    for (std::size_t i = 0; i < step.uses[use].count; ++i) seen = mixed(seen, *cell(use, i));
  }
  for (std::size_t use = 0; use < step.uses.size(); ++use) {
    if ((step.uses[use].access & WEIR_ACCESS_WRITE) == 0) continue;
    for (std::size_t i = 0; i < step.uses[use].count; ++i)
      *cell(use, i) = mixed(seen, i + 100 * use);
  }
}

inline bool conflict(const Step& a, const Step& b) {
  for (const Step::Use& one : a.uses) {
    for (const Step::Use& other : b.uses) {
      const bool touch = one.buffer == other.buffer && one.first < other.first + other.count &&
                         other.first < one.first + one.count;
      if (touch && ((one.access | other.access) & WEIR_ACCESS_WRITE) != 0) return true;
    }
  }
  return false;
}

/// Runs the steps in order, on the buffers that `bound` names. Those in `failing` fail, and what
/// depends on them is left out. Returns the first failed step, or their number.
inline std::size_t run_model(const std::vector<Step>& steps, Memory& memory,
                             const std::vector<std::size_t>& bound, std::uint64_t parameter,
                             const std::set<std::size_t>& failing) {
  std::size_t first = steps.size();
  std::vector<bool> lost(steps.size());
  for (std::size_t at = 0; at < steps.size(); ++at) {
    for (std::size_t before = 0; before < at; ++before)
      lost[at] = lost[at] || (lost[before] && conflict(steps[before], steps[at]));
    if (lost[at]) continue;
    if (failing.contains(at)) {
      lost[at] = true;
      first = std::min(first, at);
      continue;
    }
    apply(steps[at], at, parameter, [&](std::size_t use, std::size_t i) {
      const Step::Use& part = steps[at].uses[use];
      return &memory[bound[part.buffer]][part.first + i];
    });
  }
  return first;
}

/// The program of a test: its steps, five buffers, and which steps fail in the next run.
class RandomProgram {
 public:
  RandomProgram(const Runtime& runtime, std::mt19937& random)
      : steps_(random_steps(random)), memory_(5, std::vector<std::uint64_t>(kCells)) {
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      buffers_.push_back(runtime.buffer(kCells * sizeof(std::uint64_t), "b"));
      for (std::size_t cell = 0; cell < kCells; ++cell) {
        buffers_[i].data<std::uint64_t>()[cell] = memory_[i][cell] = 1000 * i + cell;
      }
    }
    for (const bool parallel : {false, true}) {
      kernels_.push_back(runtime.kernel(
          parallel ? "parallel" : "serial",
          [this](Call& call) {
            const auto number = call.scalar<std::size_t>(0);
            if (failing_.contains(number)) throw std::runtime_error("wanted");
            apply(steps_[number], number, call.scalar<std::uint64_t>(1),
                  [&](std::size_t use, std::size_t i) {
                    return call.span<std::uint64_t>(use).data() + i;
                  });
          },
          parallel ? WEIR_KERNEL_SHAPE_PARALLEL : WEIR_KERNEL_SHAPE_SERIAL));
    }
  }

  const std::vector<Step>& steps() const { return steps_; }
  template <class Visit>
  void each_buffer(const Visit& visit) const {
    for (const Buffer& buffer : buffers_) visit(buffer);
  }

  /// Calls submit(kernel, operands, scalars) for each step.
  template <class Submit>
  void submit(const Submit& submit) const {
    for (std::size_t at = 0; at < steps_.size(); ++at) {
      std::vector<Operand> operands;
      for (const Step::Use& use : steps_[at].uses) {
        operands.emplace_back(buffers_[use.buffer].range(use.first * 8, use.count * 8), use.access);
      }
      const std::vector<Scalar> scalars{Scalar(std::uint64_t{at}), parameter(0, std::uint64_t{7})};
      submit(kernels_[steps_[at].parallel ? 1 : 0], operands, scalars);
    }
  }

  /// The same run in the model. Returns the first failed step, or the number of steps.
  std::size_t model(const std::vector<std::size_t>& bound, std::uint64_t value,
                    std::set<std::size_t> failing = {}) {
    failing_ = std::move(failing);
    return run_model(steps_, memory_, bound, value, failing_);
  }
  std::vector<Binding> bindings(const std::vector<std::size_t>& bound) const {
    std::vector<Binding> list;
    std::set<std::size_t> used;
    for (const Step& step : steps_) {
      for (const Step::Use& use : step.uses) used.insert(use.buffer);
    }
    for (const std::size_t at : used) list.emplace_back(buffers_[at], buffers_[bound[at]]);
    return list;
  }
  /// Returns the number of a buffer that differs from the model, "" if none does.
  std::string difference() const {
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      const auto* const cells = buffers_[i].data<std::uint64_t>();
      if (!std::equal(memory_[i].begin(), memory_[i].end(), cells))
        return "buffer " + std::to_string(i) + " differs from the model";
    }
    return "";
  }

 private:
  const std::vector<Step> steps_;
  Memory memory_;
  std::vector<Buffer> buffers_;
  std::vector<Kernel> kernels_;
  std::set<std::size_t> failing_;
};

/// Records a random program in a queue or a stream, and launches it with other buffers, parameters
/// and failures. `finish` waits until host memory has all results. Returns what is wrong.
template <class Target, class Submit, class Finish>
std::string run_random_graph(RandomProgram& program, std::mt19937& random, const Target& target,
                             const Submit& submit, const Finish& finish) {
  const bool record_only = random() % 2 == 0;
  const Graph graph = record(target, [&] { program.submit(submit); }, {.record_only = record_only});
  finish();
  if (!record_only) program.model({0, 1, 2}, 7);
  std::string wrong = program.difference();
  for (int launch = 0; launch < 6 && wrong.empty(); ++launch) {
    std::vector<std::size_t> bound{0, 1, 2, 3, 4};
    if (launch % 2 == 1) std::ranges::shuffle(bound, random);
    std::set<std::size_t> failing;
    if (launch >= 3) failing = {random() % program.steps().size(), random() % 50};
    const std::uint64_t value = random();
    const std::size_t first = program.model(bound, value, failing);
    const std::vector<Scalar> parameters{Scalar(value)};
    graph.launch(program.bindings(bound), parameters);
    const std::string end = failure_of(finish);
    const std::string cause = "call " + std::to_string(first + 1) + " of ";
    const bool expected =
        first == program.steps().size()
            ? end == "OK"
            : end.find(cause) != std::string::npos && end.find("wanted") != std::string::npos;
    wrong = expected ? program.difference() : "the launch ended with: " + end;
    if (!wrong.empty()) wrong = "launch " + std::to_string(launch) + ": " + wrong;
  }
  return wrong;
}

}  // namespace weir
