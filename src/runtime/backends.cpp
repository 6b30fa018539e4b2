#include "runtime/backends.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include <fmt/ranges.h>

#include "backends/cuda/cuda_backend.hpp"
#include "backends/host/host_backend.hpp"
#include "backends/null/null_backend.hpp"
#include "backends/opencl/opencl_backend.hpp"
#include "backends/opencl/opencl_memory.hpp"
#include "backends/rank/rank_backend.hpp"
#include "backends/sim/sim_backend.hpp"
#include "base/text.hpp"
#include "core/buffer.hpp"

namespace weir::rt {

namespace {

/// Returns the kind of the backend that opens a domain: a host in virtual time is simulated.
std::string_view opener_of(const DomainSpec& spec) noexcept {
  const std::string* const clock = spec.find("clock");
  const bool simulated = spec.find("preset") != nullptr || (clock != nullptr && *clock != "real");
  return spec.kind == "host" && simulated ? "sim" : std::string_view(spec.kind);
}

Backend& find_backend(const DomainSpec& spec, std::vector<std::unique_ptr<Backend>>& backends) {
  std::vector<std::string> kinds;
  for (const auto& backend : backends) {
    if (opener_of(spec) == backend->kind()) return *backend;
    kinds.emplace_back(backend->kind());
  }
  fail(WEIR_STATUS_NOT_FOUND, "no backend '{}'{}; known: {}", spec.kind,
       did_you_mean(spec.kind, kinds), fmt::join(kinds, ", "));
}

/// Parses "KEY=VALUE"; a number alone, or "*", is the value of "device", a name at the beginning
/// that of "preset". "DEVICE/SPECIFICATION" is a domain of that device; what follows belongs to the
/// specification.
void add_setting(DomainSpec& spec, std::string_view text) {
  if (!spec.settings.empty() && spec.settings.back().first == "domain") {
    spec.settings.back().second.append(",").append(text);
    return;
  }
  const std::size_t slash = text.find('/');
  const std::string_view device = text.substr(0, slash);
  const bool number = device.find_first_not_of("0123456789") == std::string_view::npos;
  if (!device.empty() && (number || device == "*")) {
    spec.settings.emplace_back("device", device);
    if (slash != std::string_view::npos) {
      spec.settings.emplace_back("domain", text.substr(slash + 1));
    }
    return;
  }
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos && spec.settings.empty() && !text.empty()) {
    spec.settings.emplace_back("preset", text);
    return;
  }
  if (equals == std::string_view::npos || equals == 0 || equals + 1 == text.size()) {
    fail_argument("domain '{}': '{}' is not a setting KEY=VALUE", spec.text, text);
  }
  spec.settings.emplace_back(text.substr(0, equals), text.substr(equals + 1));
}

void check_count(const std::vector<DomainSpec>& specs) {
  if (specs.size() >= kMaxMemories) {
    fail_argument("{} domains are too many: at most {}", specs.size(), kMaxMemories - 1);
  }
}

/// Replaces the setting "preset" by the settings of that name; those that are given win.
DomainSpec apply_preset(DomainSpec spec, const Backend& backend) {
  const std::string* const given = spec.find("preset");
  if (given == nullptr) return spec;
  const std::string name = *given, wanted = spec.kind + ":" + name;
  std::vector<std::string> known;
  const DomainPreset* found = nullptr;
  for (const DomainPreset& preset : backend.presets()) {
    if (wanted == preset.domain) found = &preset;
    if (std::string_view(preset.domain).starts_with(spec.kind + ":"))
      known.emplace_back(preset.domain);
  }
  if (found == nullptr) {
    const std::string presets =
        known.empty() ? "" : fmt::format(" nor a preset; there are {}", fmt::join(known, ", "));
    fail_argument("domain '{}': '{}' is not a setting KEY=VALUE{}", spec.text, name, presets);
  }
  std::erase_if(spec.settings, [](const auto& setting) { return setting.first == "preset"; });
  DomainSpec defaults{.kind = spec.kind, .settings = {}, .text = spec.text};
  for (const std::string_view part : split(found->settings, ',')) add_setting(defaults, part);
  add_setting(defaults, "clock=virtual");
  for (auto& setting : defaults.settings) {
    if (spec.find(setting.first) == nullptr) spec.settings.push_back(std::move(setting));
  }
  return spec;
}

/// Replaces each specification by those that it expands to.
std::vector<DomainSpec> expand(const std::vector<DomainSpec>& given,
                               std::vector<std::unique_ptr<Backend>>& backends) {
  std::vector<DomainSpec> specs;
  for (const DomainSpec& spec : given) {
    const Backend& backend = find_backend(spec, backends);
    for (DomainSpec& one : backend.expand(apply_preset(spec, backend))) {
      specs.push_back(std::move(one));
    }
  }
  check_count(specs);
  return specs;
}

/// Deals the cores of the machine to domains. Starts over when they are used up.
class CoreDealer {
 public:
  explicit CoreDealer(const Machine& machine) : cores_(machine.cores), own_(machine.own_cores) {}

