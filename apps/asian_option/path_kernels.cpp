#include "asian_option/path_kernels.hpp"

#include <cmath>

#include <weir/portable.h>

#include <paths.wk.h>
#include "asian_option/paths.wk"

// The host's code once more, for wider vectors.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define WEIR_WIDE
#pragma GCC push_options
#pragma GCC target("avx2,fma")
namespace avx2 {
#include "asian_option/paths.wk"
}
#pragma GCC target("avx512f,avx512vl,avx512dq,avx512bw,fma")
namespace avx512 {
#include "asian_option/paths.wk"
}
#pragma GCC pop_options
#endif

namespace weir::apps {

namespace {

/// The kernel with the widest vectors that the processor has.
const weir_portable_kernel& best_kernel() {
#if defined(WEIR_WIDE)
  if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512bw")) {
    return avx512::asian_paths;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return avx2::asian_paths;
#endif
  return asian_paths;
}

weir_cost cost_of(const weir_call* given) {
  const weir::Call call(given);
  const auto pairs = call.scalar<double>(1), steps = call.scalar<double>(0);
  return {PathKernels::kStepOperations * steps * pairs,
          static_cast<double>(call.operand(0).extent[0])};
}

weir::Kernel make_kernel(const weir::Runtime& runtime, const char* name, weir_kernel_shape shape) {
  return runtime.portable_kernel(
      {.kernel = &best_kernel(),
       .source = paths_wk,
       .source_name = "paths.wk",
       .name = name,
       .shape = shape,
       .cost = cost_of},
      [](const weir::Call& call) {
        return weir::Groups{weir::group_count(call.scalar<std::size_t>(1), WIDTH)};
      });
}

}  // namespace

PathKernels::PathKernels(const weir::Runtime& runtime)
    : whole_place(make_kernel(runtime, "asian.paths.place", WEIR_KERNEL_SHAPE_PARALLEL)),
      one_thread(make_kernel(runtime, "asian.paths.thread", WEIR_KERNEL_SHAPE_SERIAL)) {
  static_assert(sizeof(PathSums) == QUANTITIES * sizeof(double));
}

std::size_t PathKernels::groups(const Option& option) noexcept {
  return weir::group_count(samples(option), WIDTH);
}

std::array<weir::Scalar, 12> PathKernels::scalars(const Option& option, std::size_t number,
                                                  std::uint64_t seed) {
  const double dt = option.maturity / static_cast<double>(option.steps), root_dt = std::sqrt(dt);
  const double v = option.volatility;
  return {option.steps,
          samples(option),
          number,
          seed,
          v,
          dt,
          root_dt,
          (option.rate - v * v / 2) * dt,
          v * root_dt,
          option.floating ? 0.0 : option.strike / option.spot,
          option.floating ? 1.0 : 0.0,
          option.call ? 1.0 : -1.0};
}

}  // namespace weir::apps
