// What all objects of one runtime share.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <weir/event.h>
#include <weir/kernel.h>

#include "base/spin_lock.hpp"
#include "base/threads.hpp"
#include "base/topology.hpp"
#include "core/action_pool.hpp"
#include "core/failure_log.hpp"
#include "core/kernel.hpp"
#include "core/residency.hpp"
#include "core/ticket_pool.hpp"
#include "stream/core_sharing.hpp"
#include "stream/domain.hpp"
#include "trace/recorder.hpp"

namespace weir::rt {

class CompletionListener;

/// The services beneath streams, places and queues: the slots of actions and events, failures, the
/// recorder, time, kernels, and the memory of the domains. Knows none of the objects that use it.
/// Any thread, except for the protected functions, which the constructor of the runtime calls.
class Context {
 public:
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // Domains.
  std::size_t domain_count() const noexcept { return domains_.size(); }
  weir_domain* domain(std::size_t index) const noexcept {
    return index < domains_.size() ? domains_[index] : nullptr;
  }
  /// Throws Error{not_found} with the nearest name, Error{invalid_argument} if several match.
  weir_domain& find_domain(const std::string& name) const;
  Device& device_of(std::uint16_t memory) const noexcept { return domains_[memory - 1u]->device(); }
  const Machine& machine() const noexcept { return machine_; }
  const std::string& machine_name() const noexcept { return machine_.processor; }

  // Kernels.
  template <class Options>  // weir_kernel_options or weir_portable_options
  weir_kernel& add_kernel(const Options& options) {
    return kernels_.add(options, backend_kinds_);
  }
  /// Returns a built-in kernel for host cores, registered on first use.
  weir_kernel& service_kernel(const char* name, weir_host_function function);
  const KernelTable& kernels() const noexcept { return kernels_; }

  // Events: the number of the runtime and the slot of the action, then the id of the action.
  template <class Slot>  // Action or Ticket
  weir_event event_of(const Slot& slot, std::uint64_t id) const noexcept {
    return {{number_ << kSlotBits | slot.slot, id}};
  }
  /// Throws Error unless this can be an event of the runtime.
  void check_event(const weir_event& event) const;
  /// Returns the slot of an event that has passed check_event() and is not null.
  EventSlot slot_of(const weir_event& event) const noexcept {
    const std::uint64_t slot = event.opaque[0] & kSlotMask;
    if ((slot & Ticket::kMark) == 0) [[likely]]
      return actions_.at(slot)->event_slot();
    Ticket& ticket = *tickets_.at(slot);
    return {ticket.event, ticket.waiters};
  }
  /// Returns the action of an event of a stream, likewise.
  Action& action_of(const weir_event& event) const noexcept {
    return *actions_.at(event.opaque[0] & kSlotMask);
  }
  /// Notifies a listener when an event is complete, which may be now. The event has passed
  /// check_event().
  void listen(const weir_event& event, std::unique_ptr<CompletionListener> listener) noexcept;
  /// The number of listeners that exist.
  sys::Atomic<std::uint64_t>& listeners() noexcept { return listeners_; }
  /// Returns the serial number of a new stream or queue, from 1. Throws Error{unavailable} when
  /// there are no ids for more.
  std::uint64_t next_serial();
  ActionPool& actions() noexcept { return actions_; }
  TicketPool& tickets() noexcept { return tickets_; }
  FailureLog& failures() noexcept { return failures_; }
  trace::Recorder& recorder() noexcept { return recorder_; }

  // Device memory.
  /// Acquires the memory that an action needs to start.
  Residency::Grant acquire_memory(Action& action, Outcome& why) noexcept;
  void release_memory(Action& action) noexcept;
  /// For an action that will not retry.
  void cancel_memory_request(const Action& action) noexcept;
  /// Returns the name of the domain for whose memory an action waits, "": none.
  std::string awaited_memory(const Action& action) const;
  /// Frees the memory of a buffer in all devices. No action may use it.
  void forget_instances_of(Buffer& buffer) noexcept;

  // Time.
  bool virtual_time() const noexcept { return virtual_time_; }
  std::int64_t now_ns() const noexcept {
    return virtual_time_ ? domains_.front()->device().now_ns() : sys::now_ns();
  }
  /// Sleeps briefly, or in virtual time processes an event: for a thread without memory for a
  /// waiter.
  void pass_time() noexcept;
  /// Processes the next event of virtual time. Returns false if there is none, or another thread is
  /// doing so.
  bool drive() noexcept;
  /// Whether there are devices that need polling.
  bool has_polled_devices() const noexcept { return !polled_devices_.empty(); }
  /// Polls the devices that need it, on a waiting thread. Returns whether anything was done.
  bool poll_devices() noexcept {
    bool moved = false;
    for (Device* const device : polled_devices_) moved |= device->poll();
    return moved;
  }
  /// Notifies the devices that the polling thread is about to sleep.
  void end_polling() noexcept {
    for (Device* const device : polled_devices_) device->end_polling();
  }
  /// Returns how long a waiting thread polls before it sleeps.
  std::int64_t spin_ns() const noexcept { return spin_ns_; }
  CoreSharing& core_sharing() noexcept { return core_sharing_; }

  /// Returns the limit of actions in flight for a request of `wanted`; 0: the default.
  std::size_t max_in_flight(std::size_t wanted) const noexcept {
    return wanted != 0 ? wanted : max_in_flight_;
  }
  /// Whether there is a watchdog.
  bool watched() const noexcept { return watchdog_limit_ns_ > 0; }

 protected:
  Context();
  ~Context() = default;

  /// Kernels may have code for this kind of backend.
  void add_backend_kind(const char* kind) { backend_kinds_.emplace_back(kind); }
  /// Adds a domain, which the caller owns.
  void add_domain(weir_domain& domain);
  std::int64_t watchdog_limit_ns() const noexcept { return watchdog_limit_ns_; }

 private:
  static constexpr unsigned kSlotBits = 32;
  static constexpr std::uint64_t kSlotMask = (std::uint64_t{1} << kSlotBits) - 1;

  const std::uint64_t number_;  ///< number of this runtime in the process
  const Machine machine_;
  const std::int64_t watchdog_limit_ns_;  ///< 0: no watchdog
  const std::int64_t spin_ns_;
  const std::size_t max_in_flight_;
  CoreSharing core_sharing_;
  trace::Recorder recorder_;
  ActionPool actions_;
  TicketPool tickets_;
  FailureLog failures_;
  KernelTable kernels_;
  std::vector<std::string> backend_kinds_;
  std::vector<weir_domain*> domains_;
  std::vector<Device*> polled_devices_;
  bool virtual_time_ = false;
  SpinLock driving_;                       ///< only tried: its holder advances virtual time
  sys::Atomic<std::uint64_t> serials_{0};  ///< serial numbers of streams and queues so far
  sys::Atomic<std::uint64_t> listeners_{0};
};

}  // namespace weir::rt
