// Patches that a card dices.
#pragma once

#include <cstddef>
#include <vector>

#include <weir/weir.hpp>

#include "reyes/patch_stages.hpp"

namespace weir::apps {

/// Makes the micropolygons of each SmallPatch, in any order, and adds to their number: the same
/// bits as micropolygon(). Its scalars follow the number of patches.
weir::Kernel register_dice_kernel(const weir::Runtime& runtime);
std::vector<weir::Scalar> dice_scalars(const ReyesCamera& camera);

}  // namespace weir::apps
