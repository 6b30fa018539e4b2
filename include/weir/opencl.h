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
 * neither the host nor the driver can access memory at it. With shared virtual memory *out_buffer
 * is NULL and *out_offset 0; pass the address to clSetKernelArgSVMPointer(). weir owns the buffer:
 * use it only in commands of the queue of the call. Any thread may call it during the call of the
 * kernel.
 */
WEIR_API weir_status weir_opencl_buffer(const void* address, void** out_buffer,
                                        uint64_t* out_offset);

#ifdef __cplusplus
}
#endif
