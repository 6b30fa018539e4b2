// The sweep for host cores, in wide vectors and past the cache where that pays.
#pragma once

#include <weir/weir.hpp>

namespace weir::apps {

/// Implements the kernels of jacobi.wk, with the same bits. The fifth scalar says whether written
/// cells leave the cache before they are read again.
template <class T, int dimensions>
weir_status native_jacobi(const weir_call* call);

/// Implements the kernels that make several steps at once, with the same bits as one after the
/// other. Throws std::bad_alloc.
template <class T, int dimensions>
weir_status native_jacobi_steps(const weir_call* call);

}  // namespace weir::apps
