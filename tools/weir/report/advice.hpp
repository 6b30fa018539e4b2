// What to look at in a recording, and what to do about it.
#pragma once

#include <vector>

#include "report/analysis.hpp"

namespace weir::cli::report {

/// Returns the findings on an analysis whose figures are complete. The first one names the largest
/// loss of time, its cause as recorded, and a remedy if `choices` leave one; a remedy is never what
/// the recording shows to be so already.
std::vector<Finding> findings_on(const Analysis& analysis, const Choices& choices);

}  // namespace weir::cli::report
