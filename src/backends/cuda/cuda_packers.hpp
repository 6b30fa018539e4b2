// Helper threads that pack staged copies.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "backends/cuda/cuda_copies.hpp"
#include "base/threads.hpp"

namespace weir::rt {

/// One thread copies at a fifth of the bandwidth of a fast link, and the driver makes its callbacks
/// on one thread. Helper threads copy parts of a chunk, and sleep when idle.
class CudaPackers {
 public:
  /// `helpers` may be 0; when the system refuses threads there are fewer. Throws std::bad_alloc.
  CudaPackers(unsigned helpers, const std::string& name);
  CudaPackers(const CudaPackers&) = delete;
  CudaPackers& operator=(const CudaPackers&) = delete;
  ~CudaPackers();

  /// Packs a chunk together with the helpers; without them if they are busy for another thread or
  /// the chunk is small. Any thread.
  void pack(const CudaStagedPiece& piece) noexcept;

 private:
  static constexpr std::size_t kPart = 256 << 10;  ///< bytes

  void serve() noexcept;
  void take_parts() noexcept WEIR_REQUIRES(mutex_);

  sys::Mutex mutex_;
  sys::Condition changed_, packed_;
  const CudaStagedPiece* piece_ WEIR_GUARDED_BY(mutex_) = nullptr;  ///< being packed
  std::size_t next_ WEIR_GUARDED_BY(mutex_) = 0, parts_ WEIR_GUARDED_BY(mutex_) = 0;
  unsigned active_ WEIR_GUARDED_BY(mutex_) = 0;
  bool stopping_ WEIR_GUARDED_BY(mutex_) = false;
  std::vector<sys::Thread> helpers_;
};

}  // namespace weir::rt
