// Smaller programs that still fail.
#pragma once

#include "program.hpp"
#include "shrinker.hpp"

namespace weir::model {

/// Returns whether a plan fails when it is ordered and run.
using Fails = Shrinker<Program>::Fails;

/// Takes steps, threads, streams, operands and properties away for as long as the plan still fails
/// and there is time. The plan itself must fail.
Program shrink(Program plan, const Fails& fails, double seconds);

}  // namespace weir::model
