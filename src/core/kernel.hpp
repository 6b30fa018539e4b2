// Kernels and their table.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <weir/kernel.h>

#include "backend/backend.hpp"
#include "base/handle.hpp"
#include "base/threads.hpp"
#include "core/portable.hpp"

namespace weir::rt {

class Kernel;
class KernelTable;

/// An estimate of how long calls of a kernel take. Any thread.
class Pace {
 public:
  /// Whether a call usually ends before another thread could be notified of other work.
  bool brief() const noexcept { return typical_ns_.load(std::memory_order_relaxed) < kBriefNs; }

  /// Adjusts the estimate by a call: at once for a long one, gradually for brief ones.
  void note(std::int64_t duration_ns) noexcept {
    const auto sample =
        static_cast<std::uint32_t>(std::clamp<std::int64_t>(duration_ns, 0, kLongNs));
    const std::uint32_t typical = typical_ns_.load(std::memory_order_relaxed);
    typical_ns_.store(std::max(sample, typical - (typical - std::min(sample, typical)) / 4),
                      std::memory_order_relaxed);
  }

 private:
  static constexpr std::uint32_t kBriefNs = 500;
  static constexpr std::uint32_t kLongNs = 10'000;

  sys::Atomic<std::uint32_t> typical_ns_{kLongNs};
};

/// The code of a kernel for one kind of domain, as actions refer to it.
struct KernelCode {
  const Kernel* kernel;
  std::string backend;
  weir_host_function function;
  void* payload;
  const Portable* portable = nullptr;  ///< its check() must accept the call
  /// Source for the device's compiler, instead of `function`.
  const KernelSource* source = nullptr;
};

/// A named function with an implementation for each kind of domain. Immutable once registered,
/// except for its pace.
class Kernel {
 public:
  Kernel(const weir_kernel_options& options, std::size_t number);
  /// Uses the portable kernel for domains for which the options have no implementation.
  Kernel(const weir_kernel_options& options, std::unique_ptr<const Portable> portable,
         std::size_t number);
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;
  ~Kernel();

  /// Returns the number in the order of registration, from 1.
  std::size_t number() const noexcept { return number_; }
  const std::string& name() const noexcept { return name_; }
  bool parallel() const noexcept { return shape_ == WEIR_KERNEL_SHAPE_PARALLEL; }
  weir_cost_function cost() const noexcept { return cost_; }
  Pace& pace() const noexcept { return pace_; }

  /// Returns the code for the kind of device; else the source, if the device compiles it; else the
  /// host code, if the device runs that; else nullptr.
  const KernelCode* code_for(const DeviceInfo& device) const noexcept;
  /// Returns the kinds that it has code for: "host, sim, source".
  std::string backends() const;

 private:
  friend class KernelTable;

  const KernelTable* table_ = nullptr;  ///< table in which it is registered
  std::unique_ptr<const Portable> portable_;
  std::size_t number_;
  std::string name_;
  weir_kernel_shape shape_;
  std::vector<KernelCode> codes_;
  weir_cost_function cost_;
  void (*release_)(void*);
  mutable Pace pace_;
};

}  // namespace weir::rt

/// The public handle.
struct weir_kernel final : weir::rt::Handle<weir_kernel>, weir::rt::Kernel {
  static constexpr const char* kNoun = "kernel";
  using Kernel::Kernel;
};

namespace weir::rt {

/// All kernels of a runtime by name. Any thread.
class KernelTable {
 public:
  /// Adds a kernel with code for some of `backends`. Throws Error{invalid_argument} for an
  /// invalid description and for a name that is taken.
  weir_kernel& add(const weir_kernel_options& options, const std::vector<std::string>& backends);
  weir_kernel& add(const weir_portable_options& options, const std::vector<std::string>& backends);
  /// Whether the kernel is in this table.
  bool has(const weir_kernel& kernel) const noexcept { return kernel.table_ == this; }
  /// Throws Error{not_found} with the nearest name.
  weir_kernel& find(std::string_view name) const;
  std::vector<std::string> names() const;

 private:
  weir_kernel& add(const weir_kernel_options& options, const std::vector<std::string>& backends,
                   std::unique_ptr<const Portable> portable);

  mutable sys::Mutex mutex_;
  std::map<std::string, Owned<weir_kernel>, std::less<>> kernels_ WEIR_GUARDED_BY(mutex_);
};

}  // namespace weir::rt
