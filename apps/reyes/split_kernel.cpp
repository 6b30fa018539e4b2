#include "reyes/split_kernel.hpp"

#include <cstdint>

#include <split_walk.hpp.h>
#include "reyes/split_walk.hpp"

namespace weir::apps {

static_assert(sizeof(Patch) == sizeof(reyes::Bezier));
static_assert(sizeof(SmallPatch) == sizeof(reyes::SmallBezier));

SplitStage split_stage(const weir::Runtime& runtime, const ReyesCamera& camera,
                       weir_relief relief) {
  constexpr std::size_t kBatch = 64, kMost = 64;
  static constexpr weir_portable_kernel kText = {
      "reyes_split", {reyes::kGroup, 1, 1}, "ppppppppllffffi", nullptr, nullptr};
  const weir::Kernel kernel =
      runtime.portable_kernel({.kernel = &kText,
                               .source = split_walk_hpp,
                               .source_name = "split_walk.hpp",
                               .name = "reyes.split",
                               .shape = WEIR_KERNEL_SHAPE_SERIAL,
                               .resident = true},
                              [](const weir::Call&) { return weir::Groups{reyes::kMostGroups}; });
  return {kernel,
          {.scalars = {static_cast<std::int64_t>(kMost), camera.width, camera.height,
                       camera.scale_x, camera.scale_y, static_cast<std::int32_t>(relief)},
           .outputs = {{kMost, WEIR_STAGE_COUNTING_PER_TUNNEL},
                       {kMost, WEIR_STAGE_COUNTING_PER_TUNNEL},
                       {1, WEIR_STAGE_COUNTING_PER_TUNNEL}},
           .batch = kBatch,
           .scratch_bytes = reyes::scratch_bytes(kBatch * kMost)}};
}

}  // namespace weir::apps
