// Calls of sink functions, as actions of weir.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <weir/weir.hpp>

namespace weir::hs {

/// One call, on its way into a stream.
struct SinkCall {
  const char* name;
  void* function;
  std::span<const std::uint64_t> scalars;
  std::vector<Operand> operands;       ///< whole instances, one for each address
  std::vector<std::uint64_t> offsets;  ///< of the addresses in them
  void* result;
  std::uint16_t result_bytes;
};

/// The kernel of weir that calls any sink function.
class SinkKernel {
 public:
  explicit SinkKernel(const weir::Runtime& runtime);

  /// Enqueues a call. `order` is one more operand that the function does not see; `openmp` threads
  /// are set before the call, 0: as many as the stream has cores.
  weir_event enqueue(weir_stream* stream, const SinkCall& call, const Operand& order,
                     int openmp) const;

 private:
  weir_runtime* runtime_;
  weir_kernel* kernel_ = nullptr;
};

}  // namespace weir::hs
