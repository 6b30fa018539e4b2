// What a program of tasks computes: graphs, the work of a task, and where its outputs are.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "metg/graph.hpp"
#include "metg/kernels.hpp"

namespace weir_bench::metg {

enum class Work {
  compute,    ///< fused multiply-adds, the same number in each task
  memory,     ///< sweeps over an area of the point
  imbalanced  ///< compute, times a factor that differs between tasks
};

/// Throws std::invalid_argument when there is no such kernel.
inline Work parse_work(const std::string& name) {
  if (name == "compute") return Work::compute;
  if (name == "memory") return Work::memory;
  if (name == "imbalanced") return Work::imbalanced;
  throw std::invalid_argument("there is no kernel '" + name +
                              "', choose from: compute memory imbalanced");
}

struct Settings {
  Shape shape;
  Work work = Work::compute;
  std::uint64_t iterations = 1024;       ///< of the kernel in a task; imbalanced: on average
  double imbalance = 1.0;                ///< iterations vary by half of this to either side
  std::uint32_t graphs = 1;              ///< of this shape, at once
  std::uint32_t fields = 2;              ///< outputs of a point, used in turn by its tasks
  std::size_t output_bytes = 16;         ///< of a task, at least those of its identity
  std::size_t area_bytes = 4096 * 1024;  ///< of a point, for the memory-bound kernel
};

class Problem {
 public:
  /// Throws std::invalid_argument for settings that describe no problem.
  explicit Problem(const Settings& settings) : settings_(settings), graph_(settings.shape) {
    if (settings.graphs == 0 || settings.graphs > 255 || settings.fields < 2 ||
        settings.output_bytes < sizeof(TaskId) || settings.imbalance > 2 ||
        settings.area_bytes % swept_bytes != 0 || settings.area_bytes == 0) {
      throw std::invalid_argument(
          "a problem needs 1 to 255 graphs, 2 fields, 12 output bytes, an imbalance of at most 2 "
          "and "
          "areas of a multiple of 256 bytes");
    }
    if (settings.work == Work::memory) {
      areas_.assign(std::size_t{settings.graphs} * width() * settings.area_bytes / sizeof(double),
                    1.0);
    }
  }

  const Settings& settings() const { return settings_; }
  const Graph& graph() const { return graph_; }
  std::uint32_t width() const { return settings_.shape.width; }
  std::uint32_t steps() const { return settings_.shape.steps; }
  std::uint64_t tasks() const { return graph_.tasks() * settings_.graphs; }

  /// Floating-point operations of all tasks; bytes read and written, for the memory-bound kernel.
  double work() const {
    double iterations = 0;
    for_each_task([&](const TaskId& id) { iterations += static_cast<double>(iterations_of(id)); });
    const bool memory = settings_.work == Work::memory;
    return iterations * (memory ? bytes_per_iteration : flops_per_iteration);
  }

  /// Calls visit(task) in program order: step by step, and the graphs in turn.
  template <class Visit>
  void for_each_task(Visit&& visit) const {
    for (std::uint32_t step = 0; step < steps(); ++step) {
      const Points here = graph_.points(step);
      for (std::uint32_t graph = 0; graph < settings_.graphs; ++graph) {
        for (std::uint32_t point = here.first; point < here.first + here.count; ++point) {
          visit(TaskId{graph, step, point});
        }
      }
    }
  }

  /// Outputs have numbers: those of a point are side by side.
  std::size_t outputs() const { return std::size_t{settings_.graphs} * width() * settings_.fields; }
  std::size_t output_of(const TaskId& id) const {
    const std::size_t point = std::size_t{id.graph} * width() + id.point;
    return point * settings_.fields + id.step % settings_.fields;
  }
  /// Bytes from one output to the next: no two of them share a cache line.
  std::size_t stride() const { return (settings_.output_bytes + 63) / 64 * 64; }

  /// Runs a task: verifies its inputs, computes, and marks its output. input(i) is the address of
  /// the output of its predecessor i. Ends the program when an input is not what it should be.
  template <class Input>
  void execute(const TaskId& id, Input&& input, void* output) const {
    const auto reads = graph_.predecessors(id.step, id.point);
    for (std::size_t index = 0; index < reads.size(); ++index) {
      verify(id, {id.graph, id.step - 1, reads[index]}, input(index));
    }
    if (settings_.work == Work::memory) {
      const std::size_t bytes = settings_.area_bytes;
      double* const area =
          areas_.data() + (std::size_t{id.graph} * width() + id.point) * (bytes / sizeof(double));
      sweep(area, bytes, id.step * settings_.iterations * swept_bytes, settings_.iterations);
    } else {
      compute(iterations_of(id));
    }
    std::memcpy(output, &id, sizeof id);
  }

  /// Verifies the outputs of the last step: output(number) is the address of an output, or nullptr
  /// when another process has it.
  template <class Output>
  void verify_end(Output&& output) const {
    const Points last = graph_.points(steps() - 1);
    for (std::uint32_t graph = 0; graph < settings_.graphs; ++graph) {
      for (std::uint32_t point = last.first; point < last.first + last.count; ++point) {
        const TaskId id = {graph, steps() - 1, point};
        const void* const found = output(output_of(id));
        if (found != nullptr) verify({graph, steps(), point}, id, found);
      }
    }
  }

 private:
  static void verify(const TaskId& reader, const TaskId& wanted, const void* input) {
    TaskId found;
    std::memcpy(&found, input, sizeof found);
    if (found == wanted) [[likely]] {
      return;
    }
    std::fprintf(
        stderr,
        "task (graph %u, step %u, point %u) wants the output of (graph %u, step %u, point %u) "
        "and read that of (graph %u, step %u, point %u)\n",
        reader.graph, reader.step, reader.point, wanted.graph, wanted.step, wanted.point,
        found.graph, found.step, found.point);
    std::fflush(stderr);
    std::_Exit(1);
  }

  std::uint64_t iterations_of(const TaskId& id) const {
    if (settings_.work != Work::imbalanced) return settings_.iterations;
    const std::uint64_t hash = hash_of(settings_.shape.seed, pack(id), 0);
    const double uniform = static_cast<double>(hash >> 11) * 0x1p-53;
    const double factor = 1 + settings_.imbalance * (uniform - 0.5);
    return static_cast<std::uint64_t>(static_cast<double>(settings_.iterations) * factor + 0.5);
  }

  Settings settings_;
  Graph graph_;
  mutable std::vector<double> areas_;  ///< each point writes its own
};

/// Outputs in plain memory, for runtimes that have no buffers of their own.
class Outputs {
 public:
  explicit Outputs(const Problem& problem)
      : stride_(problem.stride()),
        bytes_(problem.outputs() * stride_),
        memory_(static_cast<std::byte*>(::operator new(bytes_, std::align_val_t{64}))) {
    clear();
  }

  std::byte* at(std::size_t number) const { return memory_.get() + number * stride_; }
  /// After this, no output is that of a task.
  void clear() const { std::memset(memory_.get(), 0xff, bytes_); }

  /// Runs a task on these outputs.
  void execute(const Problem& problem, const TaskId& id) const {
    const auto reads = problem.graph().predecessors(id.step, id.point);
    const auto input = [&](std::size_t index) {
      return at(problem.output_of({id.graph, id.step - 1, reads[index]}));
    };
    problem.execute(id, input, at(problem.output_of(id)));
  }

 private:
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete(memory, std::align_val_t{64}); }
  };

  std::size_t stride_, bytes_;
  std::unique_ptr<std::byte[], Free> memory_;
};

}  // namespace weir_bench::metg
