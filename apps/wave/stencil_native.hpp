// The step of stencil.wk for the processor at hand.
#pragma once

#include <weir/kernel.h>

namespace weir::apps {

/// Does what the portable kernel does, with its scalars and operands, in the widest vectors that
/// this processor has. T is float or double.
template <class T>
weir_status native_wave_step(const weir_call* call);

extern template weir_status native_wave_step<float>(const weir_call* call);
extern template weir_status native_wave_step<double>(const weir_call* call);

}  // namespace weir::apps
