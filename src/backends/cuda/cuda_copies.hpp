// The geometry of copies between host and device, and the commands for them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/backend.hpp"
#include "backends/cuda/cuda_library.hpp"

namespace weir::rt {

/// Size in bytes of a page-locked staging buffer, through which pageable host memory is copied.
inline constexpr std::size_t kCudaChunk = std::size_t{4} << 20;

/// A copy as planes of rows, as few as possible.
struct CudaBlock {
  struct End {
    std::byte* address = nullptr;
    bool host = false;
    std::size_t row_stride = 0, plane_stride = 0;
  };
  End source, target;
  std::size_t row = 0, rows = 1, planes = 1;

  std::size_t bytes() const noexcept { return row * rows * planes; }
};

CudaBlock make_cuda_block(const CopyEnd& from, const CopyEnd& to) noexcept;

/// Returns whether the host end, if any, is page-locked, so that the device copies it by DMA.
bool is_cuda_pinned(const CudaBlock& block) noexcept;

/// Enqueues a copy whose host memory is page-locked.
CUresult enqueue_cuda_block(const CudaBlock& block, CUstream stream) noexcept;

/// Divides a block into blocks of one plane and at most kCudaChunk bytes, in order.
class CudaPieces {
 public:
  explicit CudaPieces(const CudaBlock& block) noexcept : block_(block) {}
  /// Returns false when none remains.
  bool next(CudaBlock& piece) noexcept;

 private:
  const CudaBlock& block_;
  std::size_t plane_ = 0, row_ = 0, byte_ = 0;
};

/// A chunk of a staged copy. From the host to the device, pack() fills the staging buffer and
/// enqueue() copies it to the device; from the device, enqueue() fills the staging buffer and
/// pack() copies it to host memory.
struct CudaStagedPiece {
  CudaBlock block;
  std::byte* staging = nullptr;  ///< of kCudaChunk bytes

  bool to_device() const noexcept { return block.source.host; }
  /// Copies part `part` of `parts` between host memory and the staging buffer; parts are disjoint.
  void pack(std::size_t part, std::size_t parts) const noexcept;
  CUresult enqueue(CUstream stream) const noexcept;
};

}  // namespace weir::rt
