#include "laplacian/jacobi_kernels.hpp"

#include <algorithm>
#include <type_traits>

#include <weir/portable.h>

#include <jacobi.wk.h>
#include "laplacian/jacobi.wk"
#include "laplacian/jacobi_native.hpp"

namespace weir::apps {

namespace {

/// Each cell is read once and written once.
template <class T, int dimensions>
weir_cost jacobi_cost(const weir_call* call) {
  const weir_view& next = call->operands[0];
  const std::size_t row = next.extent[0] / sizeof(T);
  const double cells = static_cast<double>(row) *
                       static_cast<double>(std::max<std::size_t>(next.extent[1], 1)) *
                       static_cast<double>(std::max<std::size_t>(next.extent[2], 1));
  return {jacobi_operations(dimensions) * cells, 2 * sizeof(T) * cells};
}

template <class T, int dimensions>
weir_cost steps_cost(const weir_call* call) {
  weir_cost cost = jacobi_cost<T, dimensions>(call);
  cost.flops *= static_cast<double>(weir::Call(call).scalar<std::size_t>(5));
  return cost;
}

template <class T, int dimensions>
weir::Kernel make(const weir::Runtime& runtime, const weir_portable_kernel& kernel) {
  constexpr bool single = std::is_same_v<T, float>;
  const weir_implementation native = {"host", native_jacobi<T, dimensions>, nullptr};
  return runtime.portable_kernel(
      {.kernel = &kernel,
       .source = jacobi_wk,
       .source_name = "jacobi.wk",
       .name = single ? "laplacian.sjacobi" : "laplacian.djacobi",
       .shape = WEIR_KERNEL_SHAPE_SERIAL,
       .cost = jacobi_cost<T, dimensions>,
       .implementations = {&native, 1}},
      [](const weir::Call& call) {
        const weir_view& next = call.operand(0);
        const auto groups = [&](int d) {
          return static_cast<std::uint32_t>(std::max<std::size_t>(next.extent[d], 1));
        };
        return weir::Groups{weir::group_count(call.scalar<std::size_t>(0), WIDTH), groups(1),
                            groups(2)};
      });
}

}  // namespace

template <>
weir::Kernel make_jacobi<float>(const weir::Runtime& runtime, unsigned dimensions) {
  return dimensions == 2 ? make<float, 2>(runtime, jacobi_2d_float)
                         : make<float, 3>(runtime, jacobi_3d_float);
}

template <>
weir::Kernel make_jacobi<double>(const weir::Runtime& runtime, unsigned dimensions) {
  return dimensions == 2 ? make<double, 2>(runtime, jacobi_2d_double)
                         : make<double, 3>(runtime, jacobi_3d_double);
}

template <class T>
weir::Kernel make_jacobi_steps(const weir::Runtime& runtime, unsigned dimensions) {
  const bool flat = dimensions == 2;
  const weir_implementation native = {
      "host", flat ? native_jacobi_steps<T, 2> : native_jacobi_steps<T, 3>, nullptr};
  weir_kernel_options options = WEIR_KERNEL_OPTIONS_INIT;
  options.name = std::is_same_v<T, float> ? "laplacian.sjacobi.steps" : "laplacian.djacobi.steps";
  options.cost = flat ? steps_cost<T, 2> : steps_cost<T, 3>;
  options.implementations = &native;
  options.implementation_count = 1;
  weir_kernel* made = nullptr;
  weir::check(weir_kernel_register(runtime.handle(), &options, &made));
  return weir::Kernel(made);
}

template weir::Kernel make_jacobi_steps<float>(const weir::Runtime& runtime, unsigned dimensions);
template weir::Kernel make_jacobi_steps<double>(const weir::Runtime& runtime, unsigned dimensions);

}  // namespace weir::apps
