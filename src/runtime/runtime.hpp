// A runtime: one instance of weir.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <weir/buffer.h>
#include <weir/place.h>
#include <weir/runtime.h>
#include <weir/stream.h>

#include "base/handle.hpp"
#include "base/log.hpp"
#include "base/spin_lock.hpp"
#include "base/thread_role.hpp"
#include "base/threads.hpp"
#include "base/topology.hpp"
#include "core/action_pool.hpp"
#include "core/buffer.hpp"
#include "core/failure_log.hpp"
#include "core/kernel.hpp"
#include "core/ticket_pool.hpp"
#include "net/port.hpp"
#include "runtime/domain.hpp"
#include "runtime/fabric.hpp"
#include "runtime/host_allocation.hpp"
#include "runtime/live_runtime.hpp"
#include "runtime/pipeline.hpp"
#include "runtime/place.hpp"
#include "runtime/queue.hpp"
#include "runtime/reaper.hpp"
#include "runtime/share.hpp"
#include "runtime/stream.hpp"
#include "runtime/waiting.hpp"
#include "runtime/watchdog.hpp"
#include "sched/policy.hpp"
#include "sched/wisdom.hpp"
#include "trace/recorder.hpp"

namespace weir::rt {

/// Owns the domains, places, streams, buffers, kernels and the recorder of a program.
class Runtime {
 public:
  explicit Runtime(const weir_runtime_options& options);
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
  ~Runtime();

  const std::string& name() const noexcept { return name_; }

  // Domains.
  std::size_t domain_count() const noexcept { return domains_.size(); }
  weir_domain* domain(std::size_t index) const noexcept {
    return index < domains_.size() ? domains_[index].get() : nullptr;
  }
  weir_domain& find_domain(const std::string& name) const;
  Device& device_of(std::uint16_t memory) const noexcept { return domains_[memory - 1u]->device(); }

  // Places and streams.
  weir_place* create_place(Domain& domain, const weir_place_options& options);
  void partition(Domain& domain, std::size_t count, bool oversubscribe, weir_place** out_places);
  /// Returns the number of cores without a place. Includes cores of places in destruction if the
  /// caller may wait.
  std::size_t free_cores(const Domain& domain) noexcept;
  void destroy_place(weir_place* place) noexcept;
  weir_stream* create_stream(Place& place, const weir_stream_options& options);
  void destroy_stream(weir_stream* stream) noexcept;
  WaitResult synchronize(Stream& stream, std::int64_t timeout_ns);
  WaitResult synchronize_all(std::int64_t timeout_ns);
  /// Waits until everything in the streams is complete. They keep their failures. Returns false at
  /// the time-out.
  bool await_end(const std::vector<weir_stream*>& streams, std::int64_t timeout_ns);
  /// Returns the limit of actions in flight for a request of `wanted`; 0: the default.
  std::size_t max_in_flight(std::size_t wanted) const noexcept {
    return wanted != 0 ? wanted : max_in_flight_;
  }
  std::uint64_t streams_made() const noexcept {
    return streams_made_.load(std::memory_order_acquire);
  }

  // Task queues.
  weir_queue* create_queue(const weir_queue_options& options);
  void destroy_queue(weir_queue* queue) noexcept;
  void add_policy(const weir_policy_options& options);
  /// Makes a policy for a queue. Throws Error{not_found} with the nearest name.
  std::unique_ptr<Policy> make_policy(const std::string& name);
  const Machine& machine() const noexcept { return machine_; }
  /// Returns the port to other ranks, nullptr without a fabric.
  Port* port() const noexcept { return fabric_.port(); }
  const std::string& machine_name() const noexcept { return machine_.processor; }
  /// Returns the stored division for a problem on this machine and these domains.
  Wisdom wisdom(std::string_view problem, std::uint64_t size) const {
    return {machine_name(), domain_list_, problem, size};
  }

  // Shares.
  weir_share* create_share(const weir_share_options& options, Share::Enqueue enqueue);
  void destroy_share(weir_share* share) noexcept;

  // Pipelines.
  weir_pipeline* create_pipeline(const weir_pipeline_options& options);
  void destroy_pipeline(weir_pipeline* pipeline) noexcept;

  // Kernels.
  /// Returns a built-in kernel for host cores, registered on first use.
  weir_kernel& service_kernel(const char* name, weir_host_function function);
  template <class Options>  // weir_kernel_options or weir_portable_options
  weir_kernel& add_kernel(const Options& options) {
    return kernels_.add(options, backend_kinds());
  }
  const KernelTable& kernels() const noexcept { return kernels_; }

