#include "backends/sim/kernel_model.hpp"

#include <cmath>
#include <string_view>

namespace weir::rt {

namespace {

constexpr double kLossOfFactorisations = 4;  ///< times that of products: their parts shrink

/// A built-in tile kernel "blas.TKIND", "lapack.TKIND", or one of these with ".team".
struct TileKernel {
  std::string_view kind;            ///< "": another kernel
  double element = sizeof(double);  ///< bytes

  explicit TileKernel(std::string_view name) noexcept {
    const std::size_t dot = name.find('.');
    const std::string_view family = name.substr(0, dot);
    if ((family != "blas" && family != "lapack") || dot + 2 >= name.size()) return;
    if (name[dot + 1] == 's') element = sizeof(float);
    kind = name.substr(dot + 2);
    kind = kind.substr(0, kind.find('.'));
  }
};

bool factorises(std::string_view kind) noexcept { return kind == "potrf" || kind == "getrf"; }

double share_of_rate(const SimModel& model, std::string_view kind) noexcept {
  if (kind == "syrk") return model.syrk_share;
  if (kind == "trsm") return model.trsm_share;
  return factorises(kind) ? model.potrf_share : 1;
}

/// The mean of the reciprocal extents of the job's matrices, in elements.
double mean_reciprocal_extent(const Job& job, double element) noexcept {
  double sum = 0;
  int extents = 0;
  for (std::size_t i = 0; i < job.call.operand_count; ++i) {
    const auto& extent = job.call.operands[i].extent;
    if (extent[1] <= 1) continue;  // pivots
    sum += element / static_cast<double>(extent[0]) + 1 / static_cast<double>(extent[1]);
    extents += 2;
  }
  return extents == 0 ? 0 : sum / extents;
}

double compute_seconds(const SimModel& model, const Job& job, double flops, double threads) {
  const TileKernel tile(job.kernel);
  const double cores = threads / model.threads;
  double seconds = flops / (cores * model.core_flops_per_s * share_of_rate(model, tile.kind));
  if (model.tile_loss > 0 && !tile.kind.empty()) {
    const double loss = model.tile_loss * (factorises(tile.kind) ? kLossOfFactorisations : 1);
    seconds *= 1 + loss * std::sqrt(cores) * mean_reciprocal_extent(job, tile.element);
  }
  return seconds;
}

}  // namespace

KernelWork work_of(const SimModel& model, const Job& job, double threads, double measured_s) {
  KernelWork work;
  const double fork_ns = static_cast<double>(model.fork_ns) * threads;
  work.launch_ns = model.launch_ns;
  if (job.parallel) work.launch_ns += model.team_ns + std::llround(fork_ns);
  if (job.cost != nullptr && model.core_flops_per_s > 0) {
    const weir_cost cost = job.cost(&job.call);
    work.compute_s = compute_seconds(model, job, cost.flops, threads);
    work.bytes = model.limits_memory() ? cost.bytes : 0;
  } else {
    work.compute_s = job.parallel ? measured_s / threads : measured_s;
  }
  return work;
}

}  // namespace weir::rt
