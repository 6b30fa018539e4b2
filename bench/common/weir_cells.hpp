// What empty actions and tasks of weir work on.
#pragma once

#include <weir/weir.hpp>

namespace weir_bench {

/// Equal parts of one buffer, which all repeats share: the warm-up meets its regions for the first
/// time.
class WeirCells {
 public:
  static constexpr std::size_t bytes = 64;

  /// Returns the buffer, made at the first call with so many cells.
  const weir::Buffer& of(const weir::Runtime& runtime, std::size_t cells) {
    if (buffer_.handle() == nullptr) buffer_ = runtime.buffer(cells * bytes);
    return buffer_;
  }

  static weir_operand cell(const weir::Buffer& buffer, std::size_t index, weir_access access) {
    return {buffer.handle(), weir_region_range(index * bytes, bytes), access};
  }

 private:
  weir::Buffer buffer_;
};

}  // namespace weir_bench
