#include "evolution/fitness_kernel.hpp"

#include <cstdint>

#include <weir/portable.h>

#include <fitness.wk.h>
#include "evolution/fitness.wk"

namespace weir::apps {

weir::Kernel fitness_kernel(const weir::Runtime& runtime) {
  return runtime.portable_kernel(
      {.kernel = &evolution_fitness,
       .source = fitness_wk,
       .source_name = "fitness.wk",
       .name = "evolution.fitness",
       .shape = WEIR_KERNEL_SHAPE_SERIAL,
       .cost =
           [](const weir_call* given) {
             const weir::Call call(given);
             const double creatures = call.scalar<double>(0), genes = call.scalar<double>(1);
             const double each = call.scalar<int>(2) != 0 ? genes * (genes + 3) / 2 : 3 * genes;
             return weir_cost{each * creatures, sizeof(double) * (genes + 3) * creatures};
           }},
      [](const weir::Call& call) { return weir::Groups{call.scalar<std::uint32_t>(0)}; });
}

DeviceStage fitness_stage(const weir::Runtime& runtime, const EvolutionOptions& options,
                          const weir::Buffer& coefficients) {
  return {
      .kernel = fitness_kernel(runtime),
      .item_bytes = (options.genes + 1) * sizeof(double),
      .made_bytes = sizeof(Evaluated),
      .options = {.scalars = {static_cast<std::int32_t>(options.genes),
                              static_cast<std::int32_t>(options.problem == Problem::polynomial)},
                  .tables = {weir::read(coefficients.all())}}};
}

}  // namespace weir::apps
