// Buffers of a runtime, and the device memory that actions use.
#include <bit>
#include <utility>

#include <fmt/format.h>

#include "base/log.hpp"
#include "base/thread_role.hpp"
#include "runtime/runtime_pins.hpp"
#include "runtime/waiting.hpp"

namespace weir::rt {

// ---- Buffers -----------------------------------------------------------------------------------

weir_buffer* Runtime::create_buffer(std::size_t bytes, const weir_buffer_options& options) {
  const std::size_t alignment = options.alignment ? options.alignment : 64;
  if (bytes == 0) fail_argument("a buffer of 0 bytes cannot be created");
  if (!std::has_single_bit(alignment)) {
    fail_argument("alignment {} is not a power of two", alignment);
  }
  HostAllocation memory(bytes, alignment, options.kind, options.strict, machine_.fast_nodes);
  void* const address = memory.address();
  return add_buffer(address, bytes, std::move(memory), options);
}

weir_buffer* Runtime::wrap_buffer(void* address, std::size_t bytes,
                                  const weir_buffer_options& options) {
  const std::size_t alignment = options.alignment ? options.alignment : 8;
  if (address == nullptr) fail_argument("the memory to wrap is NULL");
  if (bytes == 0) fail_argument("0 bytes at {} cannot be wrapped", fmt::ptr(address));
  if (!std::has_single_bit(alignment)) {
    fail_argument("alignment {} is not a power of two", alignment);
  }
  if (reinterpret_cast<std::uintptr_t>(address) % alignment != 0) {
    fail_argument(
        "address {} of buffer '{}' is not a multiple of {}: align the memory, or set the option "
        "alignment to what its elements need",
        fmt::ptr(address), options.name ? options.name : "", alignment);
  }
  return add_buffer(address, bytes, {}, options);
}

weir_buffer* Runtime::adopt_buffer(Domain& domain, void* address, void* host, std::size_t bytes,
                                   const weir_buffer_options& options) {
  if (address == nullptr) fail_argument("the memory to adopt is NULL");
  if (bytes == 0) fail_argument("0 bytes at {} cannot be adopted", fmt::ptr(address));
  if (bytes > UINTPTR_MAX - reinterpret_cast<std::uintptr_t>(address)) {
    fail_argument("{} bytes at {} reach beyond the end of all memory", bytes, fmt::ptr(address));
  }
  if (domain.info().aliases_host && !options.no_alias) {
    if (host == nullptr || host == address) return wrap_buffer(address, bytes, options);
    fail_argument(
        "domain '{}' shares the memory of the host: {} and {} cannot both be the buffer's there; "
        "set the option no_alias, or give one",
        domain.name(), fmt::ptr(address), fmt::ptr(host));
  }
  weir_buffer* const buffer =
      host == nullptr ? create_buffer(bytes, options) : wrap_buffer(host, bytes, options);
  try {
    domain.residency().adopt(*buffer, address);
  } catch (...) {
    free_buffer(*buffer);
    throw;
  }
  return buffer;
}

weir_buffer* Runtime::add_buffer(void* address, std::size_t bytes, HostAllocation memory,
                                 const weir_buffer_options& options) {
  auto* const start = static_cast<std::byte*>(address);
  if (bytes > UINTPTR_MAX - reinterpret_cast<std::uintptr_t>(address)) {
    fail_argument("buffer '{}' ({} bytes at {}) reaches beyond the end of all memory",
                  options.name ? options.name : "", bytes, fmt::ptr(address));
  }
  sys::Lock lock(mutex_);
  const std::uint64_t id = ++buffers_made_;
  std::string name = options.name ? options.name : fmt::format("buffer {}", id);
  const auto other = buffers_.upper_bound(start);
  if (other != buffers_.end() && other->second.buffer->host_address() < start + bytes) {
    const Buffer& there = *other->second.buffer;
    fail_argument("buffer '{}' ({} bytes at {}) overlaps buffer '{}' ({} bytes at {})", name, bytes,
                  fmt::ptr(address), there.name(), there.bytes(), fmt::ptr(there.host_address()));
  }
  Owned<weir_buffer> buffer(
      new weir_buffer(this, id, std::move(name), address, bytes, !options.no_alias));
  weir_buffer* const handle = buffer.get();
  buffers_.emplace(start + bytes, OwnedBuffer{std::move(buffer), std::move(memory)});
  lock.unlock();
  if (options.prefault) {
    for (std::size_t at = 0; at < bytes; at += 4096) {
      auto* const byte = reinterpret_cast<volatile std::byte*>(start + at);
      *byte = *byte;
    }
  }
  if (options.kind == WEIR_MEMORY_KIND_PINNED) lock_host_memory(*handle);
  return handle;
}

/// One device page-locks the memory for all devices of its kind.
void Runtime::lock_host_memory(const weir_buffer& buffer) noexcept {
  for (const Owned<weir_domain>& domain : domains_) {
    Device& device = domain->device();
    if (!device.pin_host(buffer.host_address(), buffer.bytes())) continue;
    const sys::Lock lock(mutex_);
    buffers_.find(buffer.host_address() + buffer.bytes())->second.locker = &device;
    return;
  }
}

void Runtime::unlock_host_memory(const OwnedBuffer& owned) noexcept {
  if (owned.locker != nullptr) owned.locker->unpin_host(owned.buffer->host_address());
}

Owned<weir_buffer> Runtime::make_device_buffer(std::size_t bytes) {
  sys::Lock lock(mutex_);
  const std::uint64_t id = ++buffers_made_;
  return Owned<weir_buffer>(
      new weir_buffer(this, id, fmt::format("slot {}", id), nullptr, bytes, false));
}

void Runtime::destroy_buffer(weir_buffer* buffer) noexcept {
  if (destroyed_elsewhere(buffer, &Runtime::destroy_buffer)) return;
  try {
    const PinnedQueues queues(*this);
    for (weir_queue* queue : queues.list()) queue->release(*buffer);
    const PinnedStreams all(*this);
    std::vector<weir_event> ends;
    for (weir_stream* stream : all.list()) {
      if (buffer->maybe_used_by(stream->serial())) ends.push_back(stream->mark());
    }
    wait_for_events(*this, ends, WEIR_WAIT_MODE_ALL, WEIR_FOREVER);
    for (const weir_event& end : ends) failures_.remove(end.opaque[1]);
  } catch (...) {
    wait_for_users(*buffer);
  }
  free_buffer(*buffer);
}

void Runtime::free_buffer(weir_buffer& buffer) noexcept {
  forget_instances_of(buffer);
  sys::Lock lock(mutex_);
  const auto found = buffers_.find(buffer.host_address() + buffer.bytes());
  if (found == buffers_.end() || found->second.buffer.get() != &buffer) return;
  const OwnedBuffer dead = std::move(found->second);
  buffers_.erase(found);
  lock.unlock();
  unlock_host_memory(dead);
}

weir_memory_kind Runtime::kind_of(const weir_buffer& buffer) const {
  sys::Lock lock(mutex_);
  const OwnedBuffer& owned = buffers_.at(buffer.host_address() + buffer.bytes());
  return owned.locker != nullptr ? WEIR_MEMORY_KIND_PINNED : owned.memory.kind();
}

weir_buffer* Runtime::find_buffer(const void* address, std::size_t& out_offset) const {
  const auto* const byte = static_cast<const std::byte*>(address);
  sys::Lock lock(mutex_);
  const auto found = buffers_.upper_bound(byte);
  if (found == buffers_.end() || byte < found->second.buffer->host_address()) {
    fail(WEIR_STATUS_NOT_FOUND, "no buffer holds address {}", fmt::ptr(address));
  }
  out_offset = static_cast<std::size_t>(byte - found->second.buffer->host_address());
  return found->second.buffer.get();
}

// ---- Memory of domains -------------------------------------------------------------------------

Residency::Grant Runtime::acquire_memory(Action& action, Outcome& why) noexcept {
  std::uint64_t memories = 0;
  for (const Operand& operand : action.operands()) memories |= std::uint64_t{1} << operand.memory;
  memories &= ~std::uint64_t{1};
  for (std::uint64_t left = memories; left != 0; left &= left - 1) {
    const auto memory = static_cast<std::size_t>(std::countr_zero(left));
    const Residency::Grant grant = domains_[memory - 1]->residency().acquire(action, why);
    if (grant == Residency::Grant::granted) continue;
    for (std::uint64_t got = memories & ~left & ((std::uint64_t{1} << memory) - 1); got != 0;
         got &= got - 1) {
      domains_[static_cast<std::size_t>(std::countr_zero(got)) - 1]->residency().release(action);
    }
    // The action may have an earlier request in one of the later memories.
    std::uint64_t later = grant == Residency::Grant::refused ? left & (left - 1) : 0;
    for (; later != 0; later &= later - 1) {
      domains_[static_cast<std::size_t>(std::countr_zero(later)) - 1]->residency().cancel_request(
          action);
    }
    return grant;
  }
  return Residency::Grant::granted;
}

void Runtime::release_memory(Action& action) noexcept {
  std::uint64_t memories = 0;
  for (const Operand& operand : action.operands()) memories |= std::uint64_t{1} << operand.memory;
  for (memories &= ~std::uint64_t{1}; memories != 0; memories &= memories - 1) {
    const auto memory = static_cast<std::size_t>(std::countr_zero(memories));
    domains_[memory - 1]->residency().release(action);
  }
}

void Runtime::cancel_memory_request(const Action& action) noexcept {
  std::uint64_t memories = 0;
  for (const Operand& operand : action.operands()) memories |= std::uint64_t{1} << operand.memory;
  for (memories &= ~std::uint64_t{1}; memories != 0; memories &= memories - 1) {
    const auto memory = static_cast<std::size_t>(std::countr_zero(memories));
    domains_[memory - 1]->residency().cancel_request(action);
  }
}

std::string Runtime::awaited_memory(const Action& action) const {
  for (const Operand& operand : action.operands()) {
    if (operand.memory == kHostMemory) continue;
    const Domain& domain = *domains_[operand.memory - 1u];
    if (domain.residency().is_waiting(action)) return domain.name();
  }
  return {};
}

}  // namespace weir::rt
