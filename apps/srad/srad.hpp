// Pictures without speckle.
#pragma once

#include <memory>

#include "common/workload.hpp"

namespace weir::apps {

/// Speckle-reducing anisotropic diffusion as Rodinia's srad (version 2): a picture I from 0 to 1,
/// J = exp(I), and a sample of speckle in the upper left corner.
std::unique_ptr<Application> make_srad();

}  // namespace weir::apps
