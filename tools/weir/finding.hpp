// One line of the doctor's report.
#pragma once

#include <string>
#include <vector>

namespace weir::cli {

enum class Level { ok, warning, problem };

/// What one check found. A problem keeps applications from running; a warning names a cause of
/// slowness or a setting that may be a mistake.
struct Finding {
  Level level = Level::ok;
  std::string check;
  std::string found;
  std::string fix = {};  ///< command or setting that helps; "" when there is nothing to do
};

using Findings = std::vector<Finding>;

}  // namespace weir::cli
