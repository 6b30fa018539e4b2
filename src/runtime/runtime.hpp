// A runtime: one instance of weir.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <weir/runtime.h>

#include "backend/backend.hpp"
#include "base/handle.hpp"
#include "fabric/port.hpp"
#include "runtime/fabric.hpp"
#include "runtime/staging_pool.hpp"
#include "runtime/watchdog.hpp"
#include "runtime/work_registry.hpp"
#include "tasks/wisdom.hpp"

namespace weir::rt {

/// Owns what a program has created with one weir_runtime: domains, and in the WorkRegistry all
/// other objects. Any thread.
class Runtime : public WorkRegistry {
 public:
  /// Returns the runtime of a registry; each registry is the base of one.
  static Runtime& of(Registry& registry) noexcept { return static_cast<Runtime&>(registry); }

  explicit Runtime(const weir_runtime_options& options);
  ~Runtime();

  const std::string& name() const noexcept { return name_; }

  /// Returns the stored division for a problem on this machine and these domains.
  Wisdom wisdom(std::string_view problem, std::uint64_t size) const {
    return {machine_name(), domain_list_, problem, size};
  }

  std::string describe() const;
  /// Returns the port to other ranks, nullptr without a fabric.
  Port* port() const noexcept { return fabric_.port(); }
  StagingPool& staging() noexcept { return staging_; }

 private:
  void write_requested_trace() noexcept;

  const std::string name_ = "weir";
  const std::string domain_list_;  ///< as requested by the program or WEIR_DOMAINS
  const std::int64_t shutdown_timeout_ns_;
  std::string trace_path_;
  const FabricUse fabric_;  // outlives the fields below
  std::vector<std::unique_ptr<Backend>> backends_;
  std::vector<Owned<weir_domain>> domains_;
  StagingPool staging_{*this};
  std::unique_ptr<Watchdog> watchdog_;
};

}  // namespace weir::rt

/// The public handle.
struct weir_runtime final : weir::rt::Handle<weir_runtime>, weir::rt::Runtime {
  static constexpr const char* kNoun = "runtime";
  using Runtime::Runtime;
};
