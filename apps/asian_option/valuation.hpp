// From sums over paths to what an option is worth.
#pragma once

#include <span>

#include "asian_option/option.hpp"
#include "asian_option/path_kernels.hpp"

namespace weir::apps {

/// Adds up the groups of an option in their order, and makes estimates of the sums. With `control`
/// the price is corrected by the error of the geometric average's, which has a closed form (Kemna
/// and Vorst 1990), times the factor that leaves the least variance.
Valuation valuate(const Option& option, std::span<const PathSums> groups, bool control);

}  // namespace weir::apps
