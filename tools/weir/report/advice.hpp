// Findings on a recording: the losses of time and their remedies.
#pragma once

#include <vector>

#include "report/analysis.hpp"

namespace weir::cli::report {

/// Returns the findings on an analysis whose figures are complete. The first one names the largest
/// loss of time, its cause as recorded, and a remedy if `choices` leave one; a remedy never
/// proposes what the recording already does.
std::vector<Finding> findings_on(const Analysis& analysis, const Choices& choices);

}  // namespace weir::cli::report
