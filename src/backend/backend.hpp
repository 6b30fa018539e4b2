// The driver interface: what a backend implements so that a kind of device can be a domain.
//
// The runtime resolves the dependences of jobs. A backend delays a job for another one only where
// its hardware does so, or if DeviceInfo::resolves_dependences is set. It calls the runtime only
// through PlaceFeed and CopySink.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <weir/kernel.h>

#include "base/error.hpp"
#include "base/region.hpp"
#include "base/threads.hpp"
#include "base/topology.hpp"

namespace weir::rt {

class Device;

/// An allocation in a device's memory.
struct Memory {
  void* address = nullptr;
  std::size_t bytes = 0;
  bool adopted = false;  ///< memory of the program: not freed
};

/// One end of a copy: a region of an allocation of `device`, or of host memory when it is null.
struct CopyEnd {
  Device* device = nullptr;
  std::byte* base = nullptr;
  Region region;
};

/// Receives the completion of a copy.
class CopySink {
 public:
  /// Called once for each copy, on any thread, possibly inside Device::copy(). Does not block.
  /// started_ns and ended_ns are when the link was occupied, on the device's clock.
  virtual void copied(void* token, Outcome outcome, std::int64_t started_ns,
                      std::int64_t ended_ns) noexcept = 0;

 protected:
  ~CopySink() = default;
};

/// A requested copy. Both regions have the same bytes per row, rows and planes.
struct CopyJob {
  CopyEnd source, target;
  CopySink* sink = nullptr;
  void* token = nullptr;

  /// Reports that the copy did not start; `now_ns` is on the device's clock.
  void fail(Outcome outcome, std::int64_t now_ns = sys::now_ns()) const noexcept {
    sink->copied(token, std::move(outcome), now_ns, now_ns);
  }
};

/// A kernel in the portable dialect, as passed to a device's compiler.
struct KernelSource {
  std::string entry;                       ///< name of the kernel in the text
  std::string text;                        ///< without the header of the dialect
  std::string file;                        ///< file name for messages
  std::array<unsigned, 3> group{1, 1, 1};  ///< items per group
  /// One letter for each parameter. 'p': the address of the next operand. For the next scalar: 'i',
  /// 'u' its lower 32 bits, 'l', 'm' all 64 bits, signed and unsigned; 'f' float, 'd' double.
  std::string parameters;
  /// Groups wait for each other: at most as many as the device runs at once.
  bool resident = false;
};

/// A call of a kernel, or a copy, as a driver receives it.
struct Job {
  void* token = nullptr;    ///< of the runtime; opaque to the backend
  void* context = nullptr;  ///< of the runtime; opaque to the backend
  weir_call call{};
  weir_host_function function = nullptr;
  weir_cost_function cost = nullptr;
  const char* kernel = "";        ///< name of the kernel
  std::size_t kernel_number = 0;  ///< number of the kernel in the runtime, from 1
  /// Source for the device's compiler, instead of `function`.
  const KernelSource* source = nullptr;
  std::array<std::uint32_t, 3> groups{};  ///< with `source`: groups to run; none if one is 0
  bool parallel = false;
  bool brief = false;           ///< known to end before a job could start elsewhere
  bool timed = false;           ///< the runtime needs the times below
  std::int64_t started_ns = 0;  ///< set by the backend, on the device's clock
  std::int64_t ended_ns = 0;

