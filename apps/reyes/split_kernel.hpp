// The kernel that splits patches on a CUDA device.
#pragma once

#include <weir/pipeline.hpp>
#include <weir/weir.hpp>

#include "reyes/patch_stages.hpp"

namespace weir::apps {

/// A stage that puts patches without room to be split, small patches, and for each batch the number
/// of patches that it has completed.
struct SplitStage {
  weir::Kernel kernel;
  weir::KernelStageOptions options;
};

/// For domains of the backend "cuda" only: the groups of the kernel stay on the device until all
/// patches of a batch are small, and share them through a tunnel in its memory, with this relief.
SplitStage split_stage(const weir::Runtime& runtime, const ReyesCamera& camera, weir_relief relief);

}  // namespace weir::apps
