#include "graph/graph.hpp"

#include <algorithm>
#include <bit>
#include <exception>
#include <utility>

#include "backend/invoke.hpp"
#include "backend/team.hpp"
#include "core/buffer.hpp"
#include "stream/context.hpp"
#include "stream/domain.hpp"
#include "stream/waiting.hpp"

namespace weir::rt {

namespace {

constexpr unsigned kTypeBits = 8;  ///< of weir_scalar::type; above them is a parameter's index
constexpr std::uint32_t kMostParameters = 200;
constexpr std::size_t kManyLaunches = 64;

Graph& graph_of(const weir_call& launch) noexcept {
  return *std::bit_cast<Graph*>(launch.scalars[0].value.u64);
}

/// Throws Error unless the calls of a stream can be repeated on the cores of its place.
void check_place(const Stream& stream) {
  const DeviceInfo& device = stream.domain().info();
  if (device.backend == "host" || device.backend == "sim") return;
  fail(WEIR_STATUS_UNSUPPORTED,
       "stream '{}' of domain '{}' (backend {}) cannot be recorded: graphs run on backends host "
       "and sim",
       stream.name(), stream.domain().name(), device.backend);
}

}  // namespace

weir_kernel& Graph::add_kernel(Context& context) {
  weir_implementation code = {"host",
                              [](const weir_call* launch) {
                                Outcome outcome = graph_of(*launch).run(*launch);
                                if (!outcome.ok()) set_call_failure(std::move(outcome.message));
                                return outcome.status;
                              },
                              nullptr};
  weir_kernel_options options = WEIR_KERNEL_OPTIONS_INIT;
  options.name = kKernel;
  options.shape = WEIR_KERNEL_SHAPE_PARALLEL;
  options.implementations = &code;
  options.implementation_count = 1;
  options.cost = [](const weir_call* launch) { return graph_of(*launch).cost(*launch); };
  return context.add_kernel(options);
}

Graph::Graph(std::string name, Target target, const weir_kernel& kernel, bool record_only)
    : name_(std::move(name)),
      target_(std::move(target)),
      context_(target_.stream().context()),
      kernel_(kernel),
      runs_(!record_only) {
  Stream& stream = target_.stream();
  check_place(stream);
  if (stream.begin_recording(*this)) return;
  fail(WEIR_STATUS_BUSY, "stream '{}' is being recorded already: end that graph first",
       stream.name());
}

Graph::~Graph() {
  detach();
  const sys::Lock lock(mutex_);
  try {
    wait_for_events(context_, launches_, WEIR_WAIT_MODE_ALL, -1);
  } catch (...) {  // of a destroyed stream: nothing runs
  }
}

/// Ends the recording, unless the stream is destroyed.
void Graph::detach() noexcept {
  sys::Lock lock(mutex_);
  if (!std::exchange(recording_, false)) return;
  lock.unlock();
  try {
    target_.stream().end_recording();
  } catch (const Error&) {  // with the stream
  }
}

// ---- Recording ----------------------------------------------------------------------------------

void Graph::take_parameters(std::span<weir_scalar> scalars) {
  next_parameters_.assign(scalars.size(), 0);
  for (std::size_t i = 0; i < scalars.size(); ++i) {
    const auto type = static_cast<unsigned>(scalars[i].type);
    const std::uint32_t index = type >> kTypeBits;
    if (index > kMostParameters) {
      fail_argument("parameter {} of graph '{}' is above the last possible one, {}", index - 1,
                    name_, kMostParameters - 1);
    }
    next_parameters_[i] = index;
    scalars[i].type = static_cast<weir_scalar_type>(type & ((1u << kTypeBits) - 1));
  }
}

bool Graph::record(const Action& action) {
  const auto refuse = [&](const char* what) {
    fail(WEIR_STATUS_UNSUPPORTED, "{} cannot be recorded in graph '{}'", what, name_);
  };
  switch (action.kind) {
    case ActionKind::compute:
      if (action.code->kernel == &kernel_) refuse("the launch of a graph");
      list_.add(action, next_parameters_);
      return runs_;
    case ActionKind::external: refuse("an external action"); return false;
    case ActionKind::transfer:
      if (!action.traits.elided) refuse("a transfer that copies (use the kernel mem.copy)");
      return true;
    default:
      if (action.event_count > 0) refuse("a wait for events");
      return true;
  }
}

void Graph::end() {
  {
    const sys::Lock lock(mutex_);
    if (!recording_) fail_argument("the recording of graph '{}' has ended already", name_);
  }
  target_.stream();
  detach();
  if (list_.calls().empty()) fail_argument("graph '{}' has recorded no kernel call", name_);
  dependences_ = std::make_unique<const Dependences>(list_);
}

// ---- Launches -----------------------------------------------------------------------------------

/// Returns the buffers of a launch in the order of the list.
std::vector<weir_buffer*> Graph::bind(std::span<const weir_binding> bindings) const {
  std::vector<weir_buffer*> bound;
  for (const CallList::UsedBuffer& used : list_.buffers()) {
    weir_buffer* const recorded = static_cast<weir_buffer*>(used.buffer);
    const auto found = std::ranges::find(bindings, recorded, &weir_binding::recorded);
    if (found != bindings.end() && weir_buffer::check(found->replacement).bytes() != used.bytes) {
      fail_argument("buffer '{}' of {} bytes cannot replace one of {} bytes in graph '{}'",
                    found->replacement->name(), found->replacement->bytes(), used.bytes, name_);
    }
    if (found == bindings.end() && weir_buffer::check(recorded).id() != used.id) {
      fail_argument("a buffer of graph '{}' was destroyed: replace it at the launch", name_);
    }
    bound.push_back(found != bindings.end() ? found->replacement : recorded);
  }
  for (const weir_binding& binding : bindings) {
    const auto same = [&](const auto& used) { return used.buffer == binding.recorded; };
    if (std::ranges::any_of(list_.buffers(), same)) continue;
    fail_argument("a binding names a buffer that graph '{}' does not use", name_);
  }
  std::vector<weir_buffer*> sorted = bound;
  std::ranges::sort(sorted);
  const auto twice = std::ranges::adjacent_find(sorted);
  if (twice != sorted.end()) {
    fail_argument("buffer '{}' would stand for two buffers of graph '{}'", (*twice)->name(), name_);
  }
  return bound;
}

void Graph::check_parameters(std::span<const weir_scalar> given) const {
  if (given.empty()) return;
  for (const CallList::Parameter& parameter : list_.parameters()) {
    if (parameter.index >= given.size()) {
      fail_argument("graph '{}' has parameter {}, but the launch gives {} parameters", name_,
                    parameter.index, given.size());
    }
    if (given[parameter.index].type != list_.scalars()[parameter.scalar].type) {
      fail_argument("parameter {} of graph '{}' has another type than it was recorded with",
                    parameter.index, name_);
    }
  }
}

weir_event Graph::launch(const weir_graph_launch_options& options) {
  if ((options.bindings == nullptr && options.binding_count > 0) ||
      (options.parameters == nullptr && options.parameter_count > 0)) {
    fail_argument("{} bindings or {} parameters of graph '{}' are given as NULL",
                  options.binding_count, options.parameter_count, name_);
  }
  const std::span bindings(options.bindings, options.binding_count);
  const std::span parameters(options.parameters, options.parameter_count);
  if (dependences_ == nullptr) {
    fail_argument("graph '{}' cannot be launched: its recording has not ended with calls", name_);
  }
  if (parameters.size() > kMostParameters) {
    fail_argument("{} parameters are too many: at most {}", parameters.size(), kMostParameters);
  }
  check_parameters(parameters);
  std::vector<weir_operand> operands;
  const std::vector<weir_buffer*> buffers = bind(bindings);
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const CallList::UsedBuffer& used = list_.buffers()[i];
    operands.push_back({buffers[i], weir_region_range(used.begin, used.end - used.begin),
                        used.written ? WEIR_ACCESS_READ_WRITE : WEIR_ACCESS_READ});
  }
  std::vector<weir_scalar> scalars{weir_scalar_u64(std::bit_cast<std::uint64_t>(this))};
  scalars.insert(scalars.end(), parameters.begin(), parameters.end());
  weir_compute compute = WEIR_COMPUTE_INIT;
  compute.kernel = &kernel_;
  compute.operands = operands.data();
  compute.operand_count = operands.size();
  compute.scalars = scalars.data();
  compute.scalar_count = scalars.size();
  compute.name = name_.c_str();
  {
    const sys::Lock lock(mutex_);
    if (launches_.size() >= kManyLaunches) {
      std::erase_if(launches_, [this](const weir_event& event) {
        return context_.slot_of(event).event.is_complete(event.opaque[1]);
      });
    }
    launches_.reserve(launches_.size() + ++enqueuing_);
  }
  weir_event event = WEIR_EVENT_INIT;
  std::exception_ptr refused;
  try {
    event = target_.enqueue(compute);
  } catch (...) {
    refused = std::current_exception();
  }
  const sys::Lock lock(mutex_);
  --enqueuing_;
  if (refused) std::rethrow_exception(refused);
  launches_.push_back(event);
  ++launched_;
  return event;
}

