// Cosine transforms of pictures.
#pragma once

#include <memory>

#include "common/workload.hpp"

namespace weir::apps {

/// The orthonormal cosine transform (DCT-II) of blocks of 8 x 8 pixels; with a quality also what
/// JPEG would leave of the picture.
std::unique_ptr<Application> make_dct();

}  // namespace weir::apps
