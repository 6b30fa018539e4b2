// What tests tell the fake CUDA driver, and what it tells them.
//
// The library has the entry points of the driver and of NVRTC that weir and its benchmarks use. Its
// devices are threads of the host: one for each stream, which runs what is in the stream in order.
// There are FAKE_CUDA_DEVICES of them (2), each with 32 multiprocessors that divide into four
// groups and FAKE_CUDA_MEMORY bytes (1 GiB). Kernels in the portable dialect that it has not been
// given it compiles for the host, with the compiler that it was built with.
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Code of a kernel for the groups with the indices [begin, end), x fastest, as in
/// weir_portable_kernel. `arguments` are the addresses of copies of its arguments.
typedef void (*fake_cuda_run)(const uint32_t groups[3], uint64_t begin, uint64_t end,
                              void* const* arguments);

/// Gives a kernel whose name a compiled text has its code. `parameters` has a letter for each, as
/// in weir's KernelSource.
void fake_cuda_register_kernel(const char* entry, const char* parameters, fake_cuda_run run);

/// Forgets counts and faults. Devices that are lost stay so until their context is released.
void fake_cuda_reset(void);

/// Returns how often an entry point was called, "cuEventRecord", since the reset.
unsigned long fake_cuda_calls(const char* name);
/// The n-th call from now on of an entry point returns `code` and does nothing. A code that breaks
/// the context does.
void fake_cuda_fail(const char* name, unsigned long n, int code);
/// The n-th kernel that is launched from now on breaks its context when it runs.
void fake_cuda_break_launch(unsigned long n, int code);
/// Holds all streams back, or lets them go on.
void fake_cuda_hold(int held);
/// Returns how many commands were in one stream at most since the reset.
unsigned long fake_cuda_depth(void);
/// Returns how often something was used that was gone, or from where it must not be.
unsigned long fake_cuda_misuses(void);
/// Returns how many streams, events, allocations, libraries and green contexts there are now.
unsigned long fake_cuda_objects(void);
/// Returns in how many streams a kernel was running at most since the reset.
unsigned long fake_cuda_most_at_once(void);
/// Returns the bits of the groups of multiprocessors that the last kernel ran on.
unsigned long fake_cuda_last_groups(void);
/* Bytes of dynamic shared memory of the last kernel that was launched. */
unsigned long fake_cuda_last_shared(void);

#ifdef __cplusplus
}
#endif
