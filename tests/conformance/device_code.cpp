#include "device_code.hpp"

#include <weir/portable.h>

namespace weir::conformance {
namespace {

namespace wk {
#include "device_code.wk"
}  // namespace wk
#include <device_code.wk.h>

template <class Grid>
Kernel made(const Runtime& runtime, const weir_portable_kernel& kernel, Grid grid) {
  return runtime.portable_kernel(
      {.kernel = &kernel, .source = device_code_wk, .source_name = "device_code.wk"}, grid);
}

std::uint32_t count(std::size_t value) { return static_cast<std::uint32_t>(value); }

/// A kernel that enqueues work itself.
Kernel native(const Runtime& runtime, const char* name, const char* kind,
              weir_host_function function) {
  const weir_implementation code{kind, function, nullptr};
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

}  // namespace

Kernels device_code(const Runtime& runtime, const DeviceWords& words) {
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
  all.fail = native(runtime, "fail", words.kind, fail);
  all.gather = native(runtime, "gather", words.kind, words.gather);
  if (words.held != nullptr) all.held = native(runtime, "held", words.kind, words.held);
  const weir_portable_kernel rendezvous{"suite_meet", {1, 1, 1}, "p", nullptr, nullptr};
  all.meet = runtime.portable_kernel(
      {.kernel = &rendezvous, .source = words.meet, .source_name = words.meet_name}, kOne);
  return all;
}

}  // namespace weir::conformance
