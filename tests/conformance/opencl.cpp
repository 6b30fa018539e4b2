#define CL_TARGET_OPENCL_VERSION 200
#include <CL/cl.h>
#include <dlfcn.h>

#include <weir/opencl.h>

#include "device_code.hpp"

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

/// Returns why no device can stand for a GPU, "" when one can.
std::string missing_gpu() {
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

template <class Function>
Function opencl_function(const char* name) {
  return reinterpret_cast<Function>(dlsym(dlopen("libOpenCL.so.1", RTLD_NOW), name));
}

cl_int copy_number(void* queue, const void* from, void* to) {
  static const auto copy = opencl_function<decltype(&clEnqueueSVMMemcpy)>("clEnqueueSVMMemcpy");
  static const auto copy_buffer =
      opencl_function<decltype(&clEnqueueCopyBuffer)>("clEnqueueCopyBuffer");
  void *source = nullptr, *target = nullptr;
  std::uint64_t source_offset = 0, target_offset = 0;
  check(weir_opencl_buffer(from, &source, &source_offset));
  check(weir_opencl_buffer(to, &target, &target_offset));
  auto* const commands = static_cast<cl_command_queue>(queue);
  if (source == nullptr) {
    return copy(commands, CL_FALSE, to, from, sizeof(std::int64_t), 0, nullptr, nullptr);
  }
  return copy_buffer(commands, static_cast<cl_mem>(source), static_cast<cl_mem>(target),
                     source_offset, target_offset, sizeof(std::int64_t), 0, nullptr, nullptr);
}

weir_status gather_by_queue(const weir_call* call) {
  const std::size_t last = call->operand_count - 1;
  auto* const target = static_cast<std::int64_t*>(call->operands[last].address);
  for (std::size_t i = 0; i < last; ++i) {
    const cl_int code = copy_number(call->queue, call->operands[i].address, target + i);
    if (code != CL_SUCCESS) {
      return weir_call_fail(call, WEIR_STATUS_DEVICE_ERROR, "copy %zu fails with %d", i, code);
    }
  }
  return WEIR_STATUS_OK;
}

constexpr char kNoRendezvous[] = "OpenCL C 1.2 has no memory that two kernels share";
constexpr char kNoMeet[] = "#error OpenCL C 1.2 has no memory that two kernels share\n";

constexpr char kHeld[] = "the kernel that the test holds is code of the host";

Kernels kernels_of_gpus(const Runtime& runtime) {
  return device_code(runtime, {"opencl", gather_by_queue, kNoMeet, "meet.cl", nullptr});
}

/// Returns the exceptions of all devices that compile kernels, and those of one of them.
std::vector<Exception> exceptions_of_gpus(const std::vector<Exception>& own = {}) {
  std::vector<Exception> all = {
      {"Copies.TransferToAPeerDevice_ArrivesAndLeavesTheSourceUnchanged",
       "OpenCL devices have no link to each other"},
      {"Memory.AdoptedDeviceMemory_IsUsedInPlaceAndOverlapIsRejected",
       "an OpenCL device takes no memory"},
      {"Ordering.KernelsSeparatedByBarriers_AreSubmittedBeforeTheFirstEnds", kHeld},
      {"Ordering.DependentKernels_AreSubmittedBeforeTheFirstEnds", kHeld},
      {"Overlap.*", kNoRendezvous}};
  all.insert(all.end(), own.begin(), own.end());
  return all;
}

const Registration gpu({
    .name = "opencl_gpu",
    .domain = "opencl:0,native=off",
    .small = "opencl:0,native=off,memory=32KiB",
    .kernels = kernels_of_gpus,
    .exceptions = exceptions_of_gpus(),
    .missing = missing_gpu,
});

/// A device whose driver has no shared virtual memory.
const Registration buffers({
    .name = "opencl_buffers",
    .domain = "opencl:0,native=off,svm=off",
    .small = "opencl:0,native=off,svm=off,memory=32KiB",
    .kernels = kernels_of_gpus,
    .exceptions = exceptions_of_gpus(),
    .missing = missing_gpu,
});

/// Returns why there is no device of rusticl, "" when there is. rusticl is Mesa's driver for GPUs;
/// here a processor stands for one.
std::string missing_rusticl() {
#ifdef __SANITIZE_THREAD__
  return "the thread sanitizer does not see the locks of the driver";
#endif
  try {
    const Runtime runtime("opencl:0");
    const bool is_there = runtime.describe().find("rusticl") != std::string::npos;
    return is_there ? "" : "opencl:0 is not a device of rusticl: install mesa-opencl-icd";
  } catch (const Error& error) {
    if (error.status() != WEIR_STATUS_UNAVAILABLE) throw;
    return error.what();
  }
}

constexpr char kNoDoubles[] = "the device has no doubles";

const Registration rusticl({
    .name = "opencl_rusticl",
    .domain = "opencl:0",
    .small = "opencl:0,memory=32KiB",
    .kernels = kernels_of_gpus,
    .exceptions = exceptions_of_gpus(
        {{"Compute.IntegerAndFloatingPointScalars_ReachTheKernelUnchanged", kNoDoubles},
         {"Portable.MatrixMultiplyInDoubles_IsExactAndWritesOnlyItsTile", kNoDoubles},
         {"Portable.ContendedAtomicsOnAllTypes_GiveExactResults", kNoDoubles},
         {"Portable.Float4AndDouble4_LoadComputeAndStoreEachElement", kNoDoubles},
         {"Portable.ScalarArguments_ConvertToParameterTypesWithoutLoss", kNoDoubles},
         {"Portable.GroupsWith96KiBOfSharedMemory_ReverseTheirElements",
          "groups of the device share 32 KiB at most"},
         {"Portable.SharedMemoryAboveTheLimit_ErrorNamesKernelAndBytes",
          "the driver counts the shared memory of a group twice (Mesa 22.3, not 25.0)", true}}),
    .missing = missing_rusticl,
});

const Registration unaliased({
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
