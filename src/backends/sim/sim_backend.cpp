#include "backends/sim/sim_backend.hpp"

#include "backend/settings.hpp"
#include "backends/sim/presets.hpp"
#include "backends/sim/sim_device.hpp"

namespace weir::rt {

namespace {

constexpr unsigned kMostVirtualCores = 4096;
constexpr unsigned kMostThreads = 16;
constexpr double kMostMicroseconds = 1e7;

constexpr double kMostGbps = 1e6;

std::int64_t microseconds(const Settings& settings, const char* key, double otherwise = 0) {
  return static_cast<std::int64_t>(settings.real(key, otherwise, 0, kMostMicroseconds) * 1e3);
}

void read_link(const Settings& settings, SimModel& model) {
  const double gbps = settings.real("gbps", 6, 1e-3, kMostGbps);
  model.link.bytes_per_s = gbps * 1e9;
  model.link.out_bytes_per_s = settings.real("gbps_out", gbps, 1e-3, kMostGbps) * 1e9;
  model.link.latency_ns = microseconds(settings, "latency_us", 10);
  model.link.row_ns = microseconds(settings, "row_us");
  model.link.full_duplex = settings.choice("duplex", {"full", "half"}) == 0;
}

void read_rates(const Settings& settings, SimModel& model) {
  model.core_flops_per_s = settings.real("gflops", 0, 0, 1e9) * 1e9;
  model.memory_bytes_per_s = settings.real("memory_gbps", 0, 0, 1e9) * 1e9;
  model.core_memory_bytes_per_s = settings.real("core_gbps", 0, 0, 1e9) * 1e9;
  model.tile_loss = settings.real("tile_loss", 0, 0, 1e6);
  model.syrk_share = settings.real("syrk", 1, 1e-3, 1);
  model.trsm_share = settings.real("trsm", 1, 1e-3, 1);
  model.potrf_share = settings.real("potrf", 1, 1e-3, 1);
}

void read_costs(const Settings& settings, SimModel& model) {
  model.launch_ns = microseconds(settings, "launch_us");
  model.team_ns = microseconds(settings, "team_us");
  model.fork_ns = microseconds(settings, "fork_us");
  model.contention = settings.real("contention", 1, 1, 1e3);
  model.enqueue_ns = microseconds(settings, "enqueue_us");
  model.notice_ns = microseconds(settings, "notice_us");
  model.link.allocation_ns = microseconds(settings, "allocation_us");
  model.link.allocation_bytes_per_s = settings.real("allocation_gbps", 0, 0, kMostGbps) * 1e9;
  model.link.pools_memory = settings.choice("pool", {"off", "on"}) == 1;
}

void read_faults(const Settings& settings, SimFaultPlan& faults) {
  faults.lost_at = settings.count("lost_at", 0, UINT64_MAX);
  faults.fail_allocation = settings.count("fail_allocation", 0, UINT64_MAX);
  faults.fail_copy = settings.count("fail_copy", 0, UINT64_MAX);
  faults.fail_kernel = settings.count("fail_kernel", 0, UINT64_MAX);
}

SimModel read_model(const Settings& settings, const DomainSpec& spec, const Machine& machine) {
  SimModel model;
  model.host = spec.kind == "host";
  model.virtual_time = settings.choice("clock", {"real", "virtual"}) == 1;
  const std::uint64_t most = model.virtual_time ? kMostVirtualCores : machine.cores.size();
  model.cores = static_cast<unsigned>(settings.count("cores", 1, most));
  model.threads = static_cast<unsigned>(settings.count("threads", 1, kMostThreads));
  if (!model.host) {
    read_link(settings, model);
  } else {  // copies within its memory
    model.link.latency_ns = 0;
  }
  read_rates(settings, model);
  read_costs(settings, model);
  if (!model.host) read_faults(settings, model.faults);
  model.speed = settings.real("speed", 1, 1e-3, model.virtual_time ? 1e6 : 1);
  model.slow_at_ns = static_cast<std::int64_t>(settings.real("slow_at_ms", 0, 0, 1e9) * 1e6);
  model.slow_by = settings.real("slow_by", 1, 1, 1e6);
  model.memory_bytes = settings.size("memory", machine.memory_bytes);
  model.skip_kernels = settings.choice("kernels", {"run", "skip"}) == 1;
  model.resolves_dependences = settings.choice("order", {"host", "device"}) == 1;
  return model;
}

/// Subtracts the reserved cores of the device, and refuses settings that need virtual time.
void apply_reserve(const Settings& settings, const DomainSpec& spec, SimModel& model) {
  const std::uint64_t reserved = settings.index("reserved");
  if (reserved >= model.cores) {
    fail_argument("domain '{}': reserved={} leaves none of its {} cores", spec.text, reserved,
                  model.cores);
  }
  model.cores -= static_cast<unsigned>(reserved);
  const bool needs_virtual_time =
      model.threads > 1 || model.launch_ns > 0 || model.team_ns > 0 || model.fork_ns > 0 ||
      model.contention > 1 || model.slow_by > 1 || model.enqueue_ns > 0 || model.notice_ns > 0 ||
      model.link.allocation_ns > 0 || model.link.allocation_bytes_per_s > 0;
  if (needs_virtual_time && !model.virtual_time) {
    fail_argument(
        "domain '{}': threads, launch_us, team_us, fork_us, contention, slow_by, enqueue_us, "
        "notice_us and allocation need clock=virtual",
        spec.text);
  }
}

class SimBackend final : public Backend {
 public:
  const char* kind() const noexcept override { return "sim"; }
  const char* settings_help() const noexcept override {
    return "PRESET             settings with a name; those that follow win: weir info --presets\n"
           "cores=N            cores of the device (default 1)\n"
           "reserved=N         cores reserved for the system of the device (default 0)\n"
           "threads=K          hardware threads of a core, in virtual time (default 1)\n"
           "gbps=G             bandwidth of its link in GB/s (default 6)\n"
           "gbps_out=G         the same from the device (default: gbps)\n"
           "latency_us=L       latency of a transfer (default 10)\n"
           "row_us=R           of a copy that is not contiguous, for each row (default 0)\n"
           "duplex=full|half   whether both directions go at once (default full)\n"
           "speed=S            of a core against the host's; above 1 in virtual time only\n"
           "slow_at_ms=T       in virtual time, from T on kernels take slow_by times as long\n"
           "slow_by=F          a factor (default 1)\n"
           "memory=SIZE        capacity for instances (default: the host's)\n"
           "clock=real|virtual whether transfers and kernels take real or simulated time\n"
           "gflops=F           of a core, for kernels with a cost function: in virtual time, or "
           "skipped\n"
           "memory_gbps=B      of the device memory, which all its kernels share, likewise\n"
           "core_gbps=B        most that a core gets of it, likewise\n"
           "tile_loss=H        what small tiles and many cores cost tile kernels, likewise\n"
           "syrk=E, trsm=E, potrf=E  share of gflops that these tile kernels reach (default 1)\n"
           "launch_us=L        before every kernel, in virtual time (default 0)\n"
           "team_us=T          before a parallel kernel, likewise (default 0)\n"
           "fork_us=F          for each thread of a parallel kernel, likewise (default 0)\n"
           "contention=C       slowdown of places that share a core, likewise (default 1)\n"
           "enqueue_us=E       of the host, for each action it enqueues, likewise (default 0)\n"
           "notice_us=N        until the host learns that an action ended, likewise (default 0)\n"
           "allocation_us=A, allocation_gbps=B  of an instance's memory, likewise (default 0)\n"
           "pool=off|on        on: memory that was released is allocated again in no time\n"
           "kernels=run|skip   skip: only the modelled time passes, without cores of the host\n"
           "order=host|device  what orders kernels and transfers: weir, or the queue of the "
           "device\n"
           "lost_at=N          the device is lost at its Nth operation, permanently\n"
           "fail_allocation=N  the Nth allocation of its memory fails\n"
           "fail_copy=N        the Nth transfer fails\n"
           "fail_kernel=N      the device refuses the Nth kernel";
  }

