// The report as text for a terminal.
#pragma once

#include <string>
#include <vector>

#include "report/page.hpp"

namespace weir::cli {

/// Returns the summary and the findings of each part, without its timeline.
std::string report_text(const std::vector<report::Part>& parts);

}  // namespace weir::cli
