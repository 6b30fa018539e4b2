#include "kernels/opencl_library.hpp"

#include "base/error.hpp"
#include "kernels/blas_library.hpp"

namespace weir::kernels {

namespace {

OpenCl open_loader() {
  constexpr const char* kLoader = "libOpenCL.so.1";
  SharedObject object;
  object.open(kLoader);
  OpenCl found;
#define WEIR_OPENCL_KERNEL_FIND(name)                                                        \
  found.name = object.find<decltype(::name)>(#name);                                         \
  if (found.name == nullptr) {                                                               \
    rt::fail(WEIR_STATUS_UNAVAILABLE, "{} has no {}: OpenCL 1.2 is needed", kLoader, #name); \
  }
  WEIR_OPENCL_KERNEL_FUNCTIONS(WEIR_OPENCL_KERNEL_FIND)
#undef WEIR_OPENCL_KERNEL_FIND
  found.clSetKernelArgSVMPointer =
      object.find<cl_int(cl_kernel, cl_uint, const void*)>("clSetKernelArgSVMPointer");
  return found;
}

}  // namespace

const OpenCl& OpenCl::get() {
  static const OpenCl loader = open_loader();
  return loader;
}

void OpenCl::check(cl_int code, const char* what) {
  if (code == CL_SUCCESS) return;
  const bool memory = code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_HOST_MEMORY;
  rt::fail(memory ? WEIR_STATUS_OUT_OF_MEMORY : WEIR_STATUS_DEVICE_ERROR,
           "the OpenCL driver fails with {}: {}", code, what);
}

}  // namespace weir::kernels
