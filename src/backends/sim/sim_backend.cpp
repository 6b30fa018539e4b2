#include "backends/sim/sim_backend.hpp"

#include "backend/settings.hpp"
#include "backends/sim/sim_device.hpp"

namespace weir::rt {

namespace {

constexpr unsigned kMostVirtualCores = 4096;
constexpr unsigned kMostThreads = 16;
constexpr double kMostMicroseconds = 1e7;

bool is_virtual(const Settings& settings) {
  return settings.choice("clock", {"real", "virtual"}) == 1;
}

SimModel read_model(const Settings& settings, const Machine& machine) {
  SimModel model;
  model.virtual_time = is_virtual(settings);
  const std::uint64_t most = model.virtual_time ? kMostVirtualCores : machine.cores.size();
  model.cores = static_cast<unsigned>(settings.count("cores", 1, most));
  model.threads = static_cast<unsigned>(settings.count("threads", 1, kMostThreads));
  model.link_bytes_per_s = settings.real("gbps", 6, 1e-3, 1e6) * 1e9;
  model.link_latency_ns =
      static_cast<std::int64_t>(settings.real("latency_us", 10, 0, kMostMicroseconds) * 1e3);
  model.full_duplex = settings.choice("duplex", {"full", "half"}) == 0;
  model.speed = settings.real("speed", 1, 1e-3, model.virtual_time ? 1e6 : 1);
  model.slow_at_ns = static_cast<std::int64_t>(settings.real("slow_at_ms", 0, 0, 1e9) * 1e6);
  model.slow_by = settings.real("slow_by", 1, 1, 1e6);
  model.memory_bytes = settings.size("memory", machine.memory_bytes);
  model.core_flops_per_s = settings.real("gflops", 0, 0, 1e9) * 1e9;
  model.memory_bytes_per_s = settings.real("memory_gbps", 0, 0, 1e9) * 1e9;
  const auto nanoseconds = [&](const char* key) {
    return static_cast<std::int64_t>(settings.real(key, 0, 0, kMostMicroseconds) * 1e3);
  };
  model.launch_ns = nanoseconds("launch_us");
  model.fork_ns = nanoseconds("fork_us");
  model.contention = settings.real("contention", 1, 1, 1e3);
  model.skip_kernels = settings.choice("kernels", {"run", "skip"}) == 1;
  model.resolves_dependences = settings.choice("order", {"host", "device"}) == 1;
  model.faults.lost_at = settings.count("lost_at", 0, UINT64_MAX);
  model.faults.fail_allocation = settings.count("fail_allocation", 0, UINT64_MAX);
  model.faults.fail_copy = settings.count("fail_copy", 0, UINT64_MAX);
  model.faults.fail_kernel = settings.count("fail_kernel", 0, UINT64_MAX);
  return model;
}

/// Subtracts the reserved cores of the card, and refuses settings that need virtual time.
void apply_reserve(const Settings& settings, const DomainSpec& spec, SimModel& model) {
  const std::uint64_t reserved = settings.index("reserved");
  if (reserved >= model.cores) {
    fail_argument("domain '{}': reserved={} leaves none of its {} cores", spec.text, reserved,
                  model.cores);
  }
  model.cores -= static_cast<unsigned>(reserved);
  const bool needs_virtual_time = model.threads > 1 || model.launch_ns > 0 || model.fork_ns > 0 ||
                                  model.contention > 1 || model.slow_by > 1;
  if (needs_virtual_time && !model.virtual_time) {
    fail_argument(
        "domain '{}': threads, launch_us, fork_us, contention and slow_by need clock=virtual",
        spec.text);
  }
}

class SimBackend final : public Backend {
 public:
  const char* kind() const noexcept override { return "sim"; }
  const char* settings_help() const noexcept override {
    return "cores=N            cores of the card (default 1)\n"
           "reserved=N         of them, for the card's own system (default 0)\n"
           "threads=K          hardware threads of a core, in virtual time (default 1)\n"
           "gbps=G             bandwidth of its link in GB/s (default 6)\n"
           "latency_us=L       latency of a transfer (default 10)\n"
           "duplex=full|half   whether both directions go at once (default full)\n"
           "speed=S            of a core against the host's; above 1 in virtual time only\n"
           "slow_at_ms=T       in virtual time, from T on kernels take slow_by times as long\n"
           "slow_by=F          a factor (default 1)\n"
           "memory=SIZE        capacity for instances (default: the host's)\n"
           "clock=real|virtual whether transfers and kernels take real or simulated time\n"
           "gflops=F           of a core, for kernels with a cost function: in virtual time, or "
           "skipped\n"
           "memory_gbps=B      of the card's memory, which all its kernels share, likewise\n"
           "launch_us=L        before every kernel, in virtual time (default 0)\n"
           "fork_us=F          for each thread of a parallel kernel, likewise (default 0)\n"
           "contention=C       slowdown of places that share a core, likewise (default 1)\n"
           "kernels=run|skip   skip: only let the modelled time pass, without cores of the host\n"
           "order=host|device  what orders kernels and transfers: weir, or the card's queue\n"
           "lost_at=N          lose the card at its Nth operation, for good\n"
           "fail_allocation=N  let the Nth allocation of its memory fail\n"
           "fail_copy=N        let the Nth transfer fail\n"
           "fail_kernel=N      let the card refuse the Nth kernel";
  }

  unsigned cores_wanted(const DomainSpec& spec, const Machine& machine) const override {
    const Settings settings = read(spec);
    SimModel model = read_model(settings, machine);
    apply_reserve(settings, spec, model);
    if (model.virtual_time) return 1;
    return model.skip_kernels ? 0 : model.cores;
  }

  std::unique_ptr<Device> open(const DomainSpec& spec, OpenContext context) override {
    const Settings settings = read(spec);
    SimModel model = read_model(settings, *context.machine);
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
    return {spec,
            {"cores",   "reserved",        "threads",   "gbps",       "latency_us",  "duplex",
             "speed",   "memory",          "clock",     "gflops",     "memory_gbps", "launch_us",
             "fork_us", "contention",      "kernels",   "order",      "slow_at_ms",  "slow_by",
             "lost_at", "fail_allocation", "fail_copy", "fail_kernel"}};
  }

  std::shared_ptr<SimClock> clock_ = std::make_shared<SimClock>();
};

}  // namespace

std::unique_ptr<Backend> make_sim_backend() { return std::make_unique<SimBackend>(); }

}  // namespace weir::rt
