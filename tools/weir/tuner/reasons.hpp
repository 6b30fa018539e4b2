// Explains the choice of a tuner.
#pragma once

#include <string>
#include <vector>

#include "tuner/search.hpp"

namespace weir::cli::tuner {

/// Sentences about the best point, each with the measurements it stands on. Causes are what the
/// recordings of the compared runs show: the work of kernels, idle cores, copies that no kernel
/// hides, time in which nothing runs.
std::vector<std::string> reasons(const Search& search, const Space& space);

}  // namespace weir::cli::tuner
