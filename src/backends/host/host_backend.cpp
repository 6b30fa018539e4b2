#include "backends/host/host_backend.hpp"

#include "backend/settings.hpp"
#include "backends/host/host_device.hpp"

namespace weir::rt {

namespace {

bool wants_siblings(const Settings& settings) { return settings.choice("smt", {"off", "on"}) == 1; }

class HostBackend final : public Backend {
 public:
  const char* kind() const noexcept override { return "host"; }
  const char* settings_help() const noexcept override {
    return "cores=N    cores to use (default: those no simulated device asks for)\n"
           "smt=on|off make every hardware thread a core of its own (default off)\n"
           "PRESET, clock=virtual  a simulated host, with settings of sim: weir info --presets";
  }

  unsigned cores_wanted(const DomainSpec& spec, const Machine& machine) const override {
    const Settings settings = read(spec);
    return static_cast<unsigned>(settings.count("cores", 0, machine.cores.size()));
  }

  std::unique_ptr<Device> open(const DomainSpec& spec, OpenContext context) override {
    const Settings settings = read(spec);
    std::vector<unsigned> processors;
    for (const Core& core : context.cores) {
      if (wants_siblings(settings)) {
        processors.insert(processors.end(), core.siblings.begin(), core.siblings.end());
      } else {
        processors.push_back(core.processor);
      }
    }
    return std::make_unique<HostDevice>(std::move(context.name), *context.machine,
                                        std::move(processors));
  }

 private:
  static Settings read(const DomainSpec& spec) { return {spec, {"cores", "smt", "clock"}}; }
};

}  // namespace

std::unique_ptr<Backend> make_host_backend() { return std::make_unique<HostBackend>(); }

}  // namespace weir::rt
