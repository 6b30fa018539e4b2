#include "hstreams/setup_kernels.hpp"

#include <cstddef>

#include "hstreams/openmp.hpp"

namespace weir::hs {

namespace {

constexpr std::size_t kPage = 4096;

void prefault_pages(weir::Call& call) {
  const auto bytes = call.span<std::byte>(0);
  for (std::size_t at = 0; at < bytes.size(); at += kPage) {
    *static_cast<volatile std::byte*>(&bytes[at]) = std::byte{0};
  }
}

}  // namespace

SetupKernels::SetupKernels(const weir::Runtime& runtime)
    : prefault_(runtime.kernel("hstreams.prefault", prefault_pages)),
      start_openmp_(runtime.kernel(
          "hstreams.start_openmp", [](weir::Call&) { start_openmp_team(); },
          WEIR_KERNEL_SHAPE_PARALLEL)) {}

}  // namespace weir::hs
