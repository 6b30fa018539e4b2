// A layer between OpenCL's loader and a real driver, which fails where a test wants it.
//
// A program that sets OPENCL_LAYERS to the library's path before it opens the loader has it.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/// The next kernel that is enqueued does not run: its command ends with `code`, 0 or a failure, at
/// the next call of `until`: clFlush(), clSetEventCallback(), clEnqueueNDRangeKernel(),
/// clEnqueueNativeKernel() or clEnqueueMarkerWithWaitList().
void failing_opencl_end_launch(const char* until, int code);
/// The next call of clSetEventCallback() or clBuildProgram() returns `code` and does nothing.
void failing_opencl_fail(const char* name, int code);
/// Holds the clearing of buffers back, or lets it go on.
void failing_opencl_hold_fills(int held);
/// Returns how often one of these has happened.
unsigned failing_opencl_failures(void);

#ifdef __cplusplus
}
#endif
