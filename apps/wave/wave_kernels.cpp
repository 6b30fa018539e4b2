#include "wave/wave_kernels.hpp"

#include <type_traits>

#include <weir/portable.h>

#include <stencil.wk.h>
#include "wave/stencil.wk"
#include "wave/stencil_native.hpp"

namespace weir::apps {

namespace {

template <class T>
constexpr bool single = std::is_same_v<T, float>;

/// Of the planes that a step makes.
template <class T>
double cells(const weir::Call& call) {
  const double n = call.scalar<double>(0);
  const std::size_t row = call.operand(0).extent[0] / sizeof(T);
  return n * n * static_cast<double>(row) / call.scalar<double>(2);
}

/// Each cell of `next` is read and written, those of `now` and `speed` are read.
template <class T>
weir_cost step_cost(const weir_call* call) {
  const double count = cells<T>(weir::Call(call));
  return {WaveKernels<T>::step_operations * count, 4 * sizeof(T) * count};
}

template <class T, int streams>
weir_cost vector_cost(const weir_call* call) {
  const double bytes = static_cast<double>(call->operands[0].extent[0]);
  return {2 * bytes / sizeof(T), streams * bytes};
}

template <class T>
weir::Kernel make_step(const weir::Runtime& runtime) {
  const weir_implementation native = {"host", native_wave_step<T>, nullptr};
  return runtime.portable_kernel(
      {.kernel = single<T> ? &wave_step_float : &wave_step_double,
       .source = stencil_wk,
       .source_name = "stencil.wk",
       .name = single<T> ? "wave.sstep" : "wave.dstep",
       .shape = WEIR_KERNEL_SHAPE_SERIAL,
       .cost = step_cost<T>,
       .implementations = {&native, 1}},
      [](const weir::Call& call) {
        const auto n = call.scalar<std::uint32_t>(0);
        const std::size_t elements = call.operand(0).extent[0] / sizeof(T);
        return weir::Groups{weir::group_count(n, WIDTH), n,
                            static_cast<std::uint32_t>(elements / call.scalar<std::size_t>(2))};
      });
}

template <class T>
weir::Kernel make_add_scaled(const weir::Runtime& runtime) {
  return runtime.portable_kernel(
      {.kernel = single<T> ? &add_scaled_float : &add_scaled_double,
       .source = stencil_wk,
       .source_name = "stencil.wk",
       .name = single<T> ? "wave.sadd_scaled" : "wave.dadd_scaled",
       .shape = WEIR_KERNEL_SHAPE_SERIAL,
       .cost = vector_cost<T, 3>},
      [](const weir::Call& call) {
        return weir::Groups{weir::group_count(call.scalar<std::size_t>(1), WIDTH)};
      });
}

template <class T>
weir::Kernel make_add_product(const weir::Runtime& runtime) {
  return runtime.portable_kernel(
      {.kernel = single<T> ? &add_product_float : &add_product_double,
       .source = stencil_wk,
       .source_name = "stencil.wk",
       .name = single<T> ? "wave.sadd_product" : "wave.dadd_product",
       .shape = WEIR_KERNEL_SHAPE_SERIAL,
       .cost = vector_cost<T, 4>},
      [](const weir::Call& call) {
        return weir::Groups{weir::group_count(call.scalar<std::size_t>(0), WIDTH)};
      });
}

}  // namespace

template <class T>
WaveKernels<T>::WaveKernels(const weir::Runtime& runtime)
    : set(runtime.kernel("mem.set")),
      copy(runtime.kernel("mem.copy")),
      step(make_step<T>(runtime)),
      add_scaled(make_add_scaled<T>(runtime)),
      add_product(make_add_product<T>(runtime)) {}

template struct WaveKernels<float>;
template struct WaveKernels<double>;

}  // namespace weir::apps
