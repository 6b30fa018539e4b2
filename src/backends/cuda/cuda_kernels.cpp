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
  const CUresult code =
      CudaLibrary::get().cuLibraryGetKernel(&kernel, program_of(source), source.entry.c_str());
  check_cuda(code, fmt::format("domain '{}' finds no kernel '{}' in {}", context_.domain(),
                               source.entry, source.file));
  made.function = reinterpret_cast<CUfunction>(kernel);  // taken for one by cuLaunchKernel()
  check_group(source, made.function);
  if (source.resident) made.at_once = groups_at_once(source, made.function);
  return made;
}

/// How many groups a multiprocessor has room for.
unsigned CudaKernels::groups_at_once(const KernelSource& source, CUfunction function) const {
  int groups = 0;
  const auto [x, y, z] = source.group;
  const CudaScope scope(context_.get());
  check_cuda(CudaLibrary::get().cuOccupancyMaxActiveBlocksPerMultiprocessor(
                 &groups, function, static_cast<int>(x * y * z), 0),
             fmt::format("asking how many groups of kernel '{}' fit at once", source.entry));
  return static_cast<unsigned>(std::max(groups, 1));
}

/// Returns the program that a kernel is in: one that there is, from the cache, or compiled now.
CUlibrary CudaKernels::program_of(const KernelSource& source) {
  const std::string text = portable_text(source);
  const std::string key = cache_key(fmt::format(
      "sm_{}\nNVRTC {}\n{}\n{}", architecture_, NvrtcLibrary::get().version,
      text.find("weir/device_tunnel.hpp") == std::string::npos ? "" : device_tunnel_text(), text));
  CudaCode& program = programs_[key];
  if (program.get() == nullptr) {
    if (const auto image = cache_.read(key)) program = load(*image);
  }
  if (program.get() == nullptr) {
    const std::string image = compile_for_cuda(text, source.file, architecture_);
    program = load(image);
    if (program.get() != nullptr) cache_.write(key, image);
  }
  if (program.get() == nullptr) {
    fail(WEIR_STATUS_DEVICE_ERROR, "domain '{}' does not take the code of {}", context_.domain(),
         source.file);
  }
  return program.get();
}

CudaCode CudaKernels::load(const std::string& image) const {
  CUlibrary library = nullptr;
  const CUresult code = CudaLibrary::get().cuLibraryLoadData(&library, image.c_str(), nullptr,
                                                             nullptr, 0, nullptr, nullptr, 0);
  if (code == CUDA_ERROR_OUT_OF_MEMORY) check_cuda(code, "loading the code of a kernel");
  return CudaCode(code == CUDA_SUCCESS ? library : nullptr);
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
