#include "backends/cuda/cuda_copies.hpp"

#include <algorithm>
#include <cstring>

namespace weir::rt {

namespace {

CudaBlock::End end_of(const CopyEnd& end) noexcept {
  const Region& region = end.region;
  return {.address = end.base + region.offset,
          .host = end.device == nullptr,
          .row_stride = region.rows > 1 ? region.row_stride : region.row,
          .plane_stride = region.planes > 1 ? region.plane_stride : 0};
}

/// Merges planes at the stride of rows into rows, and contiguous rows into one.
void join(CudaBlock& block) noexcept {
  const auto planes_are_rows = [&](const CudaBlock::End& end) {
    return block.rows == 1 || end.plane_stride == block.rows * end.row_stride;
  };
  if (block.planes > 1 && planes_are_rows(block.source) && planes_are_rows(block.target)) {
    for (CudaBlock::End* end : {&block.source, &block.target}) {
      if (block.rows == 1) end->row_stride = end->plane_stride;
    }
    block.rows *= std::exchange(block.planes, 1);
  }
  if (block.source.row_stride == block.row && block.target.row_stride == block.row) {
    block.row *= std::exchange(block.rows, 1);
    block.source.row_stride = block.target.row_stride = block.row;
  }
}

std::byte* plane_of(const CudaBlock::End& end, std::size_t plane) noexcept {
  return end.address + plane * end.plane_stride;
}

CUdeviceptr device_address(const std::byte* address) noexcept {
  return reinterpret_cast<CUdeviceptr>(address);
}

bool is_pinned(const std::byte* address) noexcept {
  CUmemorytype type{};
  const CUresult code = CudaLibrary::get().cuPointerGetAttribute(
      &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device_address(address));
  return code == CUDA_SUCCESS && type == CU_MEMORYTYPE_HOST;
}

/// The end of the allocation that holds an address, if the driver reports it.
const std::byte* allocation_end(const std::byte* address) noexcept {
  const CUdeviceptr inside = device_address(address);
  CUdeviceptr start = 0;
  std::size_t bytes = 0;
  const auto ask = [&](CUpointer_attribute what, void* answer) {
    return CudaLibrary::get().cuPointerGetAttribute(answer, what, inside) == CUDA_SUCCESS;
  };
  const bool known = ask(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, &start) &&
                     ask(CU_POINTER_ATTRIBUTE_RANGE_SIZE, &bytes) && start <= inside &&
                     inside - start < bytes;
  return known ? address + (bytes - (inside - start)) : nullptr;
}

/// The driver refuses to copy a range that is only partly page-locked.
bool is_pinned(const std::byte* first, const std::byte* last) noexcept {
  while (is_pinned(first)) {
    const std::byte* const end = allocation_end(first);
    if (end == nullptr) return is_pinned(last);
    if (end > last) return true;
    first = end;
  }
  return false;
}

/// A contiguous copy of `bytes` bytes, not from host to host.
CUresult enqueue_row(const CudaBlock::End& source, const CudaBlock::End& target, std::size_t bytes,
                     CUstream stream) noexcept {
  const CudaLibrary& cu = CudaLibrary::get();
  if (source.host) {
    return cu.cuMemcpyHtoDAsync(device_address(target.address), source.address, bytes, stream);
  }
  if (target.host) {
    return cu.cuMemcpyDtoHAsync(target.address, device_address(source.address), bytes, stream);
  }
  return cu.cuMemcpyDtoDAsync(device_address(target.address), device_address(source.address), bytes,
                              stream);
}

/// Copies row by row, for strides larger than the driver accepts.
CUresult enqueue_each_row(const CudaBlock& block, std::size_t plane, CUstream stream) noexcept {
  CUresult code = CUDA_SUCCESS;
  for (std::size_t row = 0; row < block.rows && code == CUDA_SUCCESS; ++row) {
    CudaBlock::End source = block.source, target = block.target;
    for (CudaBlock::End* end : {&source, &target}) {
      end->address = plane_of(*end, plane) + row * end->row_stride;
    }
    code = enqueue_row(source, target, block.row, stream);
  }
  return code;
}

CUresult enqueue_rows(const CudaBlock& block, std::size_t plane, CUstream stream) noexcept {
  constexpr std::size_t kMostPitch = 0x7fff'ffff;
  const bool wide = std::max(block.source.row_stride, block.target.row_stride) > kMostPitch;
  if (block.rows == 1 || wide) return enqueue_each_row(block, plane, stream);
  CUDA_MEMCPY2D copy{};
  std::byte *const source = plane_of(block.source, plane), *const target =
                                                               plane_of(block.target, plane);
  copy.srcMemoryType = block.source.host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  copy.srcHost = source;
  copy.srcDevice = device_address(source);
  copy.srcPitch = block.source.row_stride;
  copy.dstMemoryType = block.target.host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  copy.dstHost = target;
  copy.dstDevice = device_address(target);
  copy.dstPitch = block.target.row_stride;
  copy.WidthInBytes = block.row;
  copy.Height = block.rows;
  return CudaLibrary::get().cuMemcpy2DAsync(&copy, stream);
}

}  // namespace

CudaBlock make_cuda_block(const CopyEnd& from, const CopyEnd& to) noexcept {
  CudaBlock block{.source = end_of(from),
                  .target = end_of(to),
                  .row = from.region.row,
                  .rows = from.region.rows,
                  .planes = from.region.planes};
  join(block);
  return block;
}

bool is_cuda_pinned(const CudaBlock& block) noexcept {
  const CudaBlock::End& host = block.source.host ? block.source : block.target;
  if (!host.host) return true;
  const std::byte* const last =
      plane_of(host, block.planes - 1) + (block.rows - 1) * host.row_stride + block.row - 1;
  return is_pinned(host.address, last);
}

CUresult enqueue_cuda_block(const CudaBlock& block, CUstream stream) noexcept {
  CUresult code = CUDA_SUCCESS;
  for (std::size_t plane = 0; plane < block.planes && code == CUDA_SUCCESS; ++plane) {
    code = enqueue_rows(block, plane, stream);
  }
  return code;
}

bool CudaPieces::next(CudaBlock& piece) noexcept {
  if (plane_ == block_.planes) return false;
  piece = block_;
  piece.planes = 1;
  for (auto [end, whole] :
       {std::pair{&piece.source, &block_.source}, std::pair{&piece.target, &block_.target}}) {
    end->address = plane_of(*whole, plane_) + row_ * whole->row_stride + byte_;
  }
  if (block_.row > kCudaChunk) {
    piece.row = std::min(kCudaChunk, block_.row - byte_);
    piece.rows = 1;
    byte_ += piece.row;
    if (byte_ < block_.row) return true;
    byte_ = 0;
    ++row_;
  } else {
    piece.rows = std::min(kCudaChunk / block_.row, block_.rows - row_);
    row_ += piece.rows;
  }
  if (row_ == block_.rows) {
    row_ = 0;
    ++plane_;
  }
  return true;
}

void CudaStagedPiece::pack(std::size_t part, std::size_t parts) const noexcept {
  const CudaBlock::End& host = to_device() ? block.source : block.target;
  const std::size_t begin = block.bytes() * part / parts, end = block.bytes() * (part + 1) / parts;
  for (std::size_t at = begin; at < end;) {
    const std::size_t row = at / block.row, column = at % block.row;
    const std::size_t bytes = std::min(block.row - column, end - at);
    std::byte *const outside = host.address + row * host.row_stride + column, *const inside =
                                                                                  staging + at;
    if (to_device()) {
      std::memcpy(inside, outside, bytes);
    } else {
      std::memcpy(outside, inside, bytes);
    }
    at += bytes;
  }
}

CUresult CudaStagedPiece::enqueue(CUstream stream) const noexcept {
  CudaBlock dense = block;
  CudaBlock::End& host = to_device() ? dense.source : dense.target;
  host = {.address = staging, .host = true, .row_stride = dense.row, .plane_stride = 0};
  join(dense);
  return enqueue_cuda_block(dense, stream);
}

}  // namespace weir::rt
