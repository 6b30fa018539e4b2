// Domains of a runtime.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <weir/domain.h>

#include "backend/backend.hpp"
#include "base/handle.hpp"
#include "base/threads.hpp"
#include "core/residency.hpp"

namespace weir::rt {

struct Action;
class Context;

/// One device, the residency of its memory, and the places on its cores.
class Domain {
 public:
  /// `retry` is called for actions that waited for memory.
  Domain(Context& context, std::size_t index, std::unique_ptr<Device> device,
         void (*retry)(Action&));
  Domain(const Domain&) = delete;
  Domain& operator=(const Domain&) = delete;

  Context& context() const noexcept { return context_; }
  std::size_t index() const noexcept { return index_; }
  Device& device() const noexcept { return *device_; }
  const DeviceInfo& info() const noexcept { return device_->info(); }
  const std::string& name() const noexcept { return info().name; }
  Residency& residency() noexcept { return residency_; }
  const Residency& residency() const noexcept { return residency_; }

  /// Returns the index of the memory of the buffer's instance: that of the host if the domain
  /// aliases it.
  std::uint16_t memory_of(const Buffer& buffer) const noexcept {
    return shares_host_ && buffer.aliases() ? kHostMemory : residency_.memory();
  }

  /// Throws Error{unsupported} if the domain runs no kernels.
  void require_cores() const;
  /// Takes cores for a place: those of `wanted`, or `count` free ones (0: all free ones). Throws
  /// Error naming the unavailable ones.
  std::vector<unsigned> take_cores(const std::vector<unsigned>& wanted, std::size_t count,
                                   bool oversubscribe);
  void return_cores(const std::vector<unsigned>& cores) noexcept;
  std::size_t free_cores() const;
  std::uint32_t next_place_number() noexcept {
    return places_made_.fetch_add(1, std::memory_order_relaxed);
  }

  /// Trace tracks of the two directions of the link.
  std::uint32_t track_in = 0, track_out = 0;

 private:
  Context& context_;
  const std::size_t index_;
  const std::unique_ptr<Device> device_;
  const bool shares_host_;
  Residency residency_;
  mutable sys::Mutex mutex_;
  std::vector<unsigned> core_users_ WEIR_GUARDED_BY(mutex_);  ///< number of places on each core
  sys::Atomic<std::uint32_t> places_made_{0};
};

}  // namespace weir::rt

/// The public handle.
struct weir_domain final : weir::rt::Handle<weir_domain>, weir::rt::Domain {
  static constexpr const char* kNoun = "domain";
  using Domain::Domain;
};
