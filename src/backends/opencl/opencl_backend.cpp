#include "backends/opencl/opencl_backend.hpp"

#include "backend/settings.hpp"
#include "backends/opencl/opencl_device.hpp"
#include "backends/opencl/opencl_platforms.hpp"

namespace weir::rt {

namespace {

class OpenClBackend final : public Backend {
 public:
  const char* kind() const noexcept override { return "opencl"; }
  const char* settings_help() const noexcept override {
    return "device=N      which device, in the order of the loader; opencl:N is short for it "
           "(default 0)\n"
           "alias=on|off  off: instances of its own, though it shares the host's memory (default "
           "on)\n"
           "memory=SIZE   capacity for instances (default: what the driver says)\n"
           "native=on|off  off: uses a processor as if it were a GPU (default on)\n"
           "svm=on|off     off: a GPU whose memory has no addresses, though it could (default on)";
  }

  /// No cores of the host: the driver has the compute units.
  unsigned cores_wanted(const DomainSpec& spec, const Machine&) const override {
    read(spec);
    return 0;
  }

  std::unique_ptr<Device> open(const DomainSpec& spec, OpenContext context) override {
    const Settings settings = read(spec);
    const bool aliases = settings.choice("alias", {"on", "off"}) == 0;
    const bool native = settings.choice("native", {"on", "off"}) == 0;
    const bool svm = settings.choice("svm", {"on", "off"}) == 0;
    const std::vector<OpenClDeviceInfo> devices = list_opencl_devices();
    OpenClDeviceInfo device = settings.device("OpenCL", devices);
    device.native = device.native && native;
    device.shares_addresses = device.shares_addresses && (device.native || svm);
    if (!device.native && !device.compiles) {
      fail(WEIR_STATUS_UNSUPPORTED,
           "domain '{}': {} has no compiler: weir needs one on what runs no native kernels",
           spec.text, device.description);
    }
    return std::make_unique<OpenClDevice>(std::move(context.name),
                                          settings.size("memory", device.memory), aliases, device);
  }

 private:
  static Settings read(const DomainSpec& spec) {
    return {spec, {"device", "alias", "memory", "native", "svm"}};
  }
};

}  // namespace

std::unique_ptr<Backend> make_opencl_backend() { return std::make_unique<OpenClBackend>(); }

}  // namespace weir::rt