  // Only for devices that resolve dependences.
  static constexpr unsigned kPriorities = 12;
  bool is_copy = false;  ///< a copy between host and device instead of a call
  CopyEnd from, to;
  /// Submission id: number of the job in its place, from 1 in the order of next().
  std::uint64_t id = 0;
  /// Below kPriorities; of jobs that may start, higher priorities go first.
  std::uint8_t priority = 0;
  /// Ids of the jobs that must complete before this one starts, without duplicates; they may be
  /// complete already. Valid until the next call of next() for any worker of the place. If one of
  /// them failed, the job must not run host code, may run device code, and ends with
  /// WEIR_STATUS_POISONED.
  std::span<const std::uint64_t> waits;
};

/// One thread, or simulated core, of a place. The driver owns it; the feed uses it.
struct Worker {
  unsigned index = 0;
  void* current = nullptr;       ///< of the feed
  unsigned streak = 0;           ///< of the feed
  bool may_call = false;         ///< set by the driver: the feed may call host kernels inline
  std::vector<weir_view> views;  ///< of the feed: operands of the current job
  std::vector<weir_scalar> scalars;
};

/// The source of a place driver's jobs. Implemented by the runtime.
class PlaceFeed {
 public:
  /// Fills `job` with the next job. Returns false if there is none now. Any thread of the place,
  /// one call at a time for each worker; does not block. If worker.may_call is set, it first runs a
  /// few brief serial calls inline, which would cost too much as jobs.
  virtual bool next(Worker& worker, Job& job) noexcept = 0;
  /// Takes back a completed job with its outcome. Called by the worker that got it; does not block.
  virtual void finish(Worker& worker, Job& job, Outcome outcome) noexcept = 0;
  /// Whether finish() may call callbacks of the program, which may take any time.
  virtual bool calls_back() const noexcept { return false; }
  /// Whether next() may return a job. A driver checks it before it sleeps.
  virtual bool has_work() const noexcept = 0;
  /// Polls for new work while a worker is idle. Any thread of the place; does not block.
  virtual void poll() noexcept {}
  /// Notifies that a worker that called poll() is about to sleep. Likewise.
  virtual void about_to_block() noexcept {}

 protected:
  ~PlaceFeed() = default;
};

/// Runs the jobs of one place. The destructor stops it, when the feed has no work.
class PlaceDriver {
 public:
  virtual ~PlaceDriver() = default;
  /// Notifies that has_work() has become true. Any thread, often; neither blocks nor calls back.
  virtual void wake() noexcept = 0;
};

/// The name and cores of a place to be opened.
struct PlaceRequest {
  std::string name;
  std::vector<unsigned> cores;  ///< indices below DeviceInfo::cores
};

/// Properties of a device. Immutable.
struct DeviceInfo {
  std::string name;  ///< unique in the runtime
  std::string backend;
  std::string code;  ///< the backend whose kernels it runs; "": its own
  std::string description;
  unsigned cores = 0;
  unsigned threads_per_core = 1;  ///< how many of `cores` are hardware threads of one core
  std::uint64_t memory_bytes = 0;
  bool runs_host_code = false;    ///< also runs kernels for "host"
  bool compiles_source = false;   ///< accepts jobs with a KernelSource
  bool aliases_host = false;      ///< kernels can use host memory directly
  bool virtual_time = false;      ///< time advances only in drive()
  bool skips_kernels = false;     ///< only modelled time passes: nothing is computed or copied
  std::int64_t enqueue_ns = 0;    ///< virtual time: of the host, for each action that it enqueues
  bool copies_by_worker = false;  ///< copy() blocks: only workers of the place call it
  /// The driver resolves dependences: it takes jobs before their predecessors complete, one thread
  /// per place calls next() and finish(), and copies between host and device are jobs of the place
  /// of their stream.
  bool resolves_dependences = false;
  bool needs_polling = false;  ///< poll() must be called
  double link_gbps = 0, link_latency_us = 0;
  std::string link_duplex = "none";
};

/// One device: a memory and the cores that compute on it.
class Device {
 public:
  virtual ~Device() = default;

  virtual const DeviceInfo& info() const noexcept = 0;

