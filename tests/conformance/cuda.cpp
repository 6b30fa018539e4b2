// CUDA on the driver for tests, whose cards are threads; on a real card when WEIR_CUDA_DRIVER names
// a driver.
#include <dlfcn.h>
#include <weir/portable.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "fake_cuda.h"
#include "suite.hpp"

namespace weir::conformance {
namespace {

namespace wk {
#include "cuda.wk"
#include "suite.wk"
}  // namespace wk
#include <cuda.wk.h>

// Until another call of it has begun as well; the dialect has no words for that.
constexpr char kMeet[] = R"(
__device__ unsigned arrived;
extern "C" __global__ void suite_meet(long long*) {
  const unsigned wanted = (atomicAdd(&arrived, 1u) | 1u) + 1u;
  while (*(volatile unsigned*)&arrived < wanted) __nanosleep(1000);
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

/// Whether the cards are those for tests; says so before the library looks for a driver.
const bool pretends = [] {
  if (const char* const given = std::getenv("WEIR_CUDA_DRIVER")) {
    void* const library = dlopen(given, RTLD_NOW);
    if (library == nullptr || dlsym(library, "fake_cuda_register_kernel") == nullptr) return false;
  } else {
    setenv("WEIR_CUDA_DRIVER", WEIR_TEST_FAKE_CUDA, 1);
  }
  setenv("WEIR_NVRTC", std::getenv("WEIR_CUDA_DRIVER"), 1);
  for (const weir_portable_kernel* kernel :
       {&wk::suite_fill, &wk::suite_add, &wk::suite_mix, &wk::suite_number, &wk::suite_scalars,
        &wk::suite_parallel, &wk::axpy, &wk::stencil, &wk::reduce, &wk::multiply, &wk::rounds,
        &wk::values, &wk::atomics, &wk::vectors, &wk::repeat, &wk::pick, &wk::weigh_five}) {
    teach(*kernel);
  }
  teach({"suite_meet", {1, 1, 1}, "p", meet, nullptr});
  return true;
}();

template <class Grid>
Kernel made(const Runtime& runtime, const weir_portable_kernel& kernel, Grid grid) {
  return runtime.portable_kernel({.kernel = &kernel, .source = cuda_wk, .source_name = "cuda.wk"},
                                 grid);
}

std::uint32_t count(std::size_t value) { return static_cast<std::uint32_t>(value); }

/// A kernel that enqueues work itself.
Kernel native(const Runtime& runtime, const char* name, weir_host_function function) {
  const weir_implementation code{"cuda", function, nullptr};
  weir_kernel_options options = WEIR_KERNEL_OPTIONS_INIT;
  options.name = name;
  options.implementations = &code;
  options.implementation_count = 1;
  weir_kernel* kernel = nullptr;
  check(weir_kernel_register(runtime.handle(), &options, &kernel));
  return Kernel(kernel);
}

weir_status fail(const weir_call* call) {
  return weir_call_fail(call, WEIR_STATUS_KERNEL_ERROR, "tile 7 is broken");
}

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

Kernels kernels(const Runtime& runtime) {
  constexpr auto kEach = [](const Call& call) {
    return Groups{count(call.operand(0).extent[0] / sizeof(std::int64_t))};
  };
  constexpr auto kTile = [](const Call& call) {
    const weir_view& x = call.operand(0);
    return Groups{count(x.extent[0] / sizeof(std::int64_t)), count(x.extent[1]),
                  count(x.stride[0] / sizeof(std::int64_t))};
  };
  constexpr auto kOne = [](const Call&) { return Groups{1}; };
  Kernels all;
  all.fill = made(runtime, wk::suite_fill, kEach);
  all.add = made(runtime, wk::suite_add, kEach);
  all.mix = made(runtime, wk::suite_mix, kEach);
  all.number = made(runtime, wk::suite_number, kTile);
  all.scalars = made(runtime, wk::suite_scalars, kOne);
  all.parallel = made(runtime, wk::suite_parallel, kEach);
  all.fail = native(runtime, "fail", fail);
  all.gather = native(runtime, "gather", gather);
  const weir_portable_kernel meeting{"suite_meet", {1, 1, 1}, "p", nullptr, nullptr};
  all.meet = runtime.portable_kernel(
      {.kernel = &meeting, .source = kMeet, .source_name = "meet.cu"}, kOne);
  return all;
}

/// A function of the driver, which the library has opened.
template <class Function>
Function* driver(const char* name) {
  void* const library = dlopen(std::getenv("WEIR_CUDA_DRIVER"), RTLD_NOW);
  return reinterpret_cast<Function*>(dlsym(library, name));
}

/// Makes the primary context of the first card current, as other libraries of a program do.
void enter_card() {
  static void* const context = [] {
    driver<int(unsigned)>("cuInit")(0);
    void* made = nullptr;
    driver<int(void**, int)>("cuDevicePrimaryCtxRetain")(&made, 0);
    return made;
  }();
  driver<int(void*)>("cuCtxSetCurrent")(context);
}

void* allocate(std::size_t bytes) {
  enter_card();
  std::uintptr_t address = 0;
  driver<int(std::uintptr_t*, std::size_t)>("cuMemAlloc_v2")(&address, bytes);
  return reinterpret_cast<void*>(address);
}

void release(void* memory) {
  enter_card();
  driver<int(std::uintptr_t)>("cuMemFree_v2")(reinterpret_cast<std::uintptr_t>(memory));
}

std::vector<Exception> exceptions() {
  constexpr char kHeld[] = "the kernel that the test holds is code of the host";
  constexpr char kReadsNothing[] = "the compiler of the driver for tests reads no text";
  std::vector<Exception> found = {{"Ordering.BarriersNeedNoHost", kHeld},
                                  {"Ordering.DependentActionsNeedNoHost", kHeld}};
  if (!pretends) return found;
  for (const char* test :
       {"Portable.SaysWhereItDoesNotCompile", "Portable.SaysThatSharedMemoryIsTooLarge"}) {
    found.push_back({test, kReadsNothing});
  }
  return found;
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
