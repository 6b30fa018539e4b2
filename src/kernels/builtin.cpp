#include "kernels/builtin.hpp"

#include <algorithm>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "kernels/blas_library.hpp"
#include "kernels/cuda_blas.hpp"
#include "kernels/memory_kernels.hpp"
#include "kernels/opencl_blas.hpp"
#include "kernels/tile_kernels.hpp"

namespace weir::kernels {

namespace {

constexpr std::string_view kTeamSuffix = ".team";

void register_as(weir_runtime& runtime, const BuiltinKernel& kernel, const std::string& name,
                 weir_kernel_shape shape) {
  std::vector<weir_implementation> implementations = {{"host", kernel.function, nullptr}};
  auto* const self = const_cast<BuiltinKernel*>(&kernel);  // no code changes it
  const weir_implementation others[] = {{"cuda", cuda_code(kernel.name), nullptr},
                                        {"opencl", opencl_code(kernel.name), self}};
  for (const weir_implementation& other : others) {
    if (other.function != nullptr) implementations.push_back(other);
  }
  weir_kernel_options options = WEIR_KERNEL_OPTIONS_INIT;
  options.name = name.c_str();
  options.shape = shape;
  options.implementations = implementations.data();
  options.implementation_count = implementations.size();
  options.cost = kernel.cost;
  const weir_status status = weir_kernel_register(&runtime, &options, nullptr);
  if (status != WEIR_STATUS_OK) throw rt::Error(status, weir_last_error());
}

void register_both(weir_runtime& runtime, const BuiltinKernel& kernel) {
  const std::string name = kernel.name;
  register_as(runtime, kernel, name, WEIR_KERNEL_SHAPE_SERIAL);
  register_as(runtime, kernel, name + std::string(kTeamSuffix), WEIR_KERNEL_SHAPE_PARALLEL);
}

bool needs_blas(std::string_view name) {
  if (name.ends_with(kTeamSuffix)) name.remove_suffix(kTeamSuffix.size());
  const auto kernels = tile_kernels();
  return std::any_of(kernels.begin(), kernels.end(),
                     [&](const BuiltinKernel& kernel) { return name == kernel.name; });
}

}  // namespace

void register_builtin(weir_runtime& runtime, const char* blas) {
  BlasLibrary::choose(blas);
  for (const BuiltinKernel& kernel : tile_kernels()) register_both(runtime, kernel);
  for (const BuiltinKernel& kernel : memory_kernels()) register_both(runtime, kernel);
}

void prepare(const char* name) {
  if (needs_blas(name)) BlasLibrary::instance().warn_once();
}

BlasInfo blas_info() {
  try {
    return BlasLibrary::instance().info();
  } catch (const std::exception& error) {
    BlasInfo info;
    info.problem = error.what();
    return info;
  }
}

}  // namespace weir::kernels
