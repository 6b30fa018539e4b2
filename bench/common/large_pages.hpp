// Memory for tables and grids.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>
#include <span>
#include <utility>

#include <sys/mman.h>

namespace weir_bench {

/// Zeroed memory on large pages where the system gives them, as large tables and grids want: with
/// small ones random writes, and faces with a cell on each line, wait for the tables of pages.
template <class T>
class LargePages {
 public:
  LargePages() = default;
  explicit LargePages(std::size_t count) : count_(count) {
    constexpr std::size_t kPage = 2u << 20;
    const std::size_t bytes = (count * sizeof(T) + kPage - 1) / kPage * kPage;
    if (bytes == 0) return;
    memory_ = static_cast<T*>(std::aligned_alloc(kPage, bytes));
    if (memory_ == nullptr) throw std::bad_alloc();
    madvise(memory_, bytes, MADV_HUGEPAGE);
    std::memset(static_cast<void*>(memory_), 0, bytes);
  }
  LargePages(LargePages&& other) noexcept
      : memory_(std::exchange(other.memory_, nullptr)), count_(std::exchange(other.count_, 0)) {}
  LargePages& operator=(LargePages&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(count_, other.count_);
    return *this;
  }
  ~LargePages() { std::free(memory_); }

  T* data() const { return memory_; }
  std::size_t size() const { return count_; }
  T& operator[](std::size_t at) const { return memory_[at]; }
  std::span<T> span() const { return {memory_, count_}; }

 private:
  T* memory_ = nullptr;
  std::size_t count_ = 0;
};

}  // namespace weir_bench