  // Buffers.
  weir_buffer* create_buffer(std::size_t bytes, const weir_buffer_options& options);
  weir_buffer* wrap_buffer(void* address, std::size_t bytes, const weir_buffer_options& options);
  weir_buffer* adopt_buffer(Domain& domain, void* address, void* host, std::size_t bytes,
                            const weir_buffer_options& options);
  void destroy_buffer(weir_buffer* buffer) noexcept;
  /// Creates a buffer in the memory of one device, without host memory, for internal use.
  Owned<weir_buffer> make_device_buffer(std::size_t bytes);
  /// Destroys a buffer that no action uses.
  void free_buffer(weir_buffer& buffer) noexcept;
  /// Frees the memory of a buffer in all devices. No action may use it.
  void forget_instances_of(Buffer& buffer) noexcept;
  weir_memory_kind kind_of(const weir_buffer& buffer) const;
  weir_buffer* find_buffer(const void* address, std::size_t& out_offset) const;

  // Events: the number of the runtime and the slot of the action, then the id of the action.
  template <class Slot>  // Action or Ticket
  weir_event event_of(const Slot& slot, std::uint64_t id) const noexcept {
    return {{number_ << kSlotBits | slot.slot, id}};
  }
  /// Throws Error unless this can be an event of the runtime.
  void check_event(const weir_event& event) const;
  /// Returns the slot of an event that has passed check_event() and is not null.
  EventSlot slot_of(const weir_event& event) const noexcept {
    const std::uint64_t slot = event.opaque[0] & ((std::uint64_t{1} << kSlotBits) - 1);
    if ((slot & Ticket::kMark) == 0) [[likely]]
      return actions_.at(slot)->event_slot();
    Ticket& ticket = *tickets_.at(slot);
    return {ticket.event, ticket.waiters};
  }
  void on_complete(const weir_event& event, weir_event_callback callback, void* payload);
  /// Whether callbacks have not returned.
  bool awaits_callbacks() const noexcept { return callbacks_.load() > 0; }

  // Device memory for actions that are to start.
  Residency::Grant acquire_memory(Action& action, Outcome& why) noexcept;
  void release_memory(Action& action) noexcept;
  /// For an action that will not retry.
  void cancel_memory_request(const Action& action) noexcept;

  /// Returns the name of the domain for whose memory an action waits, "": none.
  std::string awaited_memory(const Action& action) const;

  // For the watchdog.
  /// Whether there is a watchdog.
  bool watched() const noexcept { return watchdog_limit_ns_ > 0; }
  /// Calls use(streams). The streams are not destroyed meanwhile.
  void with_streams(const std::function<void(const std::vector<weir_stream*>&)>& use);
  /// The same for task queues.
  void with_queues(const std::function<void(const std::vector<weir_queue*>&)>& use);
  /// Calls look(queue) for all queues, without allocating. It must not create or destroy queues.
  template <class Look>
  void each_queue(const Look& look) const;
  /// The same for pipelines.
  template <class Look>
  void each_pipeline(const Look& look) const;
  /// Calls use(place) for all places. It must not create or destroy places.
  void each_place(const std::function<void(const Place&)>& use) const;

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
  /// Returns how long a waiting thread polls before it sleeps.
  std::int64_t spin_ns() const noexcept { return spin_ns_; }
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

  CoreSharing& core_sharing() noexcept { return core_sharing_; }

  /// Returns the action of an event of a stream, likewise.
  Action& action_of(const weir_event& event) const noexcept {
    return *actions_.at(event.opaque[0] & ((std::uint64_t{1} << kSlotBits) - 1));
  }
  ActionPool& actions() noexcept { return actions_; }
  TicketPool& tickets() noexcept { return tickets_; }
  FailureLog& failures() noexcept { return failures_; }
  trace::Recorder& recorder() noexcept { return recorder_; }

  /// Logs all unreported failures. Any thread.
  void report_unreported() noexcept;

  void get_stats(weir_stats& stats) const;
  std::string describe() const;

 private:
  std::vector<std::string> backend_kinds() const;
  bool has_slot(std::uint64_t slot) const noexcept;

  struct OwnedBuffer {
    Owned<weir_buffer> buffer;
    HostAllocation memory;     ///< empty for wrapped memory
    Device* locker = nullptr;  ///< device that has page-locked it
  };

