/* For kernels of the kind "opencl", which enqueue their work themselves. */
#pragma once

#include <stdint.h>

#include <weir/export.h>
#include <weir/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Finds the buffer of the driver, a cl_mem, in which an operand of a kernel of the kind "opencl"
 * is, and the bytes before it there. `address` is that of the operand, or one within it.
 *
 * For drivers without shared virtual memory: there an address stands for a place in a buffer, and
 * is no memory that the host may touch or the driver knows. Elsewhere an address is what
 * clSetKernelArgSVMPointer() takes; *out_buffer is NULL then and *out_offset 0. The buffer is
 * weir's; use it in commands of the queue of the call only. From any thread, while the kernel is
 * called.
 */
WEIR_API weir_status weir_opencl_buffer(const void* address, void** out_buffer,
                                        uint64_t* out_offset);

#ifdef __cplusplus
}
#endif
