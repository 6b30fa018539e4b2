// Smaller programs of tasks that still fail.
#pragma once

#include "queue_plan.hpp"
#include "shrinker.hpp"

namespace weir::queue_model {

using Fails = model::Shrinker<Plan>::Fails;

/// Takes steps, operands, properties and regions away for as long as the plan still fails and there
/// is time. The plan itself must fail.
Plan shrink(Plan plan, const Fails& fails, double seconds);

}  // namespace weir::queue_model
