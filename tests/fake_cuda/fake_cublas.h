// What tests tell the fake cuBLAS and cuSOLVER, and what they tell them.
//
// One library has the entry points of both that weir uses. Each routine is a plain loop, which runs
// in the stream of its handle.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/// Returns how many handles of both there are now.
unsigned long fake_cublas_handles(void);
/// The next routine returns `status` and does nothing.
void fake_cublas_fail(int status);

#ifdef __cplusplus
}
#endif
