// Portable kernels compiled for a CUDA device.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "backend/backend.hpp"
#include "backends/cuda/cuda_context.hpp"
#include "base/cache.hpp"
#include "base/threads.hpp"

namespace weir::rt {

/// The compiled kernels of one device. The first launch of a kernel compiles all kernels of its
/// source; the code is stored in the user's cache folder for other processes.
class CudaKernels {
 public:
  CudaKernels(CudaContext& context, unsigned architecture)
      : context_(context), architecture_(architecture), cache_("kernels") {}

  /// Code that can be launched in every context of the device, or the reason why there is none.
  struct Code {
    CUfunction function = nullptr;
    unsigned large = 0;    ///< bytes of dynamic shared memory of a launch
    unsigned at_once = 0;  ///< groups of a resident kernel that fit on a multiprocessor
    Outcome outcome;
  };

  /// Returns the code of a kernel, valid as long as this object; the source must be, too. After a
  /// failure for lack of memory the next call tries again. Any thread.
  const Code& find(const KernelSource& source) noexcept;

 private:
  Code make(const KernelSource& source) WEIR_REQUIRES(mutex_);
  CUlibrary program_of(const KernelSource& source) WEIR_REQUIRES(mutex_);
  CUresult load(const std::string& image, CudaCode& program) const;
  unsigned bytes_of_large(const KernelSource& source, CUlibrary program) const;
  void allow_large(const KernelSource& source, CUkernel kernel, unsigned bytes) const;
  unsigned groups_at_once(const KernelSource& source, const Code& code) const;
  void check_group(const KernelSource& source, CUfunction function) const;

  CudaContext& context_;
  const unsigned architecture_;
  const Cache cache_;
  sys::Mutex mutex_;
  std::map<std::string, CudaCode> programs_ WEIR_GUARDED_BY(mutex_);  ///< by keys of the cache
  std::map<const KernelSource*, Code> codes_ WEIR_GUARDED_BY(mutex_);
};

}  // namespace weir::rt
