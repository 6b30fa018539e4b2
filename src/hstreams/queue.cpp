#include "hstreams/queue.hpp"

#include <algorithm>

namespace weir::hs {

namespace {

constexpr std::size_t kMostEvents = 10'000;  // of one sync
constexpr std::size_t kMostParts = 1'000;

weir::Place make_place(const weir::Runtime& runtime, const PhysicalDomain& physical,
                       const CpuMask& mask, const std::string& name) {
  const std::vector<std::uint32_t> cores = physical.cores_of(mask);
  weir_place_options options = WEIR_PLACE_OPTIONS_INIT;
  options.name = name.c_str();
  options.cores = cores.data();
  options.core_count = cores.size();
  options.oversubscribe = true;
  weir_place* made = nullptr;
  check(weir_place_create(physical.domain, &options, &made));
  return {runtime.handle(), made};
}

weir_event sync(weir_stream* stream, std::span<const weir_event> events,
                std::span<const Operand> parts, weir_sync_scope scope) {
  weir_sync sync = WEIR_SYNC_INIT;
  sync.events = events.data();
  sync.event_count = events.size();
  sync.operands = parts.data();
  sync.operand_count = parts.size();
  sync.scope = scope;
  weir_event event;
  check(weir_stream_sync(stream, &sync, &event));
  return event;
}

weir_event copy(weir_stream* stream, const weir_endpoint& source, const weir_endpoint& target) {
  weir_transfer transfer = WEIR_TRANSFER_INIT;
  transfer.source = source;
  transfer.target = target;
  weir_event event;
  check(weir_stream_transfer(stream, &transfer, &event));
  return event;
}

}  // namespace

Queue::Queue(const weir::Runtime& runtime, const PhysicalDomain& physical, const CpuMask& mask,
             const std::string& name, int openmp)
    : physical_(physical),
      mask_(mask),
      openmp_(openmp),
      order_(runtime.buffer(1, (name + " order").c_str())),
      place_(make_place(runtime, physical, mask, name)),
      main_(place_.stream({.name = name.c_str()})) {}

weir_stream* Queue::loose() {
  if (loose_.handle() == nullptr) {
    loose_ = place_.stream({.policy = WEIR_DEPENDENCE_POLICY_NONE});
  }
  return loose_.handle();
}

/// Returns the stream for the next action, after enqueueing the barrier that the policy requires.
weir_stream* Queue::stream_for(HSTR_DEP_POLICY policy) {
  if (policy == HSTR_DEP_POLICY_NONE) return loose();
  const bool conservative = policy == HSTR_DEP_POLICY_CONSERVATIVE;
  if (conservative || conservative_) sync(main_.handle(), {}, {}, WEIR_SYNC_SCOPE_STREAM);
  conservative_ = conservative;
  return main_.handle();
}

weir_event Queue::compute(const SinkKernel& kernel, const SinkCall& call, HSTR_DEP_POLICY policy) {
  const std::lock_guard lock(mutex_);
  return kernel.enqueue(stream_for(policy), call, readwrite(order_.all()), openmp_);
}

weir_event Queue::transfer(const weir_endpoint& source, const weir_endpoint& target,
                           HSTR_DEP_POLICY policy) {
  const std::lock_guard lock(mutex_);
  return copy(stream_for(policy), source, target);
}

weir_event Queue::transfer_by(Queue& device_queue, const weir_endpoint& source,
                              const weir_endpoint& target, const Region& own, const Region& far,
                              HSTR_DEP_POLICY policy) {
  const std::lock_guard lock(mutex_);
  if (policy == HSTR_DEP_POLICY_NONE) return device_queue.transfer(source, target, policy);
  weir_stream* const stream = stream_for(policy);
  const Operand ordered = readwrite(own);
  const weir_event ready = sync(stream, {}, {&ordered, 1}, WEIR_SYNC_SCOPE_OPERANDS);
  device_queue.wait({ready}, {readwrite(far)});
  const weir_event copied = device_queue.transfer(source, target, HSTR_DEP_POLICY_BUFFERS);
  return sync(stream, {&copied, 1}, {&ordered, 1}, WEIR_SYNC_SCOPE_OPERANDS);
}

weir_event Queue::transfer_staged(Queue& device_queue, const weir_endpoint& source,
                                  const weir_endpoint& target, const weir_endpoint& stage,
                                  const Region& own, const Region& far, HSTR_DEP_POLICY policy) {
  const std::lock_guard lock(mutex_);
  const bool ordered = policy != HSTR_DEP_POLICY_NONE;
  weir_stream* const stream = stream_for(ordered ? policy : HSTR_DEP_POLICY_BUFFERS);
  const Operand part = readwrite(own);
  const bool from_here = own.buffer == source.buffer;
  const weir_event ready = from_here ? copy(stream, source, stage)
                                     : sync(stream, {}, {&part, 1}, WEIR_SYNC_SCOPE_OPERANDS);
  device_queue.wait({ready}, {readwrite(far)});
  const weir_event passed = from_here
                                ? device_queue.transfer(stage, target, HSTR_DEP_POLICY_BUFFERS)
                                : device_queue.transfer(source, stage, HSTR_DEP_POLICY_BUFFERS);
  const weir_event there = sync(stream, {&passed, 1}, {&part, 1}, WEIR_SYNC_SCOPE_OPERANDS);
  return from_here ? there : copy(stream, stage, target);
}

weir_event Queue::run(const weir::Kernel& kernel, std::span<const Operand> operands,
                      std::span<const Scalar> scalars, HSTR_DEP_POLICY policy) {
  const std::lock_guard lock(mutex_);
  weir_compute compute = WEIR_COMPUTE_INIT;
  compute.kernel = kernel.handle();
  compute.operands = operands.data();
  compute.operand_count = operands.size();
  compute.scalars = scalars.data();
  compute.scalar_count = scalars.size();
  weir_event event;
  check(weir_stream_compute(stream_for(policy), &compute, &event));
  return event;
}

weir_event Queue::barrier(std::vector<weir_event> events) {
  while (events.size() > kMostEvents) events = {join(std::move(events))};
  const std::lock_guard lock(mutex_);
  return sync(main_.handle(), events, {}, WEIR_SYNC_SCOPE_STREAM);
}

weir_event Queue::wait(std::vector<weir_event> events, const std::vector<Operand>& parts) {
  if (events.empty()) events = {mark()};
  if (events.size() > kMostEvents) events = {join(std::move(events))};
  const std::lock_guard lock(mutex_);
  for (std::size_t first = 0; first < parts.size(); first += kMostParts) {
    const std::size_t count = std::min(kMostParts, parts.size() - first);
    events = {sync(main_.handle(), events, std::span(parts).subspan(first, count),
                   WEIR_SYNC_SCOPE_OPERANDS)};
  }
  return events.front();
}

weir_event Queue::mark() {
  const std::lock_guard lock(mutex_);
  return sync(main_.handle(), {}, {}, WEIR_SYNC_SCOPE_NOTHING);
}

weir_event Queue::join(std::vector<weir_event> events) {
  const std::lock_guard lock(mutex_);
  const Operand none = readwrite(order_.all());  // the stream ignores operands
  while (events.size() > 1 || events.empty()) {
    std::vector<weir_event> joined;
    for (std::size_t first = 0; first < events.size() || joined.empty(); first += kMostEvents) {
      const std::size_t count = std::min(kMostEvents, events.size() - first);
      joined.push_back(sync(loose(), std::span(events).subspan(first, count), {&none, 1},
                            WEIR_SYNC_SCOPE_OPERANDS));
    }
    events = std::move(joined);
  }
  return events.front();
}

Queue& DeviceQueues::of(const PhysicalDomain& device) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Queue>& queue = queues_[device.id];
  if (queue == nullptr) {
    queue = std::make_unique<Queue>(runtime_, device, mask_range(first_of(device.max), 1),
                                    fmt::format("courier {}", device.id), 0);
  }
  return *queue;
}

void DeviceQueues::clear_failures(std::int64_t timeout_ns) {
  std::vector<const Queue*> queues;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [device, queue] : queues_) {
      if (queue != nullptr) queues.push_back(queue.get());  // null: creating it has failed
    }
  }
  for (const Queue* queue : queues) static_cast<void>(queue->synchronize(timeout_ns));
}

}  // namespace weir::hs
