#include <algorithm>
#include <bit>
#include <chrono>

#include <hstreams/hStreams_common.h>

#include "hstreams/error.hpp"
#include "hstreams/session.hpp"

namespace weir::hs {

namespace {

HSTR_EVENT export_event(const weir_event& event) { return std::bit_cast<HSTR_EVENT>(event); }

/// Whether two different ranges of one instance have bytes in common.
bool overlap(const weir_region& a, const weir_region& b) {
  return a.offset != b.offset && a.offset < b.offset + b.extent[0] &&
         b.offset < a.offset + a.extent[0];
}

void check_addresses(std::int32_t count, void* const* addresses) {
  if ((count > 0) != (addresses != nullptr)) {
    fail(HSTR_RESULT_INCONSISTENT_ARGS, "{} addresses, and their list is {}", count,
         addresses ? "given" : "NULL");
  }
}

}  // namespace

HSTR_EVENT Session::compute(HSTR_LOG_STR id, const ComputeRequest& request) {
  const std::shared_lock lock(mutex_);
  const LogicalStream& stream = domains_.stream(id);
  SinkCall call{request.name, nullptr,        request.scalars,     {},
                {},           request.result, request.result_bytes};
  for (const std::uint64_t address : request.addresses) {
    const auto [buffer, offset] = buffers_.find(reinterpret_cast<const void*>(address));
    const Instance& instance = buffer->instance_in(stream.domain);
    call.operands.push_back(readwrite(instance.memory.all()));
    call.offsets.push_back(instance.pad + offset);
  }
  call.function = libraries_.find(stream.queue->physical().is_host(), request.name);
  try {
    return export_event(stream.queue->compute(sink_, call, configuration_.policy()));
  } catch (const weir::Error& error) {
    if (error.status() != WEIR_STATUS_UNSUPPORTED) throw;
    fail(HSTR_RESULT_BAD_NAME, "'{}' is code of the host: {}", request.name, error.what());
  }
}

HSTR_EVENT Session::transfer(HSTR_LOG_STR id, void* write, void* read, std::uint64_t bytes,
                             HSTR_XFER_DIRECTION direction) {
  HSTR_LOG_DOM sink;
  {
    const std::shared_lock lock(mutex_);
    sink = domains_.stream(id).domain;
  }
  if (direction != HSTR_SRC_TO_SINK && direction != HSTR_SINK_TO_SRC) {
    fail(HSTR_RESULT_OUT_OF_RANGE, "there is no direction {}", direction);
  }
  const bool up = direction == HSTR_SRC_TO_SINK;
  return transfer(
      id, {write, read, bytes, up ? sink : HSTR_SRC_LOG_DOMAIN, up ? HSTR_SRC_LOG_DOMAIN : sink});
}

HSTR_EVENT Session::transfer(HSTR_LOG_STR id, const TransferRequest& request) {
  const std::shared_lock lock(mutex_);
  LogicalStream& stream = domains_.stream(id);
  domains_.find(request.target, HSTR_RESULT_NOT_FOUND);
  domains_.find(request.source, HSTR_RESULT_NOT_FOUND);
  if (request.write == nullptr || request.read == nullptr) {
    fail(HSTR_RESULT_NULL_PTR, "an address of the transfer is NULL");
  }
  if (request.bytes == 0) fail(HSTR_RESULT_OUT_OF_RANGE, "a transfer has no bytes");
  if (stream.domain != request.target && stream.domain != request.source) {
    fail(HSTR_RESULT_OUT_OF_RANGE, "stream {} is in logical domain {}: neither end of the transfer",
         id, stream.domain);
  }
  if (request.target == request.source) {
    fail(HSTR_RESULT_OUT_OF_RANGE, "both ends of the transfer are logical domain {}",
         request.target);
  }
  const End target = end_of(request.write, request.bytes, request.target);
  const End source = end_of(request.read, request.bytes, request.source);
  if (target.instance == source.instance && overlap(target.region.region, source.region.region)) {
    fail(HSTR_RESULT_OVERLAPPING_RESOURCES, "the ends of the transfer overlap in one instance");
  }
  return export_event(copy(stream, id, source, target));
}

Session::End Session::end_of(const void* address, std::uint64_t bytes, HSTR_LOG_DOM domain) {
  const auto [buffer, offset] = buffers_.find(address);
  if (bytes > buffer->bytes - offset) {
    fail(HSTR_RESULT_OUT_OF_RANGE, "{} bytes at {} reach beyond the buffer of {} bytes at {}",
         bytes, fmt::ptr(address), buffer->bytes, fmt::ptr(buffer->base));
  }
  const Instance& instance = buffer->instance_in(domain);
  return {domain, &instance, instance.range(offset, bytes)};
}

weir_event Session::copy(LogicalStream& stream, HSTR_LOG_STR id, const End& source,
                         const End& target) {
  Queue& queue = *stream.queue;
  const HSTR_DEP_POLICY policy = configuration_.policy();
  if (checksums_.wanted() && target.domain == HSTR_SRC_LOG_DOMAIN) {
    const Scalar numbers[] = {id, stream.downloads++};
    inspect(queue, source.region, numbers);
  }
  const HSTR_PHYS_DOM device = std::max(source.instance->physical, target.instance->physical);
  const bool from_here = source.domain == stream.domain;
  if (std::min(source.instance->physical, target.instance->physical) != HSTR_SRC_PHYS_DOMAIN) {
    return copy_between_devices(queue, source, target, from_here);
  }
  if (!queue.physical().is_host() || device == HSTR_SRC_PHYS_DOMAIN) {
    return queue.transfer(source.endpoint(), target.endpoint(), policy);
  }
  const End &own = from_here ? source : target, &far = from_here ? target : source;
  return queue.transfer_by(device_queues_.of(physical_.at(device)), source.endpoint(),
                           target.endpoint(), own.region, far.region, policy);
}

/// Copies directly where weir supports it, otherwise through host memory.
weir_event Session::copy_between_devices(Queue& queue, const End& source, const End& target,
                                         bool from_here) {
  const HSTR_DEP_POLICY policy = configuration_.policy();
  try {
    return queue.transfer(source.endpoint(), target.endpoint(), policy);
  } catch (const weir::Error& error) {
    if (error.status() != WEIR_STATUS_UNSUPPORTED) throw;
  }
  const End &own = from_here ? source : target, &far = from_here ? target : source;
  Queue& other = device_queues_.of(physical_.at(far.instance->physical));
  const auto enqueue = [&](const weir_endpoint& stage) {
    return queue.transfer_staged(other, source.endpoint(), target.endpoint(), stage, own.region,
                                 far.region, policy);
  };
  return staging_.use(runtime_, source.region.region.extent[0], enqueue);
}

/// Enqueues a checksum, except in domains that do not run host code.
void Session::inspect(Queue& queue, const Region& payload, std::span<const Scalar> numbers) const {
  try {
    const Operand operand = read(payload);
    queue.run(checksums_.kernel(), {&operand, 1}, numbers, configuration_.policy());
  } catch (const weir::Error& error) {
    if (error.status() != WEIR_STATUS_UNSUPPORTED) throw;
  }
}

/// Returns the events that weir knows; all others are complete.
std::vector<weir_event> Session::known(std::span<const HSTR_EVENT> events) const {
  std::vector<weir_event> found;
  for (const HSTR_EVENT& event : events) {
    const auto candidate = std::bit_cast<weir_event>(event);
    weir_event_info info = WEIR_EVENT_INFO_INIT;
    if (weir_event_get_info(runtime_.handle(), &candidate, &info) == WEIR_STATUS_OK) {
      found.push_back(candidate);
    }
  }
  return found;
}

HSTR_EVENT Session::wait_in_stream(HSTR_LOG_STR id, std::span<const HSTR_EVENT> events,
                                   std::int32_t count, void* const* addresses) {
  check_addresses(count, addresses);
  const std::shared_lock lock(mutex_);
  const LogicalStream& stream = domains_.stream(id);
  std::vector<Operand> parts;
  for (std::int32_t i = 0; i < count; ++i) {
    const Buffer& buffer = *buffers_.find(addresses[i]).buffer;
    parts.push_back(readwrite(buffer.instance_in(stream.domain).memory.all()));
  }
  Queue& queue = *stream.queue;
  const HSTR_DEP_POLICY policy = configuration_.policy();
  if (policy == HSTR_DEP_POLICY_NONE) return {};
  std::vector<weir_event> awaited = known(events);
  if (count < 0) {
    const bool mark = count == HSTR_WAIT_NONE && events.empty();
    return export_event(mark ? queue.mark() : queue.join(std::move(awaited)));
  }
  if (count == HSTR_WAIT_CONTROL || policy == HSTR_DEP_POLICY_CONSERVATIVE) {
    return export_event(queue.barrier(std::move(awaited)));
  }
  if (!events.empty() && awaited.empty()) awaited.push_back(weir_event WEIR_EVENT_INIT);
  return export_event(queue.wait(std::move(awaited), parts));
}

void Session::synchronize(HSTR_LOG_STR id) {
  std::shared_ptr<Queue> queue;
  {
    const std::shared_lock lock(mutex_);
    queue = domains_.stream(id).queue;
  }
  if (configuration_.policy() == HSTR_DEP_POLICY_NONE) return;
  try {
    check(queue->synchronize(configuration_.timeout_ns()));
  } catch (const weir::Error& error) {
    if (error.status() != WEIR_STATUS_TIMEOUT)
      device_queues_.clear_failures(configuration_.timeout_ns());
    throw;
  }
}

void Session::synchronize_all() {
  using Clock = std::chrono::steady_clock;
  if (configuration_.policy() == HSTR_DEP_POLICY_NONE) return;
  const std::int64_t timeout = configuration_.timeout_ns();
  const auto deadline = Clock::now() + std::chrono::nanoseconds(timeout);
  std::optional<weir::Error> first;
  bool failed = false;
  std::vector<std::shared_ptr<Queue>> queues;
  {
    const std::shared_lock lock(mutex_);
    queues = domains_.queues();
  }
  for (const std::shared_ptr<Queue>& queue : queues) {
    const std::int64_t left = std::max<std::int64_t>((deadline - Clock::now()).count(), 0);
    try {
      check(queue->synchronize(timeout < 0 ? WEIR_FOREVER : left));
    } catch (const weir::Error& error) {
      if (!first) first = error;
      failed = failed || error.status() != WEIR_STATUS_TIMEOUT;
    }
  }
  if (!first) return;
  if (failed) device_queues_.clear_failures(timeout);
  throw weir::Error(*first);
}

void Session::wait(std::span<const HSTR_EVENT> events, bool all, std::int64_t timeout_ns) {
  const std::vector<weir_event> awaited = known(events);
  if (!all && awaited.size() < events.size()) return;
  check(weir_event_wait(runtime_.handle(), awaited.data(), awaited.size(),
                        all ? WEIR_WAIT_MODE_ALL : WEIR_WAIT_MODE_ANY, timeout_ns, nullptr));
}

void Session::wait_for(const weir_event& event) const {
  check(weir_event_wait(runtime_.handle(), &event, 1, WEIR_WAIT_MODE_ALL, WEIR_FOREVER, nullptr));
}

bool Session::complete(const HSTR_EVENT& event) const {
  const auto candidate = std::bit_cast<weir_event>(event);
  weir_event_info info = WEIR_EVENT_INFO_INIT;
  const weir_status status = weir_event_get_info(runtime_.handle(), &candidate, &info);
  return status != WEIR_STATUS_OK || info.complete;
}

}  // namespace weir::hs
