// Asian options by Monte Carlo, distributed over unequal places (paper 004).
#pragma once

#include <memory>

#include "common/workload.hpp"

namespace weir::apps {

/// Prices a book of options on averages.
std::unique_ptr<Application> make_asian_option();

}  // namespace weir::apps
