// What the drivers of weir share: a buffer with the outputs, and the kernel of a task.
#pragma once

#include <weir/weir.hpp>

#include "metg/driver.hpp"

namespace weir_bench::metg {

/// The outputs of a problem in a buffer of a runtime.
class WeirOutputs {
 public:
  WeirOutputs(const weir::Runtime& runtime, const Problem& problem)
      : problem_(&problem),
        stride_(problem.stride()),
        buffer_(runtime.buffer(problem.outputs() * problem.stride())) {}

  const weir::Buffer& buffer() const { return buffer_; }
  const void* at(std::size_t number) const { return buffer_.data() + number * stride_; }
  /// After this, no output is that of a task. The program has to own all of them.
  void clear() const { std::memset(buffer_.data(), 0xff, buffer_.bytes()); }

  weir_operand operand(const TaskId& id, weir_access access) const {
    const std::size_t offset = problem_->output_of(id) * stride_;
    const std::size_t bytes = problem_->settings().output_bytes;
    return {buffer_.handle(), weir_region_range(offset, bytes), access};
  }
  /// Fills in what a task reads, in the order of its predecessors, and then what it writes.
  void operands_of(const TaskId& id, std::vector<weir_operand>& operands) const {
    operands.clear();
    for (std::uint32_t read : problem_->graph().predecessors(id.step, id.point)) {
      operands.push_back(operand({id.graph, id.step - 1, read}, WEIR_ACCESS_READ));
    }
    operands.push_back(operand(id, WEIR_ACCESS_WRITE));
  }

 private:
  const Problem* problem_;
  std::size_t stride_;
  weir::Buffer buffer_;
};

/// Registers the kernel: its scalar is the task. `*problem` is the one that runs.
inline weir::Kernel task_kernel(const weir::Runtime& runtime, const Problem* const* problem) {
  return runtime.kernel("task", [problem](weir::Call& call) {
    const weir_call& raw = *call.handle();
    const auto input = [&](std::size_t index) { return raw.operands[index].address; };
    const weir_view& output = raw.operands[raw.operand_count - 1];
    (*problem)->execute(unpack(raw.scalars[0].value.u64), input, output.address);
  });
}

/// Divides each domain of a runtime into places.
inline std::vector<weir::Place> places_of(const weir::Runtime& runtime, std::size_t count) {
  std::vector<weir::Place> places;
  for (std::size_t index = 0; index < runtime.domain_count(); ++index) {
    for (weir::Place& place : runtime.domain(index).partition(count)) {
      places.push_back(std::move(place));
    }
  }
  return places;
}

}  // namespace weir_bench::metg
