#include "backends/cuda/cuda_kernels.hpp"

#include <algorithm>

#include "backend/portable_text.hpp"
#include "backends/cuda/nvrtc_library.hpp"

namespace weir::rt {

const CudaKernels::Code& CudaKernels::find(const KernelSource& source) noexcept {
  static const Code none = [] {
    Code code;
    code.outcome = failed_outcome(WEIR_STATUS_OUT_OF_MEMORY, "no memory to compile a kernel");
    return code;
  }();
  const sys::Lock lock(mutex_);
  try {
    const auto [found, fresh] = codes_.try_emplace(&source);
    if (!fresh) return found->second;
    try {
      found->second = make(source);
    } catch (...) {
      found->second.outcome = current_exception_outcome(WEIR_STATUS_KERNEL_ERROR);
    }
    if (found->second.outcome.status != WEIR_STATUS_OUT_OF_MEMORY) return found->second;
    codes_.erase(found);
    return none;
  } catch (...) {
    return none;
  }
}

CudaKernels::Code CudaKernels::make(const KernelSource& source) {
  Code made;
  CUkernel kernel = nullptr;
  CUlibrary const program = program_of(source);
  const CUresult code =
      CudaLibrary::get().cuLibraryGetKernel(&kernel, program, source.entry.c_str());
  check_cuda(code, fmt::format("domain '{}' finds no kernel '{}' in {}", context_.domain(),
                               source.entry, source.file));
  made.function = reinterpret_cast<CUfunction>(kernel);  // cuLaunchKernel() accepts a CUkernel
  check_group(source, made.function);
  made.large = bytes_of_large(source, program);
  if (made.large > 0) allow_large(source, kernel, made.large);
  if (source.resident) made.at_once = groups_at_once(source, made);
  return made;
}

/// The value of WEIR_LARGE_BYTES() for a kernel, 0 without one.
unsigned CudaKernels::bytes_of_large(const KernelSource& source, CUlibrary program) const {
  if (source.text.find("WEIR_LARGE_BYTES") == std::string::npos) return 0;
  const CudaLibrary& cu = CudaLibrary::get();
  CUkernel teller = nullptr;
  std::size_t offset = 0, units = 0;
  CUresult code =
      cu.cuLibraryGetKernel(&teller, program, ("weir_large_of_" + source.entry).c_str());
  if (code == CUDA_ERROR_NOT_FOUND) return 0;
  if (code == CUDA_SUCCESS) code = cu.cuKernelGetParamInfo(teller, 0, &offset, &units);
  check_cuda(code, fmt::format("asking how much memory kernel '{}' shares", source.entry));
  return 64 * static_cast<unsigned>(units);
}

void CudaKernels::allow_large(const KernelSource& source, CUkernel kernel, unsigned bytes) const {
  const CudaLibrary& cu = CudaLibrary::get();
  const CUresult code = cu.cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                static_cast<int>(bytes), kernel, context_.device());
  if (code == CUDA_SUCCESS) return;
  int most = 0;
  cu.cuDeviceGetAttribute(&most, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
                          context_.device());
  fail(code == CUDA_ERROR_INVALID_VALUE ? WEIR_STATUS_UNSUPPORTED : WEIR_STATUS_DEVICE_ERROR,
       "kernel '{}' of {} has a WEIR_LARGE() of {} bytes, and domain '{}' has {} of shared memory "
       "for a group, that of WEIR_SHARED() included: {}; make its tiles smaller",
       source.entry, source.file, bytes, context_.domain(), most, cuda_error(code));
}

/// The number of groups that fit on a multiprocessor.
unsigned CudaKernels::groups_at_once(const KernelSource& source, const Code& code) const {
  int groups = 0;
  const auto [x, y, z] = source.group;
  const CudaScope scope(context_.get());
  check_cuda(CudaLibrary::get().cuOccupancyMaxActiveBlocksPerMultiprocessor(
                 &groups, code.function, static_cast<int>(x * y * z), code.large),
             fmt::format("asking how many groups of kernel '{}' fit at once", source.entry));
  return static_cast<unsigned>(std::max(groups, 1));
}

/// Returns the program of a kernel: a loaded one, from the cache, or compiled now.
CUlibrary CudaKernels::program_of(const KernelSource& source) {
  const std::string text = portable_text(source);
  const std::string key = cache_key(fmt::format(
      "sm_{}\nNVRTC {}\n{}\n{}", architecture_, NvrtcLibrary::get().version,
      text.find("weir/device_tunnel.hpp") == std::string::npos ? "" : device_tunnel_text(), text));
  CudaCode& program = programs_[key];
  if (program.get() != nullptr) return program.get();
  if (const auto image = cache_.read(key); image && load(*image, program) == CUDA_SUCCESS) {
    return program.get();
  }
  const std::string image = compile_for_cuda(text, source.file, architecture_);
  const CUresult code = load(image, program);
  if (code != CUDA_SUCCESS) {
    fail(WEIR_STATUS_DEVICE_ERROR,
         "domain '{}' does not take what NVRTC {} made of {}: {}; a driver takes code of its own "
         "version of CUDA and of older ones",
         context_.domain(), NvrtcLibrary::get().version, source.file, cuda_error(code));
  }
  cache_.write(key, image);
  return program.get();
}

CUresult CudaKernels::load(const std::string& image, CudaCode& program) const {
  CUlibrary library = nullptr;
  const CUresult code = CudaLibrary::get().cuLibraryLoadData(&library, image.c_str(), nullptr,
                                                             nullptr, 0, nullptr, nullptr, 0);
  if (code == CUDA_ERROR_OUT_OF_MEMORY) check_cuda(code, "loading the code of a kernel");
  if (code == CUDA_SUCCESS) program = CudaCode(library);
  return code;
}

void CudaKernels::check_group(const KernelSource& source, CUfunction function) const {
  int most = 0;
  const auto [x, y, z] = source.group;
  const CUresult code = CudaLibrary::get().cuKernelGetAttribute(
      &most, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, reinterpret_cast<CUkernel>(function),
      context_.device());
  if (code != CUDA_SUCCESS || std::uint64_t{x} * y * z <= static_cast<std::uint64_t>(most)) return;
  fail(WEIR_STATUS_UNSUPPORTED,
       "kernel '{}' of {} has groups of {} x {} x {} items, and domain '{}' runs at most {} of it "
       "in one",
       source.entry, source.file, x, y, z, context_.domain(), most);
}

}  // namespace weir::rt
