// The dense matrix the applications compute on.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace weir::apps {

/// Owns a dense column-major matrix of zeros, aligned to 64 bytes. A large one costs memory only
/// where it is touched: its pages come from the system zeroed and are not written here.
template <class T>
class Matrix {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>);

 public:
  static constexpr std::size_t alignment = 64;

  /// Holds 0 x 0 elements, as does a matrix that was moved from.
  Matrix() = default;

  /// Throws std::bad_alloc when the size overflows or the system has no memory left.
  Matrix(std::size_t rows, std::size_t columns) : Matrix(rows, columns, rows) {}

  /// With `leading` elements, at least `rows`, from the begin of a column to that of the next.
  Matrix(std::size_t rows, std::size_t columns, std::size_t leading)
      : rows_(rows),
        columns_(columns),
        leading_(leading),
        block_(std::calloc(1, block_bytes(leading, columns))) {
    if (!block_) throw std::bad_alloc();
    const auto address = reinterpret_cast<std::uintptr_t>(block_.get());
    prefer_large_pages(address, stored() * sizeof(T));
    const std::size_t skipped = (alignment - address % alignment) % alignment;
    data_ = reinterpret_cast<T*>(static_cast<std::byte*>(block_.get()) + skipped);
  }

  Matrix(Matrix&& other) noexcept { swap(other); }
  Matrix& operator=(Matrix&& other) noexcept {
    Matrix taken(std::move(other));
    swap(taken);
    return *this;
  }

  std::size_t rows() const noexcept { return rows_; }
  std::size_t columns() const noexcept { return columns_; }

  /// Returns the distance of two neighbours in a row, in elements.
  std::size_t leading_dimension() const noexcept { return leading_; }

  /// Returns the number of elements.
  std::size_t size() const noexcept { return rows_ * columns_; }

  /// Returns the number of elements there is memory for: more than size() when columns have gaps
  /// between them.
  std::size_t stored() const noexcept { return leading_ * columns_; }

  T* data() noexcept { return data_; }
  const T* data() const noexcept { return data_; }

  /// Returns the element at a row and a column, both counted from 0 and not checked.
  T& operator()(std::size_t i, std::size_t j) noexcept { return data_[index(i, j)]; }
  const T& operator()(std::size_t i, std::size_t j) const noexcept { return data_[index(i, j)]; }

 private:
  struct Free {
    void operator()(void* block) const noexcept { std::free(block); }
  };

  static std::size_t block_bytes(std::size_t rows, std::size_t columns) {
    constexpr std::size_t slack = alignment - alignof(std::max_align_t);
    std::size_t bytes = 0;
    if (__builtin_mul_overflow(rows, columns, &bytes) ||
        __builtin_mul_overflow(bytes, sizeof(T), &bytes) ||
        __builtin_add_overflow(bytes, slack, &bytes)) {
      throw std::bad_array_new_length();
    }
    return bytes;
  }

  /// Asks for huge pages, which save most page table walks in a large matrix.
  static void prefer_large_pages([[maybe_unused]] std::uintptr_t address,
                                 [[maybe_unused]] std::size_t bytes) noexcept {
#if defined(__linux__)
    constexpr std::size_t kPage = 4096, kLarge = std::size_t{8} << 20;
    if (bytes < kLarge) return;
    const std::uintptr_t first = (address + kPage - 1) / kPage * kPage;
    const std::size_t whole = (address + bytes - first) / kPage * kPage;
    madvise(reinterpret_cast<void*>(first), whole, MADV_HUGEPAGE);
#endif
  }

  std::size_t index(std::size_t i, std::size_t j) const noexcept {
    assert(i < rows_ && j < columns_);
    return i + j * leading_;
  }

  void swap(Matrix& other) noexcept {
    std::swap(rows_, other.rows_);
    std::swap(columns_, other.columns_);
    std::swap(leading_, other.leading_);
    std::swap(block_, other.block_);
    std::swap(data_, other.data_);
  }

  std::size_t rows_ = 0;
  std::size_t columns_ = 0;
  std::size_t leading_ = 0;
  std::unique_ptr<void, Free> block_;
  T* data_ = nullptr;
};

}  // namespace weir::apps
