#include "backends/null/null_backend.hpp"

#include "backend/settings.hpp"
#include "backends/null/null_device.hpp"

namespace weir::rt {

namespace {

class NullBackend final : public Backend {
 public:
  const char* kind() const noexcept override { return "null"; }
  const char* settings_help() const noexcept override { return ""; }

  unsigned cores_wanted(const DomainSpec&, const Machine&) const override { return 1; }

  std::unique_ptr<Device> open(const DomainSpec& spec, OpenContext context) override {
    const Settings settings(spec, {});
    return std::make_unique<NullDevice>(std::move(context.name));
  }
};

}  // namespace

std::unique_ptr<Backend> make_null_backend() { return std::make_unique<NullBackend>(); }

}  // namespace weir::rt
