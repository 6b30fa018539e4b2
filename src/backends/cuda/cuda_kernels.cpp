#include "backends/cuda/cuda_kernels.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>

#include "backends/cuda/nvrtc_library.hpp"
#include "base/sys.hpp"

namespace weir::rt {

namespace {

/// FNV-1a.
std::uint64_t hash_of(std::string_view text, std::uint64_t hash) noexcept {
  for (const char letter : text) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  }
  return hash;
}

std::filesystem::path cache_folder() {
  const char* const cache = sys::environment("XDG_CACHE_HOME");
  if (cache != nullptr && *cache != '\0') return std::filesystem::path(cache) / "weir/kernels";
  const char* const home = sys::environment("HOME");
  if (home == nullptr || *home == '\0') return {};
  return std::filesystem::path(home) / ".cache/weir/kernels";
}

/// The file that keeps the code of a text, "": there is no place for it.
std::string cache_file(const std::string& text, const std::string& file, unsigned architecture) {
  const std::filesystem::path folder = cache_folder();
  if (folder.empty()) return {};
  const std::uint64_t one = hash_of(file, hash_of(text, 0xcbf29ce484222325));
  const std::uint64_t two = hash_of(text, hash_of(file, 0x9e3779b97f4a7c15));
  return folder / fmt::format("sm_{}-nvrtc-{}-{:016x}{:016x}.bin", architecture,
                              NvrtcLibrary::get().version, one, two);
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// A cache that cannot be written is none.
void keep(const std::string& path, const std::string& image) noexcept {
  if (path.empty()) return;
  try {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    sys::FileWriter writer(path);
    writer.write(image);
    writer.commit();
  } catch (...) {  // the next process compiles it again
  }
}

}  // namespace

const CudaKernels::Code& CudaKernels::find(const KernelSource& source) noexcept {
  static const Code none = [] {
    Code code;
    code.outcome = failed_outcome(WEIR_STATUS_OUT_OF_MEMORY, "out of memory");
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
    return found->second;
  } catch (...) {
    return none;
  }
}

CudaKernels::Code CudaKernels::make(const KernelSource& source) const {
  const std::string path = cache_file(source.text, source.file, architecture_);
  Code made;
  CUresult code = CUDA_ERROR_NOT_FOUND;
  const std::string kept = path.empty() ? std::string() : read_file(path);
  if (!kept.empty()) made.library = load(kept, source.entry, made.function, code);
  if (code != CUDA_SUCCESS) {
    const std::string image = compile_for_cuda(source.text, source.file, architecture_);
    made.library = load(image, source.entry, made.function, code);
    if (code != CUDA_SUCCESS) {
      made.outcome = context_.failure(
          fmt::format("loading kernel '{}' of {}", source.entry, source.file).c_str(), code);
      return made;
    }
    keep(path, image);
  }
  check_group(source, made.function);
  return made;
}

CudaCode CudaKernels::load(const std::string& image, const std::string& entry, CUfunction& function,
                           CUresult& code) const {
  const CudaLibrary& cu = CudaLibrary::get();
  CUlibrary library = nullptr;
  code = cu.cuLibraryLoadData(&library, image.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0);
  if (code != CUDA_SUCCESS) return {};
  CudaCode owned(library);
  CUkernel kernel = nullptr;
  code = cu.cuLibraryGetKernel(&kernel, library, entry.c_str());
  function = reinterpret_cast<CUfunction>(kernel);  // taken for one by cuLaunchKernel()
  return owned;
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
