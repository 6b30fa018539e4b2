// Halo exchanges as actions of streams.
#pragma once

#include <span>

#include <weir/stream_messages.h>

#include "runtime/grid.hpp"
#include "runtime/runtime.hpp"

namespace weir::rt {

/// Enqueues a step of a halo, with operands in host memory. Throws Error without effect.
weir_event enqueue_halo(Stream& stream, weir_halo& halo, std::span<const weir_operand> operands);

}  // namespace weir::rt
