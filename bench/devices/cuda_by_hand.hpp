// The CUDA driver for programs that use it without weir, by its entry points alone.
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <type_traits>

#include "common/program.hpp"

namespace weir_bench {

using CudaAddress = std::uintptr_t;

/// An entry point of the driver, which throws unless it returns 0.
template <class... Parameters>
class CudaEntry {
 public:
  CudaEntry(void* library, const char* name)
      : function_(reinterpret_cast<Function*>(dlsym(library, name))), name_(name) {
    if (function_ == nullptr) throw std::runtime_error(std::string("the driver has no ") + name);
  }
  void operator()(Parameters... arguments) const {
    const int code = function_(arguments...);
    if (code != 0) throw std::runtime_error(std::string(name_) + ": " + std::to_string(code));
  }

 private:
  using Function = int(Parameters...);
  Function* function_;
  const char* name_;
};

/// The primary context of the GPU in WEIR_BENCH_CARD, or of the first one, current on the thread
/// that makes this.
class Cuda {
 public:
  Cuda() {
    try {
      call<unsigned>("cuInit", 0U);
    } catch (const std::exception& error) {
      throw Unavailable(error.what());
    }
    void* context = nullptr;
    call<void**, int>("cuDevicePrimaryCtxRetain", &context, card());
    call<void*>("cuCtxSetCurrent", context);
  }

  void* library() const { return library_; }
  /// Looks an entry point up: once, where its calls are measured.
  template <class... Parameters>
  CudaEntry<Parameters...> entry(const char* name) const {
    return {library_, name};
  }
  /// Looks it up and calls it.
  template <class... Parameters>
  void call(const char* name, std::type_identity_t<Parameters>... arguments) const {
    entry<Parameters...>(name)(arguments...);
  }

  /// Page-locked memory, which stays until the process ends.
  void* pinned(std::size_t bytes) const {
    void* made = nullptr;
    call<void**, std::size_t, unsigned>("cuMemHostAlloc", &made, bytes, 1U);
    return made;
  }
  CudaAddress memory(std::size_t bytes) const {
    CudaAddress made = 0;
    call<CudaAddress*, std::size_t>("cuMemAlloc_v2", &made, bytes);
    return made;
  }
  void* stream() const {
    void* made = nullptr;
    call<void**, unsigned>("cuStreamCreate", &made, 1U);
    return made;
  }
  void wait(void* stream) const { call<void*>("cuStreamSynchronize", stream); }

 private:
  static int card() {
    const char* const given = std::getenv("WEIR_BENCH_CARD");
    return given == nullptr ? 0 : std::stoi(given);
  }
  static void* open() {
    const char* const given = std::getenv("WEIR_CUDA_DRIVER");
    void* const library = dlopen(given == nullptr ? "libcuda.so.1" : given, RTLD_NOW);
    if (library == nullptr) throw Unavailable(std::string("no CUDA driver: ") + dlerror());
    return library;
  }

  void* const library_ = open();
};

}  // namespace weir_bench
