#include "backends/cuda/cuda_backend.hpp"

#include <algorithm>

#include "backend/settings.hpp"
#include "backends/cuda/cuda_device.hpp"
#include "backends/cuda/cuda_devices.hpp"

namespace weir::rt {

namespace {

constexpr unsigned kMaxStreams = 8;

void check_abilities(const DomainSpec& spec, const CudaDeviceInfo& device) {
  if (device.has_pools && device.writes_values) return;
  fail(WEIR_STATUS_UNSUPPORTED, "domain '{}': {} cannot {} in the order of streams", spec.text,
       device.description, device.has_pools ? "write values" : "allocate");
}

/// Few on a small machine, whose cores have other work.
unsigned packers_on(const Machine& machine) { return std::min(3u, machine.hardware_threads / 4); }

class CudaBackend final : public Backend {
 public:
  const char* kind() const noexcept override { return "cuda"; }
  const char* settings_help() const noexcept override {
    return "device=N      which device, in the order of the driver; cuda:N is short for it "
           "(default 0)\n"
           "memory=SIZE   capacity for instances (default: what is free, without a reserve)\n"
           "streams=N     streams for kernels in each place, 1 to 8 (default 4)";
  }

  /// No cores of the host: its cores are the device's.
  unsigned cores_wanted(const DomainSpec& spec, const Machine&) const override {
    read(spec);
    return 0;
  }

  std::unique_ptr<Device> open(const DomainSpec& spec, OpenContext context) override {
    const Settings settings = read(spec);
    CudaOptions options{
        .name = std::move(context.name),
        .memory = settings.size("memory", 0),
        .compute_streams = static_cast<unsigned>(settings.count("streams", 4, kMaxStreams)),
        .packers = packers_on(*context.machine)};
    const std::vector<CudaDeviceInfo> devices = list_cuda_devices();
    const CudaDeviceInfo& device = settings.device("CUDA", devices);
    check_abilities(spec, device);
    return std::make_unique<CudaDevice>(std::move(options), device);
  }

 private:
  static Settings read(const DomainSpec& spec) { return {spec, {"device", "memory", "streams"}}; }
};

}  // namespace

std::unique_ptr<Backend> make_cuda_backend() { return std::make_unique<CudaBackend>(); }

}  // namespace weir::rt
