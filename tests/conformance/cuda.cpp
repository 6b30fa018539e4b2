// CUDA on the driver for tests, whose devices are threads; on a real GPU when WEIR_CUDA_DRIVER
// names a driver.
#include <dlfcn.h>
#include <weir/portable.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "device_code.hpp"
#include "fake_cuda.h"

namespace weir::conformance {
namespace {

namespace taught {
#include "device_code.wk"
#include "suite.wk"
}  // namespace taught

// Until another call of it has begun as well; the dialect has no words for that. Breaks the
// device when none has come for 10 s or so.
constexpr char kMeet[] = R"(
__device__ unsigned arrived;
extern "C" __global__ void suite_meet(long long*) {
  const unsigned wanted = (atomicAdd(&arrived, 1u) | 1u) + 1u;
  for (unsigned polls = 0; *(volatile unsigned*)&arrived < wanted; ++polls) {
    if (polls == 10000000u) __trap();
    __nanosleep(1000);
  }
}
)";
void meet(const std::uint32_t*, std::uint64_t, std::uint64_t, void* const*) {
  static std::atomic<unsigned> arrived{0};
  const unsigned wanted = (arrived.fetch_add(1) | 1u) + 1u;
  while (arrived < wanted) std::this_thread::yield();
}

/// Gives the driver for tests a kernel. It is not linked: a program that is cannot load another.
void teach(const weir_portable_kernel& kernel) {
  static const auto add = reinterpret_cast<decltype(&fake_cuda_register_kernel)>(
      dlsym(dlopen(std::getenv("WEIR_CUDA_DRIVER"), RTLD_NOW), "fake_cuda_register_kernel"));
  add(kernel.name, kernel.parameters, kernel.run);
}

/// Whether the devices are those for tests; says so before the library looks for a driver.
const bool is_fake = [] {
  // Calls of `meet` must be on the device together: none may wait behind another for a
  // connection, or for its code.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  if (const char* const given = std::getenv("WEIR_CUDA_DRIVER")) {
    void* const library = dlopen(given, RTLD_NOW);
    if (library == nullptr || dlsym(library, "fake_cuda_register_kernel") == nullptr) return false;
  } else {
    setenv("WEIR_CUDA_DRIVER", WEIR_TEST_FAKE_CUDA, 1);
  }
  setenv("WEIR_NVRTC", std::getenv("WEIR_CUDA_DRIVER"), 1);
  for (const weir_portable_kernel* kernel :
       {&taught::suite_fill, &taught::suite_add, &taught::suite_mix, &taught::suite_number,
        &taught::suite_scalars, &taught::suite_parallel, &taught::axpy, &taught::stencil,
        &taught::reduce, &taught::multiply, &taught::reverse, &taught::rounds, &taught::values,
        &taught::atomics, &taught::vectors, &taught::repeat, &taught::pick, &taught::weigh_five}) {
    teach(*kernel);
  }
  teach({"suite_meet", {1, 1, 1}, "p", meet, nullptr});
  return true;
}();

weir_status gather(const weir_call* call) {
  using Copy =
      int (*)(std::uintptr_t target, std::uintptr_t source, std::size_t bytes, void* queue);
  static const auto copy = reinterpret_cast<Copy>(
      dlsym(dlopen(std::getenv("WEIR_CUDA_DRIVER"), RTLD_NOW), "cuMemcpyDtoDAsync_v2"));
  const std::size_t last = call->operand_count - 1;
  const auto address = [&](std::size_t operand) {
    return reinterpret_cast<std::uintptr_t>(call->operands[operand].address);
  };
  for (std::size_t i = 0; i < last; ++i) {
    if (copy(address(last) + 8 * i, address(i), 8, call->queue) != 0) {
      return weir_call_fail(call, WEIR_STATUS_DEVICE_ERROR, "copy %zu fails", i);
    }
  }
  return WEIR_STATUS_OK;
}

/// A function of the driver, which the library has opened.
template <class Function>
Function* driver(const char* name) {
  void* const library = dlopen(std::getenv("WEIR_CUDA_DRIVER"), RTLD_NOW);
  return reinterpret_cast<Function*>(dlsym(library, name));
}

/// Holds the stream back by a function of the host in it.
weir_status hold_queue(const weir_call* call) {
  using Function = void (*)(void*);
  static const auto launch =
      driver<int(void* queue, Function function, void* data)>("cuLaunchHostFunc");
  const Function wait = [](void*) { holding.wait(true); };
  if (launch(call->queue, wait, nullptr) == 0) return WEIR_STATUS_OK;
  return weir_call_fail(call, WEIR_STATUS_DEVICE_ERROR, "the stream cannot be held");
}

Kernels kernels(const Runtime& runtime) {
  return device_code(runtime, {"cuda", gather, kMeet, "meet.cu", hold_queue});
}

/// Makes the primary context of the first device current, as other libraries of a program do.
void enter_device() {
  static void* const context = [] {
    driver<int(unsigned)>("cuInit")(0);
    void* made = nullptr;
    driver<int(void**, int)>("cuDevicePrimaryCtxRetain")(&made, 0);
    return made;
  }();
  driver<int(void*)>("cuCtxSetCurrent")(context);
}

void* allocate(std::size_t bytes) {
  enter_device();
  std::uintptr_t address = 0;
  driver<int(std::uintptr_t*, std::size_t)>("cuMemAlloc_v2")(&address, bytes);
  return reinterpret_cast<void*>(address);
}

void release(void* memory) {
  enter_device();
  driver<int(std::uintptr_t)>("cuMemFree_v2")(reinterpret_cast<std::uintptr_t>(memory));
}

std::vector<Exception> exceptions() {
  constexpr char kReadsNothing[] = "the compiler of the driver for tests reads no text";
  if (!is_fake) return {};
  return {{"Portable.CompileError_NamesKernelFileAndLineAndOtherKernelsRun", kReadsNothing},
          {"Portable.SharedMemoryAboveTheLimit_ErrorNamesKernelAndBytes", kReadsNothing}};
}

const Registration cuda({
    .name = "cuda",
    .domain = "cuda:0",
    .small = "cuda:0,memory=32KiB",
    .kernels = kernels,
    .exceptions = exceptions(),
    .allocate = allocate,
    .release = release,
});

}  // namespace
}  // namespace weir::conformance
