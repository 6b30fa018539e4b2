// Kernels in the portable dialect as code of a CUDA device.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "backend/backend.hpp"
#include "backends/cuda/cuda_context.hpp"
#include "base/threads.hpp"

namespace weir::rt {

/// The compiled kernels of one device. Each is compiled when it is first launched, and its code
/// kept in $XDG_CACHE_HOME/weir/kernels for other processes.
class CudaKernels {
 public:
  CudaKernels(CudaContext& context, unsigned architecture)
      : context_(context), architecture_(architecture) {}

  /// Code that can be launched in every context of the device, or why there is none.
  struct Code {
    CudaCode library;
    CUfunction function = nullptr;
    Outcome outcome;
  };

  /// Returns the code of a kernel, which stays as long as this. The source does, too. Any thread.
  const Code& find(const KernelSource& source) noexcept;

 private:
  Code make(const KernelSource& source) const;
  CudaCode load(const std::string& image, const std::string& entry, CUfunction& function,
                CUresult& code) const;
  void check_group(const KernelSource& source, CUfunction function) const;

  CudaContext& context_;
  const unsigned architecture_;
  sys::Mutex mutex_;
  std::map<const KernelSource*, Code> codes_;
};

}  // namespace weir::rt