  std::vector<Core> deal(unsigned count) {
    std::vector<Core> dealt;
    for (unsigned i = 0; i < count; ++i) dealt.push_back(cores_[next_++ % cores_.size()]);
    return dealt;
  }
  /// Returns the cores of the process that no domain has requested, else all of them.
  std::vector<Core> rest() const {
    const auto at = [this](std::size_t i) {
      return cores_.begin() + static_cast<std::ptrdiff_t>(i);
    };
    return {at(next_ < own_ ? next_ : 0), at(own_)};
  }

 private:
  const std::vector<Core>& cores_;
  const std::size_t own_;
  std::size_t next_ = 0;
};

}  // namespace

std::vector<std::unique_ptr<Backend>> make_backends(Port* port) {
  std::vector<std::unique_ptr<Backend>> backends;
  backends.push_back(make_host_backend());
  backends.push_back(make_sim_backend());
  backends.push_back(make_opencl_backend());
  backends.push_back(make_cuda_backend());
  backends.push_back(make_rank_backend(port));
  backends.push_back(make_null_backend());
  return backends;
}

DriverBuffer find_driver_buffer(const void* operand) noexcept {
  const OpenClLocation found = find_opencl_buffer(operand);
  return {found.buffer, found.offset};
}

std::vector<DomainSpec> parse_domains(std::string_view text) {
  std::vector<DomainSpec> specs;
  for (const std::string_view part : split(text, ',')) {
    const std::size_t colon = part.find(':');
    const bool setting = part.find('=') < colon;
    if (setting && !specs.empty()) {
      specs.back().text.append(",").append(part);
      add_setting(specs.back(), part);
      continue;
    }
    DomainSpec spec{
        .kind = std::string(part.substr(0, colon)), .settings = {}, .text = std::string(part)};
    if (spec.kind.empty() || setting) fail_argument("'{}' is not a domain: KIND[:KEY=VALUE]", part);
    if (colon != std::string_view::npos && colon + 1 < part.size()) {
      add_setting(spec, part.substr(colon + 1));
    }
    specs.push_back(std::move(spec));
  }
  if (specs.empty()) fail_argument("no domain is given: try 'host' or 'sim:cores=1'");
  check_count(specs);
  return specs;
}

std::vector<std::unique_ptr<Device>> open_devices(std::string_view specification,
                                                  const Machine& machine,
                                                  std::vector<std::unique_ptr<Backend>>& backends) {
  const std::vector<DomainSpec> specs = expand(parse_domains(specification), backends);
  std::map<std::string, std::size_t> of_kind, opened;
  for (const DomainSpec& spec : specs) ++of_kind[spec.kind];

  CoreDealer dealer(machine);
  std::vector<std::vector<Core>> cores(specs.size());
  for (std::size_t i = 0; i < specs.size(); ++i) {
    cores[i] = dealer.deal(find_backend(specs[i], backends).cores_wanted(specs[i], machine));
  }
  std::vector<std::unique_ptr<Device>> devices;
  std::set<std::string> names;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const std::string& kind = specs[i].kind;
    OpenContext context{
        .machine = &machine, .cores = cores[i].empty() ? dealer.rest() : cores[i], .name = kind};
    const std::size_t number = opened[kind]++;
    const std::string* const device = specs[i].find("device");
    if (device != nullptr) {
      context.name += ":" + *device;
    } else if (kind != "host" || of_kind[kind] > 1) {
      context.name += fmt::format(":{}", number);
    }
    if (!names.insert(context.name).second) {  // a second domain on the same device
      context.name += fmt::format("#{}", number);
      names.insert(context.name);
    }
    devices.push_back(find_backend(specs[i], backends).open(specs[i], std::move(context)));
  }
  const auto is_virtual = [](const auto& device) { return device->info().virtual_time; };
  if (std::any_of(devices.begin(), devices.end(), is_virtual) &&
      !std::all_of(devices.begin(), devices.end(), is_virtual)) {
    fail_argument("'{}' mixes real and virtual time: use clock=virtual for every domain",
                  specification);
  }
  return devices;
}

}  // namespace weir::rt
