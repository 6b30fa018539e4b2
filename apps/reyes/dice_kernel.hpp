// The kernel that dices patches on a device.
#pragma once

#include <weir/weir.hpp>

#include "common/chunk_loop.hpp"
#include "reyes/patch_stages.hpp"

namespace weir::apps {

/// The kernel of the stage, which a rank registers that serves it to others.
weir::Kernel dice_kernel(const weir::Runtime& runtime);
/// Makes the micropolygons of each SmallPatch, in any order, and adds to their number: the same
/// bits as micropolygon(); at most `most` of a patch.
DeviceStage dice_stage(const weir::Runtime& runtime, const ReyesCamera& camera, std::size_t most);

}  // namespace weir::apps
