// The driver interface: what a kind of device must do to be a domain.
//
// The runtime orders jobs. A backend delays a job for another one only where its hardware does so,
// or if DeviceInfo::resolves_dependences is set. It calls the runtime through PlaceFeed and
// CopySink only.
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
#include "base/topology.hpp"

namespace weir::rt {

class Device;

/// An allocation in a device's memory.
struct Memory {
  void* address = nullptr;
  std::size_t bytes = 0;
  bool adopted = false;  ///< the program's: not freed
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

/// A copy to be made. Regions have the same bytes in rows, rows and planes.
struct CopyJob {
  CopyEnd source, target;
  CopySink* sink = nullptr;
  void* token = nullptr;
};

/// A kernel in the portable dialect, as a device's compiler gets it.
struct KernelSource {
  std::string entry;                       ///< its name in the text
  std::string text;                        ///< without the header of the dialect
  std::string file;                        ///< for messages
  std::array<unsigned, 3> group{1, 1, 1};  ///< items of a group
  /// A letter for each parameter: 'p' the address of the next operand; of the next scalar 'i', 'u'
  /// its lower 32 bits, 'l', 'm' all 64 of them, signed and unsigned, 'f' a float, 'd' a double.
  std::string parameters;
  bool resident = false;  ///< groups wait for each other: as many as fit at once
};

/// A call of a kernel, or a copy, to be made.
struct Job {
  void* token = nullptr;    ///< the runtime's, not for the backend
  void* context = nullptr;  ///< likewise
  weir_call call{};
  weir_host_function function = nullptr;
  weir_cost_function cost = nullptr;
  const char* kernel = "";                ///< its name
  std::size_t kernel_number = 0;          ///< of that kernel in the runtime, from 1
  const KernelSource* source = nullptr;   ///< code for the device instead of `function`
  std::array<std::uint32_t, 3> groups{};  ///< then: how many groups to run; nothing if one is 0
  bool parallel = false;
  bool brief = false;           ///< known to be over before another could begin elsewhere
  bool timed = false;           ///< the runtime wants the times below
  std::int64_t started_ns = 0;  ///< set by the backend, on the device's clock
  std::int64_t ended_ns = 0;

  // Of devices that order jobs.
  static constexpr unsigned kPriorities = 12;
  bool is_copy = false;  ///< no call, but a copy between the host and the device
  CopyEnd from, to;
  std::uint64_t id = 0;       ///< of the job in its place, from 1 in the order of next()
  std::uint8_t priority = 0;  ///< below kUrgencies: of jobs that may start those with more go first
  /// Ids of the jobs that must complete before this one starts, without duplicates; they may be
  /// complete already. Valid until the next call of next() for any worker of the place. If one of
  /// them failed, the job must not run host code, may run device code, and ends with
  /// WEIR_STATUS_POISONED.
  std::span<const std::uint64_t> waits;
};

/// One thread, or simulated core, of a place. Owned by the driver, used by the feed.
struct Worker {
  unsigned index = 0;
  void* current = nullptr;       ///< the feed's
  unsigned streak = 0;           ///< the feed's
  bool may_call = false;         ///< the driver's: the feed may call kernels of the host itself
  std::vector<weir_view> views;  ///< the feed's: operands of the current job
  std::vector<weir_scalar> scalars;
};

/// Where a place's driver gets its work. Implemented by the runtime.
class PlaceFeed {
 public:
  /// Fills job with the next call to make. Returns false when there is none now. Any thread of the
  /// place, one call at a time for one worker; does not block. On a worker that may, it first makes
  /// a few serial calls itself, for which jobs would cost too much.
  virtual bool next(Worker& worker, Job& job) noexcept = 0;
  /// Takes back a job, with how it went. The worker that got it; does not block.
  virtual void finish(Worker& worker, Job& job, Outcome outcome) noexcept = 0;
  /// Whether finish() may call the program back, which takes as long as it likes.
  virtual bool calls_back() const noexcept { return false; }
  /// Whether next() may have something: what a driver checks before it sleeps.
  virtual bool has_work() const noexcept = 0;
  /// Polls for new work while a worker has nothing else to do. Any thread of the place; does not
  /// block.
  virtual void poll() noexcept {}
  /// The worker that looked goes to sleep. Likewise.
  virtual void about_to_block() noexcept {}

