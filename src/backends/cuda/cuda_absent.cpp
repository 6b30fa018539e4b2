// The backend in builds without CUDA's headers.
#include "backends/cuda/cuda_backend.hpp"

namespace weir::rt {

namespace {

class AbsentCudaBackend final : public Backend {
 public:
  const char* kind() const noexcept override { return "cuda"; }
  const char* settings_help() const noexcept override {
    return "none: this build was made without CUDA's headers";
  }
  unsigned cores_wanted(const DomainSpec&, const Machine&) const override { return 0; }

  std::unique_ptr<Device> open(const DomainSpec& spec, OpenContext) override {
    fail(WEIR_STATUS_UNAVAILABLE,
         "domain '{}': this build of weir was made without CUDA's headers; run 'scripts/setup.sh "
         "test' or install the package nvidia-cuda-runtime from PyPI, and build weir again",
         spec.text);
  }
};

}  // namespace

std::unique_ptr<Backend> make_cuda_backend() { return std::make_unique<AbsentCudaBackend>(); }

}  // namespace weir::rt
