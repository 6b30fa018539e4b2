// Random updates of a table that is distributed over ranks.
#pragma once

#include <memory>

#include "common/workload.hpp"

namespace weir::apps {

/// A histogram: of the words of a text, of the k-mers of sequences, or of generated keys.
std::unique_ptr<Application> make_scatter();

}  // namespace weir::apps
