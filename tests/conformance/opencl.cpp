#define CL_TARGET_OPENCL_VERSION 200
#include <CL/cl.h>
#include <dlfcn.h>

#include "card_code.hpp"

namespace weir::conformance {
namespace {

/// Why there is no device that can be used, "": there is.
std::string missing() {
#ifdef __SANITIZE_THREAD__
  return "the thread sanitizer does not see the locks of the driver";
#endif
  try {
    const Runtime runtime("opencl:0");
    return runtime.domain(0).info().cores < 2 ? "the OpenCL device has one unit only" : "";
  } catch (const Error& error) {
    if (error.status() != WEIR_STATUS_UNAVAILABLE) throw;
    return error.what();
  }
}

/// Returns why no device can stand for a card, "": one can.
std::string missing_card() {
#ifdef __SANITIZE_THREAD__
  return "the thread sanitizer does not see the locks of the driver";
#endif
  try {
    const Runtime runtime("opencl:0,native=off");
    return "";
  } catch (const Error& error) {
    if (error.status() != WEIR_STATUS_UNAVAILABLE && error.status() != WEIR_STATUS_UNSUPPORTED) {
      throw;
    }
    return error.what();
  }
}

weir_status gather_by_queue(const weir_call* call) {
  static const auto copy = reinterpret_cast<decltype(&clEnqueueSVMMemcpy)>(
      dlsym(dlopen("libOpenCL.so.1", RTLD_NOW), "clEnqueueSVMMemcpy"));
  auto* const queue = static_cast<cl_command_queue>(call->queue);
  const std::size_t last = call->operand_count - 1;
  auto* const target = static_cast<std::int64_t*>(call->operands[last].address);
  for (std::size_t i = 0; i < last; ++i) {
    const cl_int code = copy(queue, CL_FALSE, target + i, call->operands[i].address, sizeof *target,
                             0, nullptr, nullptr);
    if (code != CL_SUCCESS) {
      return weir_call_fail(call, WEIR_STATUS_DEVICE_ERROR, "copy %zu fails with %d", i, code);
    }
  }
  return WEIR_STATUS_OK;
}

constexpr char kNoMeeting[] = "OpenCL C 1.2 has no memory that two kernels share";
constexpr char kNoMeet[] = "#error OpenCL C 1.2 has no memory that two kernels share\n";

constexpr char kHeld[] = "the kernel that the test holds is code of the host";

const Registration card({
    .name = "opencl_card",
    .domain = "opencl:0,native=off",
    .small = "opencl:0,native=off,memory=32KiB",
    .kernels =
        [](const Runtime& runtime) {
          return card_code(runtime, {"opencl", gather_by_queue, kNoMeet, "meet.cl", nullptr});
        },
    .exceptions = {{"Copies.BetweenTwoDevices", "cards of OpenCL have no link to each other"},
                   {"Memory.MayBeTheProgramsThere", "a card of OpenCL takes no memory"},
                   {"Ordering.BarriersNeedNoHost", kHeld},
                   {"Ordering.DependentActionsNeedNoHost", kHeld},
                   {"Overlap.*", kNoMeeting}},
    .missing = missing_card,
});

const Registration apart({
    .name = "opencl",
    .domain = "opencl:0,alias=off",
    .small = "opencl:0,alias=off,memory=32KiB",
    .kernels = host_code,
    .exceptions = {},
    .missing = missing,
});

const Registration shared({
    .name = "opencl_shared",
    .domain = "opencl:0",
    .small = "opencl:0,memory=32KiB",
    .kernels = host_code,
    .exceptions = {},
    .missing = missing,
});

}  // namespace
}  // namespace weir::conformance
