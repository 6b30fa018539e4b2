#include "available.hpp"

#include <sys/auxv.h>

#include <string>

#include "description.hpp"

namespace weir::cli {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kDrivers[] = {"opencl", "cuda"};
constexpr int kMostDevices = 64;

constexpr char kText[] =
    "WEIR_KERNEL(weir_probe, 1, 1, 1, WEIR_GLOBAL weir_i32* x) { WEIR_ITEMS_LAST { x[0] = 1; } }\n";
constexpr weir_portable_kernel kProbe{"weir_probe", {1, 1, 1}, "p", nullptr, nullptr};

/// Whether a kernel that exists only as text runs on a domain.
bool compiles(const Runtime& runtime, const Domain& domain) {
  try {
    const Kernel probe =
        runtime.portable_kernel({.kernel = &kProbe, .source = kText, .source_name = "probe.wk"},
                                [](const Call&) { return Groups{1}; });
    const Place place = domain.place();
    const Stream stream = place.stream();
    const Buffer x = runtime.buffer(sizeof(std::int32_t));
    stream.compute(probe, {write(x.all())});
    stream.synchronize();
    return true;
  } catch (const Error&) {  // it runs host code
    return false;
  }
}

Json device(const std::string& name) {
  const Runtime runtime(name);
  Json description = describe(runtime);
  add_compilers(description, runtime);
  const Json& domain = description.at("domains").at(0);
  Json found = {{"domain", name}};
  for (const char* fact : {"description", "cores", "memory_bytes", "portable_kernels"}) {
    if (domain.contains(fact)) found[fact] = domain.at(fact);
  }
  return found;
}

void add_devices(const std::string& kind, Json& devices) {
  for (int index = 0; index < kMostDevices; ++index) {
    const std::string name = kind + ":" + std::to_string(index);
    try {
      devices.push_back(device(name));
    } catch (const Error& error) {
      const weir_status status = error.status();
      if (status == WEIR_STATUS_NOT_FOUND || status == WEIR_STATUS_UNAVAILABLE) return;
      devices.push_back({{"domain", name}, {"problem", error.what()}});
    }
  }
}

}  // namespace

Json available_devices() {
  Json devices = Json::array();
  if (getauxval(AT_SECURE) != 0) return devices;
  for (const char* kind : kDrivers) add_devices(kind, devices);
  return devices;
}

void add_compilers(Json& description, const Runtime& runtime) {
  Json& domains = description.at("domains");
  for (std::size_t i = 0; i < domains.size(); ++i) {
    if (domains[i].at("cores") == 0) continue;
    domains[i]["portable_kernels"] = compiles(runtime, runtime.domain(i))
                                         ? "compiled by the device"
                                         : "compiled with the program";
  }
}

}  // namespace weir::cli
