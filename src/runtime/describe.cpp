#include "base/config.hpp"
#include "base/json.hpp"
#include "base/sys.hpp"
#include "fabric/link_library.hpp"
#include "fabric/mpi/mpi_library.hpp"
#include "fabric/ucx/ucx_library.hpp"
#include "kernels/builtin.hpp"
#include "runtime/runtime.hpp"
#include "share/chunk_policy.hpp"
#include "tasks/performance_model.hpp"
#include "weir/version.h"

namespace weir::rt {

namespace {

/// Returns the variable by which hwloc reads another machine than this.
const char* origin_of_machine() noexcept {
  for (const char* const variable : {"HWLOC_XMLFILE", "HWLOC_SYNTHETIC", "HWLOC_FSROOT"}) {
    if (sys::environment(variable) != nullptr) return variable;
  }
  return "HWLOC_XMLFILE";
}

void describe_machine(const Machine& machine, JsonWriter& json) {
  json.begin_object();
  json.member("processor", machine.processor);
  json.member("system", machine.system);
  json.member("cores", machine.cores.size());
  if (machine.own_cores < machine.cores.size()) json.member("own_cores", machine.own_cores);
  json.member("hardware_threads", machine.hardware_threads);
  json.member("packages", machine.packages);
  json.member("numa_nodes", machine.numa_nodes);
  json.member("memory_bytes", machine.memory_bytes);
  if (!machine.caches.empty()) {
    json.key("caches").begin_object();
    for (const auto& [name, bytes] : machine.caches) json.member(name, bytes);
    json.end_object();
  }
  if (machine.cpu_quota > 0) json.member("cpu_quota", machine.cpu_quota);
  if (machine.memory_limit > 0) json.member("memory_limit_bytes", machine.memory_limit);
  if (!machine.real) json.member("from", origin_of_machine());
  json.end_object();
}

void describe_domain(const Domain& domain, JsonWriter& json) {
  const DeviceInfo& info = domain.info();
  json.begin_object();
  json.member("name", info.name);
  json.member("backend", info.backend);
  json.member("description", info.description);
  json.member("cores", info.cores);
  if (info.threads_per_core > 1) json.member("threads_per_core", info.threads_per_core);
  json.member("memory_bytes", info.memory_bytes);
  json.member("memory_used", domain.residency().used());
  json.member("aliases_host", info.aliases_host);
  json.member("virtual_time", info.virtual_time);
  if (info.skips_kernels) json.member("skips_kernels", true);
  if (info.link_duplex != "none") {
    json.key("link").begin_object();
    json.member("gbps", info.link_gbps);
    json.member("latency_us", info.link_latency_us);
    json.member("duplex", info.link_duplex);
    json.end_object();
  }
  json.end_object();
}

void describe_blas(JsonWriter& json) {
  const kernels::BlasInfo info = kernels::blas_info();
  json.begin_object();
  json.member("available", info.available);
  json.member("name", info.name);
  json.member("library", info.library);
  json.member("kernels", info.kernels);
  json.member("version", info.version);
  json.member("problem", info.problem);
  json.end_object();
}

/// Describes the kinds of MPI that weir may have been built for, and the weir library of each.
void describe_mpi(JsonWriter& json) {
  json.begin_array();
  for (const MpiKind* kind = mpi_kinds(); kind->name != nullptr; ++kind) {
    json.begin_object();
    json.member("name", kind->name);
    json.member("launcher", kind->launcher);
    json.member("library", mpi_library_path(*kind));
    json.member("packages", kind->packages);
    json.member("build", link_build());
    json.end_object();
  }
  json.end_array();
}

void describe_link(JsonWriter& json, const std::string& library, const char* packages) {
  json.begin_object();
  json.member("library", library);
  json.member("packages", packages);
  json.member("build", link_build());
  json.end_object();
}

void describe_environment(JsonWriter& json) {
  json.begin_array();
  for (const config::Variable& variable : config::variables()) {
    const char* const value = sys::environment(variable.name);
    json.begin_object();
    json.member("name", variable.name);
    json.member("meaning", variable.meaning);
    json.key("value");
    value != nullptr ? json.value(value) : json.null();
    json.end_object();
  }
  json.end_array();
}

void describe_models(const std::string& machine, JsonWriter& json) {
  PerformanceModel models;
  models.load_cached(machine);
  json.begin_array();
  models.each([&](const std::string& kernel, const std::string& kind, std::uint64_t bytes,
                  std::uint64_t count, double mean_ns) {
    json.begin_object();
    json.member("kernel", kernel);
    json.member("place", kind);
    json.member("bytes", bytes);
    json.member("calls", count);
    json.member("mean_ns", mean_ns);
    json.end_object();
  });
  json.end_array();
}

void describe_policies(const PolicyTable& policies, JsonWriter& json) {
  json.begin_array();
  for (const PolicyEntry& policy : policies.entries()) {
    json.begin_object();
    json.member("name", policy.name);
    json.member("summary", policy.summary);
    json.end_object();
  }
  json.end_array();
}

void describe_chunks(JsonWriter& json) {
  json.begin_array();
  for (const ChunkPolicyEntry& policy : chunk_policies()) {
    json.begin_object();
    json.member("name", policy.name);
    json.member("summary", policy.summary);
    json.end_object();
  }
  json.end_array();
}

void describe_list(const std::vector<std::string>& list, JsonWriter& json) {
  json.begin_array();
  for (const std::string& text : list) json.value(text);
  json.end_array();
}

void describe_presets(std::span<const DomainPreset> presets, JsonWriter& json) {
  json.begin_array();
  for (const DomainPreset& preset : presets) {
    json.begin_object();
    json.member("domain", preset.domain);
    json.member("settings", preset.settings);
    json.member("sources", preset.sources);
    json.end_object();
  }
  json.end_array();
}

}  // namespace

std::string Runtime::describe() const {
  JsonWriter json;
  json.begin_object();
  json.member("schema", "weir.info/1");
  json.member("version", WEIR_VERSION_STRING);
  describe_machine(machine(), json.key("machine"));
  json.key("domains").begin_array();
  for (const auto& domain : domains_) describe_domain(*domain, json);
  json.end_array();
  json.key("backends").begin_array();
  for (const auto& backend : backends_) {
    json.begin_object();
    json.member("kind", backend->kind());
    json.member("settings", backend->settings_help());
    describe_presets(backend->presets(), json.key("presets"));
    json.end_object();
  }
  json.end_array();
  describe_mpi(json.key("mpi"));
  const MpiKind& standard = standard_mpi_kind();
  describe_link(json.key("standard_mpi"), mpi_library_path(standard), standard.packages);
  describe_link(json.key("ucx"), ucx_library_path(), kUcxPackages);
  describe_blas(json.key("blas"));
  describe_list(kernels().names(), json.key("kernels"));
  with_policies(
      [&](const PolicyTable& policies) { describe_policies(policies, json.key("policies")); });
  describe_chunks(json.key("chunks"));
  describe_models(machine_name(), json.key("models"));
  describe_environment(json.key("environment"));
  describe_list(config::unknown_variables(), json.key("unknown_environment"));
  return json.end_object().text();
}

}  // namespace weir::rt