 protected:
  ~PlaceFeed() = default;
};

/// Runs the jobs of one place. Its destructor stops it: the feed has no work then.
class PlaceDriver {
 public:
  virtual ~PlaceDriver() = default;
  /// Says that has_work() has become true. Any thread, often; neither blocks nor calls back.
  virtual void wake() noexcept = 0;
};

/// What a place is made of.
struct PlaceRequest {
  std::string name;
  std::vector<unsigned> cores;  ///< indices below DeviceInfo::cores
};

/// Facts about a device that do not change.
struct DeviceInfo {
  std::string name;  ///< unique in the runtime
  std::string backend;
  std::string code;  ///< the backend whose kernels it runs, "": its own
  std::string description;
  unsigned cores = 0;
  unsigned threads_per_core = 1;  ///< how many of `cores` are hardware threads of one
  std::uint64_t memory_bytes = 0;
  bool runs_host_code = false;    ///< kernels for "host" run there, too
  bool compiles_source = false;   ///< takes jobs with a KernelSource
  bool aliases_host = false;      ///< host memory can be used as it is
  bool virtual_time = false;      ///< time passes only in drive()
  bool copies_by_worker = false;  ///< copy() blocks: the place's workers are to call it
  /// The driver gets the jobs of a place before their predecessors complete, and one thread per
  /// place calls next() and finish(). Copies between host and device are jobs of the place of their
  /// stream.
  bool resolves_dependences = false;
  bool needs_polling = false;  ///< poll() does something
  double link_gbps = 0, link_latency_us = 0;
  std::string link_duplex = "none";
};

/// One device: a memory and the cores that compute on it.
class Device {
 public:
  virtual ~Device() = default;

  virtual const DeviceInfo& info() const noexcept = 0;

  /// Allocates zero-filled memory. Throws Error{out_of_memory} when the device has none left; the
  /// capacity is kept by the caller. Any thread.
  virtual Memory allocate(std::size_t bytes) = 0;
  /// Takes memory of the program that the device can use as its own. Throws Error when it cannot;
  /// by default none is taken. Any thread.
  virtual Memory adopt([[maybe_unused]] void* address, [[maybe_unused]] std::size_t bytes) {
    fail(WEIR_STATUS_UNSUPPORTED, "domain '{}' takes no memory of the program: copy it there",
         info().name);
  }
  /// Page-locks memory of the host, so that copies of this device and of others of its kind need
  /// not go through memory of the driver. Returns whether unpin_host() has to undo it. Takes long;
  /// any thread.
  virtual bool pin_host([[maybe_unused]] void* address,
                        [[maybe_unused]] std::size_t bytes) noexcept {
    return false;
  }
  /// When no copy uses the memory any more. Any thread.
  virtual void unpin_host([[maybe_unused]] void* address) noexcept {}
  /// Frees memory that no job or copy uses any more, but for what was adopted. Any thread.
  virtual void release(Memory& memory) noexcept = 0;

  /// Returns whether copy() can have `peer` (null: the host) at the other end.
  virtual bool reaches(const Device* peer) const noexcept = 0;
  /// Starts a copy that has this device at one end, and tells job.sink when it is done. Any thread.
  /// Returns at once, unless info().copies_by_worker. Copies may overlap each other.
  virtual void copy(const CopyJob& job) noexcept = 0;

  /// Starts a place. Throws Error when it cannot be had. The feed outlives the driver.
  virtual std::unique_ptr<PlaceDriver> open_place(const PlaceRequest& request, PlaceFeed& feed) = 0;

  /// Returns the device's clock in nanoseconds. Any thread.
  virtual std::int64_t now_ns() const noexcept = 0;
  /// In virtual time: makes the next thing happen and advances the clock to it. Returns false when
  /// there is nothing left to happen. Called by threads that wait, one at a time for all devices.
  virtual bool drive() noexcept = 0;
  /// Makes progress for this device on a thread that waits for it. May call back. Returns whether
  /// it did anything. Any thread; does not block.
  virtual bool poll() noexcept { return false; }
  /// The thread that assisted goes to sleep. Any thread.
  virtual void end_polling() noexcept {}
};

/// What `--domains` says about one domain: "sim:cores=2,gbps=6".
struct DomainSpec {
  std::string kind;
  std::vector<std::pair<std::string, std::string>> settings;
  std::string text;  ///< as written, for messages

  /// Returns the value of a setting, nullptr when there is none.
  const std::string* find(std::string_view key) const noexcept {
    for (const auto& [name, value] : settings) {
      if (name == key) return &value;
    }
    return nullptr;
  }
};

/// What a backend may take of the machine.
struct OpenContext {
  const Machine* machine = nullptr;
  std::vector<Core> cores;  ///< cores of the machine meant for this domain
  std::string name;         ///< for DeviceInfo::name
};

/// A kind of device.
class Backend {
 public:
  virtual ~Backend() = default;
  /// Its name in specifications and kernel implementations.
  virtual const char* kind() const noexcept = 0;
  /// Its settings for people, one "key=VALUE  meaning" a line.
  virtual const char* settings_help() const noexcept = 0;
  /// How many cores of the machine a specification asks for, 0: all that are left. Throws Error.
  virtual unsigned cores_wanted(const DomainSpec& spec, const Machine& machine) const = 0;
  /// Returns the specifications that one stands for. Throws Error.
  virtual std::vector<DomainSpec> expand(const DomainSpec& spec) const { return {spec}; }
  /// Opens a device. Throws Error naming the setting that is wrong, or what is unavailable.
  virtual std::unique_ptr<Device> open(const DomainSpec& spec, OpenContext context) = 0;
};

}  // namespace weir::rt