  weir_buffer* add_buffer(void* address, std::size_t bytes, HostAllocation memory,
                          const weir_buffer_options& options);
  void lock_host_memory(const weir_buffer& buffer) noexcept;
  static void unlock_host_memory(const OwnedBuffer& owned) noexcept;
  class PinnedStreams;
  std::uint64_t next_serial() const;
  weir_stream* any_stream_of(const Place& place);
  using Drains = std::list<Stream::Drain>;
  void add_drains_of(weir_stream& stream, Drains& drains);
  bool abandon(Drains& drains) noexcept;
  void return_abandoned(Drains& drains) noexcept;
  bool forget_abandoned(Drains& drains);
  std::vector<unsigned> take_cores(Domain& domain, const weir_place_options& options);
  /// Whether another thread destroys the object, a `noun`, or has done so. A kernel or callback
  /// must not wait for that.
  template <class Object>
  bool destroyed_elsewhere(Object* object, void (Runtime::*destroy)(Object*) noexcept) noexcept;
  WaitResult drain(const std::vector<weir_stream*>& streams, std::int64_t timeout_ns);
  void wait_until_complete(const Stream& stream) noexcept;
  void wait_until_no_owner(const Stream& stream) noexcept;
  bool wait_until_no_owners() noexcept WEIR_NOT_ANALYSED;
  void wait_for_users(const Buffer& buffer) noexcept;
  class PinnedQueues;
  void shut_down(std::int64_t deadline_ns) noexcept;
  void shut_down_without_memory(std::int64_t deadline_ns) noexcept WEIR_NOT_ANALYSED;
  void write_requested_trace() noexcept;

  static constexpr unsigned kSlotBits = 32;

  const std::string name_ = "weir";
  const std::uint64_t number_;  ///< number of this runtime in the process
  const Machine machine_;
  const std::string domain_list_;  ///< as requested by the program or WEIR_DOMAINS
  const std::int64_t shutdown_timeout_ns_;
  const std::int64_t watchdog_limit_ns_;  // 0: no watchdog
  const std::int64_t spin_ns_;
  const std::size_t max_in_flight_;
  CoreSharing core_sharing_;
  std::string trace_path_;
  trace::Recorder recorder_;
  ActionPool actions_;
  TicketPool tickets_;
  FailureLog failures_;
  KernelTable kernels_;
  const FabricUse fabric_;  // outlives the fields below
  std::vector<std::unique_ptr<Backend>> backends_;
  std::vector<Owned<weir_domain>> domains_;
  std::vector<Device*> polled_devices_;  ///< devices that need polling
  bool virtual_time_ = false;
  SpinLock driving_;  // only tried: its holder advances virtual time

  mutable sys::Mutex mutex_;  // guards the lists below
  sys::Condition stream_unpinned_, stream_gone_;
  std::vector<Owned<weir_place>> places_ WEIR_GUARDED_BY(mutex_);
  std::map<std::uint64_t, Owned<weir_stream>> streams_ WEIR_GUARDED_BY(mutex_);
  std::vector<Owned<weir_queue>> queues_ WEIR_GUARDED_BY(mutex_);
  /// A failure that a queue reported to a call that then timed out.
  WaitResult unreported_failure_ WEIR_GUARDED_BY(mutex_);
  std::vector<Owned<weir_share>> shares_ WEIR_GUARDED_BY(mutex_);
  std::uint64_t shares_made_ WEIR_GUARDED_BY(mutex_) = 0;
  std::vector<Owned<weir_pipeline>> pipelines_ WEIR_GUARDED_BY(mutex_);
  std::uint64_t pipelines_made_ WEIR_GUARDED_BY(mutex_) = 0;
  PolicyTable policies_ WEIR_GUARDED_BY(mutex_);
  // By the end of their host memory.
  std::map<const std::byte*, OwnedBuffer> buffers_ WEIR_GUARDED_BY(mutex_);
  std::uint64_t buffers_made_ WEIR_GUARDED_BY(mutex_) = 0;
  sys::Atomic<std::uint64_t> streams_made_{0};
  sys::Atomic<std::uint64_t> callbacks_{0};              ///< callbacks that have not returned
  weir_stats finished_stats_ WEIR_GUARDED_BY(mutex_){};  // of destroyed streams
  std::unique_ptr<Watchdog> watchdog_;
  Reaper reaper_;
  LiveRuntime live_;  // the last member: it begins when all others exist
};

template <class Object>
bool Runtime::destroyed_elsewhere(Object* object,
                                  void (Runtime::*destroy)(Object*) noexcept) noexcept {
  if (!NoWaitScope::active()) return !reaper_.take_back(object);
  try {
    reaper_.add(object, [this, object, destroy] { (this->*destroy)(object); });
  } catch (const std::exception& error) {
    log::warning("{} '{}' stays until the runtime ends: a kernel or callback destroys it, and {}",
                 Object::kNoun, object->name(), error.what());
  }
  return true;
}

template <class Look>
void Runtime::each_queue(const Look& look) const {
  sys::Lock lock(mutex_);
  for (const auto& queue : queues_) look(*queue);
}

template <class Look>
void Runtime::each_pipeline(const Look& look) const {
  sys::Lock lock(mutex_);
  for (const auto& pipeline : pipelines_) look(*pipeline);
}

}  // namespace weir::rt

/// The public handle.
struct weir_runtime final : weir::rt::Handle<weir_runtime>, weir::rt::Runtime {
  static constexpr const char* kNoun = "runtime";
  using Runtime::Runtime;
};