  /// Allocates zero-filled memory. Throws Error{out_of_memory} if the device has none left; the
  /// caller enforces the capacity. Any thread.
  virtual Memory allocate(std::size_t bytes) = 0;
  /// Makes memory of the program usable as device memory. Throws Error if the device cannot use it;
  /// the default accepts none. Any thread.
  virtual Memory adopt([[maybe_unused]] void* address, [[maybe_unused]] std::size_t bytes) {
    fail(WEIR_STATUS_UNSUPPORTED, "domain '{}' takes no memory of the program: copy it there",
         info().name);
  }
  /// Page-locks host memory, so that copies of this device and others of its kind need no staging
  /// memory of the driver. Returns whether unpin_host() must undo it. Takes long; any thread.
  virtual bool pin_host([[maybe_unused]] void* address,
                        [[maybe_unused]] std::size_t bytes) noexcept {
    return false;
  }
  /// Undoes pin_host(), when no copy uses the memory. Any thread.
  virtual void unpin_host([[maybe_unused]] void* address) noexcept {}
  /// Frees memory that no job or copy uses; does not free adopted memory. Any thread.
  virtual void release(Memory& memory) noexcept = 0;

  /// Returns whether copy() supports `peer` (null: the host) at the other end.
  virtual bool reaches(const Device* peer) const noexcept = 0;
  /// Starts a copy with this device at one end, and calls job.sink at its completion. Any thread.
  /// Returns at once, unless info().copies_by_worker. Copies may overlap in time.
  virtual void copy(const CopyJob& job) noexcept = 0;

  /// Opens a place. Throws Error if that is not possible. The feed outlives the driver.
  virtual std::unique_ptr<PlaceDriver> open_place(const PlaceRequest& request, PlaceFeed& feed) = 0;

  /// Returns the device's clock in nanoseconds; the default is that of the host. Any thread.
  virtual std::int64_t now_ns() const noexcept { return sys::now_ns(); }
  /// In virtual time: processes the next simulated event and advances the clock to it. Returns
  /// false if there is none. Called by waiting threads, one at a time for all devices.
  virtual bool drive() noexcept { return false; }
  /// Plans an empty event, so that drive() stops at a time that is not in the past. Only in virtual
  /// time. Returns false if there is no memory for it.
  virtual bool wake_at([[maybe_unused]] std::int64_t at_ns) noexcept { return false; }
  /// Makes progress for this device on a waiting thread. May call back. Returns whether it did
  /// anything. Any thread; does not block.
  virtual bool poll() noexcept { return false; }
  /// Notifies that a thread that called poll() is about to sleep. Any thread.
  virtual void end_polling() noexcept {}
};

/// The part of `--domains` for one domain: "sim:cores=2,gbps=6".
struct DomainSpec {
  std::string kind;
  std::vector<std::pair<std::string, std::string>> settings;
  std::string text;  ///< as written, for messages

  /// Returns the value of a setting, nullptr if it is not set.
  const std::string* find(std::string_view key) const noexcept {
    for (const auto& [name, value] : settings) {
      if (name == key) return &value;
    }
    return nullptr;
  }
};

/// Settings that have a name.
struct DomainPreset {
  const char* domain;    ///< "KIND:NAME", as in specifications
  const char* settings;  ///< as in specifications
  const char* sources;   ///< what they describe, and where the numbers are from
};

/// What a backend may use of the machine.
struct OpenContext {
  const Machine* machine = nullptr;
  std::vector<Core> cores;  ///< cores of the machine for this domain
  std::string name;         ///< for DeviceInfo::name
};

/// A kind of device.
class Backend {
 public:
  virtual ~Backend() = default;
  /// Returns its name in specifications and kernel implementations.
  virtual const char* kind() const noexcept = 0;
  /// Returns help on its settings, one "key=VALUE  meaning" per line.
  virtual const char* settings_help() const noexcept = 0;
  virtual std::span<const DomainPreset> presets() const noexcept { return {}; }
  /// Returns the number of cores that a specification requests; 0: all that remain. Throws Error.
  virtual unsigned cores_wanted(const DomainSpec& spec, const Machine& machine) const = 0;
  /// Returns the specifications that `spec` expands to. Throws Error.
  virtual std::vector<DomainSpec> expand(const DomainSpec& spec) const { return {spec}; }
  /// Opens a device. Throws Error naming the setting that is invalid, or what is unavailable.
  virtual std::unique_ptr<Device> open(const DomainSpec& spec, OpenContext context) = 0;
};

}  // namespace weir::rt
