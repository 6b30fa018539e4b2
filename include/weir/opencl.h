/* For kernels of the kind "opencl", which enqueue their work themselves. */
#pragma once

#include <stdint.h>

#include <weir/export.h>
#include <weir/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Finds the driver's buffer, a cl_mem, that holds an operand of a kernel of the kind "opencl", and
 * the offset of `address` in it. `address` is in the operand.
 *
 * For drivers without shared virtual memory: there an address identifies an offset in a buffer;
 * neither the host nor the driver can access memory at it. With shared virtual memory
 * clSetKernelArgSVMPointer() takes the address; *out_buffer is NULL then and *out_offset 0. The
 * buffer is weir's; use it in commands of the queue of the call only. From any thread, while the
 * kernel is called.
 */
WEIR_API weir_status weir_opencl_buffer(const void* address, void** out_buffer,
                                        uint64_t* out_offset);

#ifdef __cplusplus
}
#endif
