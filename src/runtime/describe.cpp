#include <nlohmann/json.hpp>

#include "base/config.hpp"
#include "base/sys.hpp"
#include "kernels/builtin.hpp"
#include "runtime/runtime.hpp"
#include "weir/version.h"

namespace weir::rt {

namespace {

nlohmann::ordered_json describe_machine(const Machine& machine) {
  nlohmann::ordered_json json;
  json["processor"] = machine.processor;
  json["system"] = machine.system;
  json["cores"] = machine.cores.size();
  json["hardware_threads"] = machine.hardware_threads;
  json["packages"] = machine.packages;
  json["numa_nodes"] = machine.numa_nodes;
  json["memory_bytes"] = machine.memory_bytes;
  for (const auto& [name, bytes] : machine.caches) json["caches"][name] = bytes;
  if (machine.cpu_quota > 0) json["cpu_quota"] = machine.cpu_quota;
  if (!machine.real) json["from"] = "HWLOC_XMLFILE";
  return json;
}

nlohmann::ordered_json describe_domain(const Domain& domain) {
  const DeviceInfo& info = domain.info();
  nlohmann::ordered_json json;
  json["name"] = info.name;
  json["backend"] = info.backend;
  json["description"] = info.description;
  json["cores"] = info.cores;
  json["memory_bytes"] = info.memory_bytes;
  json["memory_used"] = domain.residency().used();
  json["aliases_host"] = info.aliases_host;
  json["virtual_time"] = info.virtual_time;
  if (info.link_duplex != "none") {
    json["link"] = {{"gbps", info.link_gbps},
                    {"latency_us", info.link_latency_us},
                    {"duplex", info.link_duplex}};
  }
  return json;
}

nlohmann::ordered_json describe_blas() {
  const kernels::BlasInfo info = kernels::blas_info();
  return {{"available", info.available}, {"name", info.name},       {"library", info.library},
          {"kernels", info.kernels},     {"version", info.version}, {"problem", info.problem}};
}

}  // namespace

std::string Runtime::describe() const {
  nlohmann::ordered_json json;
  json["schema"] = "weir.info/1";
  json["version"] = WEIR_VERSION_STRING;
  json["machine"] = describe_machine(machine_);
  json["domains"] = nlohmann::ordered_json::array();
  for (const auto& domain : domains_) json["domains"].push_back(describe_domain(*domain));
  json["backends"] = nlohmann::ordered_json::array();
  for (const auto& backend : backends_) {
    json["backends"].push_back({{"kind", backend->kind()}, {"settings", backend->settings_help()}});
  }
  json["blas"] = describe_blas();
  json["kernels"] = kernels_.names();
  for (const config::Variable& variable : config::variables()) {
    const char* value = sys::environment(variable.name);
    json["environment"].push_back({{"name", variable.name},
                                   {"meaning", variable.meaning},
                                   {"value", value ? nlohmann::ordered_json(value) : nullptr}});
  }
  json["unknown_environment"] = config::unknown_variables();
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace weir::rt
