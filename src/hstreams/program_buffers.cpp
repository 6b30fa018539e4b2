#include "hstreams/program_buffers.hpp"

#include <utility>

#include "hstreams/error.hpp"

namespace weir::hs {

const Instance& Buffer::instance_in(HSTR_LOG_DOM domain) const {
  const auto found = instances.find(domain);
  if (found == instances.end()) {
    fail(HSTR_RESULT_NOT_FOUND, "the buffer at {} has no instance in logical domain {}",
         fmt::ptr(base), domain);
  }
  return *found->second;
}

Location ProgramBuffers::find(const void* address) {
  const auto* const wanted = static_cast<const std::byte*>(address);
  auto after = buffers_.upper_bound(wanted);
  if (after != buffers_.begin()) {
    Buffer& before = std::prev(after)->second;
    const auto offset = static_cast<std::uint64_t>(wanted - before.base);
    if (offset < before.bytes) return {&before, offset};
  }
  fail(HSTR_RESULT_NOT_FOUND, "address {} is in no buffer", fmt::ptr(address));
}

void ProgramBuffers::check_free(const std::byte* base, std::uint64_t bytes) const {
  const std::byte* const end = base + bytes;
  for (auto each = buffers_.upper_bound(end - 1); each != buffers_.begin();) {
    const Buffer& there = (--each)->second;
    const std::byte* const there_end = there.base + there.bytes;
    if (there_end <= base) return;
    const bool inside = there.base <= base && end <= there_end;
    fail(inside ? HSTR_RESULT_ALREADY_FOUND : HSTR_RESULT_OVERLAPPING_RESOURCES,
         "{} bytes at {} meet the buffer of {} bytes at {}", bytes, fmt::ptr(base), there.bytes,
         fmt::ptr(there.base));
  }
}

Buffer& ProgramBuffers::add(Buffer&& buffer) {
  const std::byte* const base = buffer.base;
  return buffers_.emplace(base, std::move(buffer)).first->second;
}

Buffer ProgramBuffers::take(Buffer& buffer) {
  return std::move(buffers_.extract(buffer.base).mapped());
}

}  // namespace weir::hs
