// Calls of sink functions as weir actions.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <weir/weir.hpp>

namespace weir::hs {

/// One call, before it is enqueued.
struct SinkCall {
  const char* name;
  void* function;
  std::span<const std::uint64_t> scalars;
  std::vector<Operand> operands;       ///< whole instances, one for each address
  std::vector<std::uint64_t> offsets;  ///< of the addresses in them
  void* result;
  std::uint16_t result_bytes;
};

/// The weir kernel that calls any sink function.
class SinkKernel {
 public:
  explicit SinkKernel(const weir::Runtime& runtime);

  /// Enqueues a call. `order` is an additional operand that is not passed to the function. The
  /// OpenMP thread count is set to `openmp` before the call, 0: the number of cores of the stream.
  weir_event enqueue(weir_stream* stream, const SinkCall& call, const Operand& order,
                     int openmp) const;

 private:
  weir_runtime* runtime_;
  weir_kernel* kernel_ = nullptr;
};

}  // namespace weir::hs
