// A pipeline that applies a stencil while its values are still being made.
#pragma once

#include <memory>

#include "common/workload.hpp"

namespace weir::apps {

/// The stencil of HiWayLib (paper 002): a stage makes the values of a matrix, a device takes means
/// of five, in sweeps. The baseline copies the five values of each mean.
std::unique_ptr<Application> make_stencil();

}  // namespace weir::apps