Outcome Graph::run(const weir_call& launch) {
  const std::size_t seats = launch.team != nullptr ? launch.team->size() : 1;
  const sys::Lock lock(run_mutex_);
  if (run_ == nullptr || run_->schedule().seats() != seats) {
    run_ = std::make_unique<LaunchRun>(list_, *dependences_, seats);
    seats_.store(seats);
    waits_.store(run_->schedule().wait_count());
  }
  return run_->run(launch, {launch.scalars + 1, launch.scalar_count - 1});
}

weir_cost Graph::cost(const weir_call& launch) const {
  const std::span parameters(launch.scalars + 1, launch.scalar_count - 1);
  std::vector<weir_scalar> scalars = list_.scalars();
  for (const CallList::Parameter& parameter : list_.parameters()) {
    if (!parameters.empty()) scalars[parameter.scalar] = parameters[parameter.index];
  }
  std::vector<weir_view> views(list_.most_uses());
  weir_cost sum{0, 0};
  for (const CallList::Call& call : list_.calls()) {
    const weir_cost_function of = call.code->kernel->cost();
    if (of == nullptr) continue;
    std::ranges::transform(list_.uses_of(call), views.begin(),
                           [&](const CallList::Use& use) { return list_.view_of(use); });
    weir_call arguments{};
    arguments.scalars = scalars.data() + call.first_scalar;
    arguments.scalar_count = call.scalar_count;
    arguments.operands = views.data();
    arguments.operand_count = call.use_count;
    arguments.name = call.name;
    arguments.payload = call.code->payload;
    const weir_cost cost = of(&arguments);
    sum.flops += cost.flops;
    sum.bytes += cost.bytes;
  }
  return sum;
}

weir_graph_info Graph::info() const {
  weir_graph_info info = WEIR_GRAPH_INFO_INIT;
  info.name = name_.c_str();
  const sys::Lock lock(mutex_);
  info.recording = recording_;
  info.launches = launched_;
  if (dependences_ == nullptr) return info;
  info.calls = list_.calls().size();
  info.buffers = list_.buffers().size();
  for (const CallList::Parameter& parameter : list_.parameters()) {
    info.parameters = std::max<std::size_t>(info.parameters, parameter.index + 1);
  }
  info.dependences = dependences_->count();
  info.cores = seats_.load();
  info.waits = waits_.load();
  return info;
}

}  // namespace weir::rt
