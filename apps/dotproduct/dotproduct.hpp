// The product of two vectors.
#pragma once

#include <memory>

#include "common/workload.hpp"

namespace weir::apps {

/// x . y by parts, which the host adds up.
std::unique_ptr<Application> make_dotproduct();

}  // namespace weir::apps