  std::span<const DomainPreset> presets() const noexcept override { return simulated_presets(); }

  unsigned cores_wanted(const DomainSpec& spec, const Machine& machine) const override {
    const Settings settings = read(spec);
    SimModel model = read_model(settings, spec, machine);
    apply_reserve(settings, spec, model);
    if (model.virtual_time) return 1;
    return model.skip_kernels ? 0 : model.cores;
  }

  std::unique_ptr<Device> open(const DomainSpec& spec, OpenContext context) override {
    const Settings settings = read(spec);
    SimModel model = read_model(settings, spec, *context.machine);
    apply_reserve(settings, spec, model);
    if (model.skip_kernels && model.core_flops_per_s <= 0) {
      fail_argument("domain '{}': kernels=skip needs gflops=F", spec.text);
    }
    std::vector<unsigned> processors;
    for (const Core& core : context.cores) processors.push_back(core.processor);
    return std::make_unique<SimDevice>(std::move(context.name), model, std::move(processors),
                                       context.machine->real, clock_);
  }

 private:
  static Settings read(const DomainSpec& spec) {
    std::vector<std::string_view> known = {
        "cores",     "reserved",   "threads",    "speed",      "memory",      "clock",
        "gflops",    "core_gbps",  "tile_loss",  "syrk",       "trsm",        "potrf",
        "launch_us", "team_us",    "fork_us",    "contention", "memory_gbps", "kernels",
        "slow_by",   "slow_at_ms", "enqueue_us", "notice_us"};
    if (spec.kind != "host") {
      known.insert(known.end(), {"gbps", "gbps_out", "latency_us", "row_us", "duplex", "order",
                                 "allocation_us", "allocation_gbps", "pool", "lost_at",
                                 "fail_allocation", "fail_copy", "fail_kernel"});
    }
    return {spec, known};
  }

  std::shared_ptr<SimClock> clock_ = std::make_shared<SimClock>();
};

}  // namespace

std::unique_ptr<Backend> make_sim_backend() { return std::make_unique<SimBackend>(); }

}  // namespace weir::rt
