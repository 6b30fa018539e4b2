#include "reyes/dice_kernel.hpp"

#include <cmath>
#include <cstdint>

#include <weir/portable.h>

#include <dice.wk.h>
#include "reyes/dice.wk"

namespace weir::apps {

static_assert(sizeof(SmallPatch) == PATCH_WORDS * sizeof(float));
static_assert(sizeof(Micropolygon) == POLYGON_WORDS * sizeof(float));

weir::Kernel dice_kernel(const weir::Runtime& runtime) {
  return runtime.portable_kernel(
      {.kernel = &reyes_dice,
       .source = dice_wk,
       .source_name = "dice.wk",
       .name = "reyes.dice",
       .shape = WEIR_KERNEL_SHAPE_SERIAL,
       .cost =
           [](const weir_call* given) {
             constexpr double kPolygons = 9, kOperations = 1500;  // of most patches; of a polygon
             const double patches = weir::Call(given).scalar<double>(0);
             return weir_cost{kOperations * kPolygons * patches,
                              (sizeof(SmallPatch) + kPolygons * sizeof(Micropolygon)) * patches};
           }},
      [](const weir::Call& call) { return weir::Groups{call.scalar<std::uint32_t>(0)}; });
}

DeviceStage dice_stage(const weir::Runtime& runtime, const ReyesCamera& camera, std::size_t most) {
  return {.kernel = dice_kernel(runtime),
          .item_bytes = sizeof(SmallPatch),
          .made_bytes = sizeof(Micropolygon),
          .options = {.scalars = {camera.width, camera.height, camera.scale_x, camera.scale_y,
                                  camera.scale_z, camera.shift_z},
                      .outputs = {{most, WEIR_STAGE_COUNTING_PER_TUNNEL}}}};
}

}  // namespace weir::apps
