#include "pipeline/pipeline.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/thread_role.hpp"
#include "pipeline/kernel_stage.hpp"
#include "stream/registry.hpp"
#include "stream/waiting.hpp"

namespace weir::rt {

namespace {

/// The kernel of all workers. Its scalars are the flow and the number of the worker.
weir_status work(const weir_call* call) {
  Flow* flow = nullptr;
  static_assert(sizeof(void*) == sizeof call->scalars[0].value.u64);
  flow = reinterpret_cast<Flow*>(call->scalars[0].value.u64);  // NOLINT(performance-no-int-to-ptr)
  flow->work(call->scalars[1].value.u64);
  return WEIR_STATUS_OK;
}

/// In nanoseconds: a day.
constexpr double kMostItemNs = 86'400e9;

/// Whether the functions of stages run on the cores of a device: a host, which may be simulated.
bool runs_functions(const DeviceInfo& info) {
  return info.backend == "host" || (info.virtual_time && info.aliases_host);
}

void check_runs_functions(const weir_place& place) {
  const DeviceInfo& info = place.domain().info();
  if (runs_functions(info)) return;
  fail(WEIR_STATUS_UNSUPPORTED,
       "place '{}' of domain '{}' cannot run stages: their code runs on host cores", place.name(),
       info.name);
}

}  // namespace

Pipeline::Pipeline(Registry& registry, BatchStore& store, const std::string& name,
                   const weir_pipeline_options& options)
    : registry_(registry), store_(store), flow_(name, options), usual_place_(options.place) {
  if (virtual_time()) {
    flow_.clock.make_virtual([this] { return registry_.drive(); },
                             [this](std::int64_t ns) { pass_time(registry_, ns); },
                             [this] { return registry_.now_ns(); });
  } else if (usual_place_ != nullptr) {
    group_of(usual_place_);
  }
}

bool Pipeline::virtual_time() const noexcept { return registry_.virtual_time(); }

Pipeline::~Pipeline() {
  flow_.cancel();
  end_workers();
  executors_.clear();
  stencils_.clear();
  flow_.completion.report_unreported();
  if (own_place_ != nullptr) registry_.destroy_place(own_place_);
}

void Pipeline::end_workers() noexcept {
  for (weir_stream* stream : streams_) registry_.destroy_stream(stream);
  streams_.clear();
}

/// Returns a place with all free cores of the first host domain; all its cores if none is free.
weir_place& Pipeline::usual_place() {
  if (usual_place_ != nullptr) return *usual_place_;
  for (std::size_t i = 0; i < registry_.domain_count(); ++i) {
    weir_domain& domain = *registry_.domain(i);
    if (!runs_functions(domain.info())) continue;
    weir_place_options options = WEIR_PLACE_OPTIONS_INIT;
    if (registry_.free_cores(domain) == 0) {
      options.oversubscribe = true;
      options.core_count = domain.info().cores;
    }
    own_place_ = registry_.create_place(domain, options);
    return *(usual_place_ = own_place_);
  }
  fail(WEIR_STATUS_UNSUPPORTED,
       "pipeline '{}' needs a host domain for its workers, and the runtime has none: add host to "
       "its domains",
       name());
}

weir_place& Pipeline::check_place(weir_place* place) const {
  weir_place& checked = weir_place::check(place);
  if (&checked.domain().context() != &registry_) {
    fail_argument("place '{}' belongs to another runtime than pipeline '{}'", checked.name(),
                  name());
  }
  return checked;
}

std::size_t Pipeline::group_of(weir_place* place) {
  weir_place& wanted = place != nullptr ? check_place(place) : usual_place();
  check_runs_functions(wanted);
  const auto found = std::find(places_.begin(), places_.end(), &wanted);
  const auto group = static_cast<std::size_t>(found - places_.begin());
  if (found == places_.end()) places_.push_back(&wanted);
  return group;
}

/// Returns the group of stages that any worker may run.
std::size_t Pipeline::usual_group() { return virtual_time() ? 0 : group_of(nullptr); }

void Pipeline::add_stage(const weir_stage_options& options) {
  if (options.kernel != nullptr) return add_kernel(options);
  if (!(options.item_ns >= 0 && options.item_ns <= kMostItemNs)) {
    fail_argument("stage '{}' takes {} ns for an item: give 0 to {} ns",
                  options.name != nullptr ? options.name : "", options.item_ns, kMostItemNs);
  }
  if (!virtual_time()) return flow_.graph.add_stage(options, group_of(options.place));
  flow_.graph.add_stage(options, 0, nullptr, virtual_cores(options));
}

/// Returns how many cores of a simulated host work on a call of a stage.
std::size_t Pipeline::virtual_cores(const weir_stage_options& options) const {
  std::size_t cores = 1;
  if (weir_place* const given = options.place != nullptr ? options.place : usual_place_) {
    const weir_place& place = check_place(given);
    check_runs_functions(place);
    cores = place.width();
  } else {
    for (std::size_t i = registry_.domain_count(); i-- > 0;) {
      const DeviceInfo& info = registry_.domain(i)->info();
      if (runs_functions(info)) cores = info.cores;
    }
  }
  const std::size_t usual = options.input == nullptr ? 1 : cores;
  return std::min(cores, options.workers > 0 ? options.workers : usual);
}

void Pipeline::add_kernel(const weir_stage_options& options) {
  const std::string stage = options.name != nullptr ? options.name : "kernel";
  if (options.input == nullptr) {
    fail_argument("stage '{}' has a kernel, but no input: a source is a function", stage);
  }
  executors_.push_back(
      add_executor<std::unique_ptr<KernelStage>>(options.place, stage, options, options, store_));
}

/// Makes an executor on a place and adds its stage.
template <class Executor, class... Store, class Options>
Executor Pipeline::add_executor(weir_place* place, const std::string& stage, const Options& options,
                                const weir_stage_options& as, Store&... store) {
  if (place == nullptr) fail_argument("stage '{}' has a kernel, but no place to run it", stage);
  weir_place& checked = check_place(place);
  const std::size_t group = usual_group();
  executors_.reserve(executors_.size() + 1);
  stencils_.reserve(stencils_.size() + 1);
  executor_places_.reserve(executor_places_.size() + 1);
  Executor executor(new typename Executor::element_type(
      store..., checked, fmt::format("{}/{}", flow_.name, stage), options));
  flow_.graph.add_stage(as, group, executor.get());
  executor_places_.push_back(&checked);
  return executor;
}

weir_stencil* Pipeline::add_stencil(const weir_stencil_options& options) {
  const std::string stage = options.name != nullptr ? options.name : "stencil";
  for (weir_tunnel* tunnel : {options.input, options.output}) {
    if (tunnel == nullptr && tunnel == options.output) continue;
    if (weir_tunnel::check(tunnel).item_bytes == sizeof(weir_stencil_region)) continue;
    fail_argument(
        "tunnel '{}' has items of {} bytes, but stencil '{}' needs weir_stencil_region: {}",
        tunnel->name(), tunnel->item_bytes, stage, sizeof(weir_stencil_region));
  }
  weir_stage_options own = WEIR_STAGE_OPTIONS_INIT;
  own.name = stage.c_str();
  own.input = options.input;
  own.outputs = &options.output;
  own.output_count = options.output != nullptr ? 1 : 0;
  stencils_.push_back(add_executor<Owned<weir_stencil>>(options.place, stage, options, own));
  return stencils_.back().get();
}

/// Throws Error if kernels run on a place of the workers: they would wait there for the end of the
/// pipeline.
void Pipeline::check_places() const {
  for (const weir_place* place : executor_places_) {
    if (std::find(places_.begin(), places_.end(), place) == places_.end()) continue;
    fail_argument(
        "place '{}' has workers of pipeline '{}', which leave it no core for a kernel: give the "
        "kernel a place of its own",
        place->name(), name());
  }
}

/// Starts all workers except the first `kept_back`.
void Pipeline::start(std::size_t kept_back) {
  if (virtual_time()) return flow_.seal({1});
  check_places();
  std::vector<std::size_t> widths;
  for (const weir_place* place : places_) widths.push_back(place->width());
  flow_.seal(widths);
  std::size_t worker = 0;
  try {
    for (weir_place* place : places_) {
      for (std::size_t i = 0; i < place->width(); ++i, ++worker) {
        if (worker >= kept_back) start_worker(*place, worker);
      }
    }
  } catch (...) {
    flow_.cancel();
    end_workers();
    throw;
  }
}

void Pipeline::start_worker(weir_place& place, std::size_t worker) {
  weir_stream_options options = WEIR_STREAM_OPTIONS_INIT;
  const std::string name = fmt::format("{}/{}", flow_.name, worker);
  options.name = name.c_str();
  streams_.reserve(streams_.size() + 1);
  weir_stream* const stream = registry_.create_stream(place, options);
  streams_.push_back(stream);
  const weir_scalar scalars[] = {
      weir_scalar_u64(reinterpret_cast<std::uint64_t>(&flow_)),
      weir_scalar_u64(worker),
  };
  weir_compute compute = WEIR_COMPUTE_INIT;
  compute.kernel = &registry_.service_kernel("weir.pipeline", work);
  compute.scalars = scalars;
  compute.scalar_count = std::size(scalars);
  compute.name = flow_.name.c_str();
  stream->compute(compute, false);
}

void Pipeline::run() {
  if (NoWaitScope::active()) {
    fail(WEIR_STATUS_BUSY, "pipeline '{}' cannot be run by a kernel, callback or stage", name());
  }
  start(1);
  if (!virtual_time()) flow_.work(0);
  wait(WEIR_FOREVER);
}

/// In virtual time: runs the worker on this thread, or waits while another thread does. Returns
/// whether the pipeline has completed.
bool Pipeline::work_until(std::int64_t deadline_ns) {
  constexpr std::int64_t kSliceNs = 1'000'000;
  for (bool late = false; !late;) {
    if (!worked_.exchange(true, std::memory_order_acquire)) {
      flow_.work(0, deadline_ns);
      worked_.store(false, std::memory_order_release);
    }
    const std::int64_t now = sys::now_ns();
    late = now >= deadline_ns;
    if (flow_.completion.wait(std::min(deadline_ns, now + kSliceNs))) return true;
  }
  return false;
}

void Pipeline::wait(std::int64_t timeout_ns) {
  if (!flow_.groups.sealed()) {
    fail_argument("pipeline '{}' has not started: nothing to wait for", name());
  }
  if (NoWaitScope::active()) {
    fail(WEIR_STATUS_BUSY, "pipeline '{}' cannot be waited for by a kernel, callback or stage",
         name());
  }
  const std::int64_t deadline = sys::deadline_after(timeout_ns);
  if (!(virtual_time() ? work_until(deadline) : flow_.completion.wait(deadline))) {
    fail(WEIR_STATUS_TIMEOUT, "pipeline '{}' is not at its end: {}", name(), flow_.holders());
  }
  const Outcome outcome = flow_.completion.outcome();
  flow_.completion.mark_reported();
  if (!outcome.ok()) throw Error(outcome.status, outcome.message);
}

}  // namespace weir::rt
