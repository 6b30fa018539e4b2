#include "stream/buffer_table.hpp"

#include <bit>
#include <utility>

#include <fmt/format.h>

#include "stream/context.hpp"

namespace weir::rt {

weir_buffer* BufferTable::create(std::size_t bytes, const weir_buffer_options& options) {
  const std::size_t alignment = options.alignment ? options.alignment : 64;
  if (bytes == 0) fail_argument("a buffer of 0 bytes cannot be created");
  if (!std::has_single_bit(alignment)) {
    fail_argument("alignment {} is not a power of two", alignment);
  }
  HostAllocation memory(bytes, alignment, options.kind, options.strict,
                        context_.machine().fast_nodes);
  void* const address = memory.address();
  return add(address, bytes, std::move(memory), options);
}

weir_buffer* BufferTable::wrap(void* address, std::size_t bytes,
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
  return add(address, bytes, {}, options);
}

weir_buffer* BufferTable::adopt(Domain& domain, void* address, void* host, std::size_t bytes,
                                const weir_buffer_options& options) {
  if (address == nullptr) fail_argument("the memory to adopt is NULL");
  if (bytes == 0) fail_argument("0 bytes at {} cannot be adopted", fmt::ptr(address));
  if (bytes > UINTPTR_MAX - reinterpret_cast<std::uintptr_t>(address)) {
    fail_argument("{} bytes at {} reach beyond the end of all memory", bytes, fmt::ptr(address));
  }
  if (domain.info().aliases_host && !options.no_alias) {
    if (host == nullptr || host == address) return wrap(address, bytes, options);
    fail_argument(
        "domain '{}' shares the memory of the host: {} and {} cannot both be the buffer's there; "
        "set the option no_alias, or give one",
        domain.name(), fmt::ptr(address), fmt::ptr(host));
  }
  weir_buffer* const buffer = host == nullptr ? create(bytes, options) : wrap(host, bytes, options);
  try {
    domain.residency().adopt(*buffer, address);
  } catch (...) {
    free(*buffer);
    throw;
  }
  return buffer;
}

weir_buffer* BufferTable::add(void* address, std::size_t bytes, HostAllocation memory,
                              const weir_buffer_options& options) {
  auto* const start = static_cast<std::byte*>(address);
  if (bytes > UINTPTR_MAX - reinterpret_cast<std::uintptr_t>(address)) {
    fail_argument("buffer '{}' ({} bytes at {}) reaches beyond the end of all memory",
                  options.name ? options.name : "", bytes, fmt::ptr(address));
  }
  sys::Lock lock(mutex_);
  const std::uint64_t id = ++made_;
  std::string name = options.name ? options.name : fmt::format("buffer {}", id);
  const auto other = buffers_.upper_bound(start);
  if (other != buffers_.end() && other->second.buffer->host_address() < start + bytes) {
    const Buffer& there = *other->second.buffer;
    fail_argument("buffer '{}' ({} bytes at {}) overlaps buffer '{}' ({} bytes at {})", name, bytes,
                  fmt::ptr(address), there.name(), there.bytes(), fmt::ptr(there.host_address()));
  }
  Owned<weir_buffer> buffer(
      new weir_buffer(&context_, id, std::move(name), address, bytes, !options.no_alias));
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
void BufferTable::lock_host_memory(const weir_buffer& buffer) noexcept {
  for (std::size_t i = 0; i < context_.domain_count(); ++i) {
    Device& device = context_.domain(i)->device();
    if (!device.pin_host(buffer.host_address(), buffer.bytes())) continue;
    const sys::Lock lock(mutex_);
    buffers_.find(buffer.host_address() + buffer.bytes())->second.locker = &device;
    return;
  }
}

void BufferTable::unlock_host_memory(const OwnedBuffer& owned) noexcept {
  if (owned.locker != nullptr) owned.locker->unpin_host(owned.buffer->host_address());
}

Owned<weir_buffer> BufferTable::make_device_buffer(std::size_t bytes) {
  sys::Lock lock(mutex_);
  const std::uint64_t id = ++made_;
  return Owned<weir_buffer>(
      new weir_buffer(&context_, id, fmt::format("slot {}", id), nullptr, bytes, false));
}

void BufferTable::free(weir_buffer& buffer) noexcept {
  context_.forget_instances_of(buffer);
  sys::Lock lock(mutex_);
  const auto found = buffers_.find(buffer.host_address() + buffer.bytes());
  if (found == buffers_.end() || found->second.buffer.get() != &buffer) return;
  const OwnedBuffer dead = std::move(found->second);
  buffers_.erase(found);
  lock.unlock();
  unlock_host_memory(dead);
}

void BufferTable::clear() noexcept {
  const sys::Lock lock(mutex_);
  for (const auto& [end, owned] : buffers_) {
    context_.forget_instances_of(*owned.buffer);
    unlock_host_memory(owned);
  }
  buffers_.clear();
}

weir_memory_kind BufferTable::kind_of(const weir_buffer& buffer) const {
  sys::Lock lock(mutex_);
  const OwnedBuffer& owned = buffers_.at(buffer.host_address() + buffer.bytes());
  return owned.locker != nullptr ? WEIR_MEMORY_KIND_PINNED : owned.memory.kind();
}

weir_buffer* BufferTable::find(const void* address, std::size_t& out_offset) const {
  const auto* const byte = static_cast<const std::byte*>(address);
  sys::Lock lock(mutex_);
  const auto found = buffers_.upper_bound(byte);
  if (found == buffers_.end() || byte < found->second.buffer->host_address()) {
    fail(WEIR_STATUS_NOT_FOUND, "no buffer holds address {}", fmt::ptr(address));
  }
  out_offset = static_cast<std::size_t>(byte - found->second.buffer->host_address());
  return found->second.buffer.get();
}

}  // namespace weir::rt
