// The kernel that evaluates creatures on a device.
#pragma once

#include <weir/weir.hpp>

#include "common/chunk_loop.hpp"
#include "evolution/population.hpp"

namespace weir::apps {

/// The result of the kernel for a creature, whose input is its number and its genes, all in double.
struct Evaluated {
  double creature, fitness;
};

/// The kernel of the stage, which a rank registers that serves it to others.
weir::Kernel fitness_kernel(const weir::Runtime& runtime);
/// Makes an Evaluated of each creature: the same bits as Island::evaluate(). It reads
/// `coefficients`, those of an island.
DeviceStage fitness_stage(const weir::Runtime& runtime, const EvolutionOptions& options,
                          const weir::Buffer& coefficients);

}  // namespace weir::apps
