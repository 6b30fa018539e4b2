#include <algorithm>

#include <hstreams/hStreams_common.h>

#include "hstreams/error.hpp"
#include "hstreams/session.hpp"

namespace weir::hs {

namespace {

void check_range(const void* base, std::uint64_t bytes, std::int64_t count) {
  if (bytes == 0) fail(HSTR_RESULT_OUT_OF_RANGE, "a buffer has no bytes");
  if (count < -1) fail(HSTR_RESULT_OUT_OF_RANGE, "{} logical domains", count);
  if (bytes > UINTPTR_MAX - reinterpret_cast<std::uintptr_t>(base)) {
    fail(HSTR_RESULT_OUT_OF_RANGE, "{} bytes at {} reach beyond all memory", bytes, fmt::ptr(base));
  }
  if (base == nullptr) fail(HSTR_RESULT_NULL_PTR, "a buffer at NULL");
}

/// Refuses the program's domain in a list.
void check_no_source(std::span<const HSTR_LOG_DOM> domains) {
  if (std::find(domains.begin(), domains.end(), HSTR_SRC_LOG_DOMAIN) != domains.end()) {
    fail(HSTR_RESULT_DOMAIN_OUT_OF_RANGE, "logical domain 0 is always the program's memory");
  }
}

}  // namespace

/// Refuses unknown and repeated domains.
void Session::check_new_instances(std::span<const HSTR_LOG_DOM> domains) const {
  for (const HSTR_LOG_DOM domain : domains) domains_.find(domain, HSTR_RESULT_DOMAIN_OUT_OF_RANGE);
  std::vector<HSTR_LOG_DOM> sorted(domains.begin(), domains.end());
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) {
    fail(HSTR_RESULT_INCONSISTENT_ARGS, "logical domain {} is named twice", *twice);
  }
}

void Session::instantiate(Buffer& buffer, HSTR_LOG_DOM domain) {
  const PhysicalDomain& there = *domains_.find(domain, HSTR_RESULT_NOT_FOUND).physical;
  if (buffer.has(HSTR_BUF_PROP_ALIASED)) {
    for (const auto& [id, instance] : buffer.instances) {
      if (instance->physical != there.id) continue;
      buffer.instances.emplace(domain, instance);
      return;
    }
  }
  std::shared_ptr<Instance> made = make_instance(runtime_, there, buffer.base, buffer.bytes,
                                                 buffer.props, environment_.huge_from);
  materialize(*made, there, buffer.props);
  buffer.instances.emplace(domain, std::move(made));
}

/// Allocates the memory of an instance on a device now, if there is room, so that the first
/// transfer does not pay for it. One thread accesses it here; if the program asks for memory near
/// the cores that use it, their first access allocates it instead.
void Session::materialize(const Instance& instance, const PhysicalDomain& there,
                          const HSTR_BUFFER_PROPS& props) {
  if (there.is_host() || (props.flags & HSTR_BUF_PROP_AFFINITIZED) != 0) return;
  const Region all = instance.memory.all();
  weir_domain_info info = WEIR_DOMAIN_INFO_INIT;
  check(weir_domain_get_info(there.domain, &info));
  if (info.memory_used > info.memory_bytes ||
      all.region.extent[0] > info.memory_bytes - info.memory_used) {
    return;
  }
  // By a kernel, or by a transfer if the device does not run host code.
  Queue& queue = device_queues_.of(there);
  const Operand whole = write(all);
  const Region first = instance.memory.range(0, 1);
  try {
    return wait_for(queue.run(setup_.prefault(), {&whole, 1}, {}, HSTR_DEP_POLICY_BUFFERS));
  } catch (const weir::Error& error) {
    if (error.status() != WEIR_STATUS_UNSUPPORTED) throw;
  }
  wait_for(queue.transfer({nullptr, first.buffer, first.region},
                          {instance.domain, first.buffer, first.region}, HSTR_DEP_POLICY_BUFFERS));
}

void Session::allocate(void* base, std::uint64_t bytes, const HSTR_BUFFER_PROPS& props,
                       std::int64_t count, const HSTR_LOG_DOM* domains) {
  if (props.mem_type < HSTR_MEM_TYPE_ANY || props.mem_type >= HSTR_MEM_TYPE_SIZE) {
    fail(HSTR_RESULT_NOT_IMPLEMENTED, "there is no memory of type {}", props.mem_type);
  }
  check_range(base, bytes, count);
  if ((count > 0) != (domains != nullptr)) {
    fail(HSTR_RESULT_INCONSISTENT_ARGS, "{} logical domains, and their list is {}", count,
         domains ? "given" : "NULL");
  }
  std::vector<HSTR_LOG_DOM> wanted(domains, domains + std::max<std::int64_t>(count, 0));
  check_no_source(wanted);
  const std::unique_lock lock(mutex_);
  check_new_instances(wanted);
  buffers_.check_free(static_cast<std::byte*>(base), bytes);
  if (count == -1) wanted = domains_.ids();
  Buffer buffer{static_cast<std::byte*>(base), bytes, props, {}};
  buffer.instances.emplace(HSTR_SRC_LOG_DOMAIN, wrap_instance(runtime_, base, bytes));
  for (const HSTR_LOG_DOM domain : wanted) instantiate(buffer, domain);
  buffers_.add(std::move(buffer));
}

void Session::deallocate(const void* address) {
  Buffer ended;
  const std::unique_lock lock(mutex_);
  ended = buffers_.take(use_buffer(address));
}

void Session::add_instances(const void* address, std::span<const HSTR_LOG_DOM> domains) {
  check_no_source(domains);
  const std::unique_lock lock(mutex_);
  Buffer& buffer = use_buffer(address);
  check_new_instances(domains);
  for (const HSTR_LOG_DOM domain : domains) {
    if (buffer.instances.contains(domain)) {
      fail(HSTR_RESULT_ALREADY_FOUND, "the buffer has an instance in logical domain {}", domain);
    }
  }
  const auto before = buffer.instances;
  try {
    for (const HSTR_LOG_DOM domain : domains) instantiate(buffer, domain);
  } catch (...) {
    buffer.instances = before;
    throw;
  }
}

void Session::remove_instances(const void* address, const std::span<const HSTR_LOG_DOM>* domains) {
  std::map<HSTR_LOG_DOM, std::shared_ptr<Instance>> ended;
  if (domains != nullptr) check_no_source(*domains);
  const std::unique_lock lock(mutex_);
  Buffer& buffer = use_buffer(address);
  if (domains == nullptr) {
    ended.swap(buffer.instances);
    return;
  }
  check_new_instances(*domains);
  for (const HSTR_LOG_DOM domain : *domains) buffer.instance_in(domain);
  for (const HSTR_LOG_DOM domain : *domains) ended.insert(buffer.instances.extract(domain));
}

std::vector<HSTR_LOG_DOM> Session::instances_of(const void* address) {
  const std::shared_lock lock(mutex_);
  std::vector<HSTR_LOG_DOM> found;
  for (const auto& [id, instance] : use_buffer(address).instances) {
    if (id != HSTR_SRC_LOG_DOMAIN) found.push_back(id);
  }
  return found;
}

HSTR_BUFFER_PROPS Session::props_of(const void* address) {
  const std::shared_lock lock(mutex_);
  return use_buffer(address).props;
}

}  // namespace weir::hs
