#include "stream/host_allocation.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include <sys/mman.h>

#include "base/error.hpp"
#include "base/sys.hpp"
#include "base/text.hpp"

namespace weir::rt {

namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kHugePage = std::size_t{2} << 20;

const char* kind_name(weir_memory_kind kind) {
  switch (kind) {
    case WEIR_MEMORY_KIND_NORMAL: return "normal";
    case WEIR_MEMORY_KIND_PINNED: return "pinned";
    case WEIR_MEMORY_KIND_HUGE_PAGE: return "huge-page";
    case WEIR_MEMORY_KIND_HIGH_BANDWIDTH: return "high-bandwidth";
  }
  return "unknown";
}

}  // namespace

HostAllocation::HostAllocation(std::size_t bytes, std::size_t alignment, weir_memory_kind kind,
                               bool strict, const std::vector<unsigned>& fast_nodes)
    : kind_(kind) {
  if (kind < WEIR_MEMORY_KIND_NORMAL || kind > WEIR_MEMORY_KIND_HIGH_BANDWIDTH) {
    fail_argument("memory kind {} does not exist", static_cast<int>(kind));
  }
  if (kind == WEIR_MEMORY_KIND_HUGE_PAGE) alignment = std::max(alignment, kHugePage);
  const std::size_t slack = alignment > kPage ? alignment : 0;
  if (bytes > SIZE_MAX - slack) fail_argument("a buffer of {} bytes cannot exist", bytes);
  mapped_ = bytes + slack;
  base_ = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base_ == MAP_FAILED) {
    base_ = nullptr;
    fail(WEIR_STATUS_OUT_OF_MEMORY, "the system has no {} of memory for a buffer",
         format_size(bytes));
  }
  const auto start = reinterpret_cast<std::uintptr_t>(base_);
  address_ = reinterpret_cast<void*>((start + alignment - 1) / alignment * alignment);
  bool got = true;
  if (kind == WEIR_MEMORY_KIND_HUGE_PAGE) got = madvise(address_, bytes, MADV_HUGEPAGE) == 0;
  if (kind == WEIR_MEMORY_KIND_PINNED) got = mlock(address_, bytes) == 0;
  if (kind == WEIR_MEMORY_KIND_HIGH_BANDWIDTH) {
    errno = ENODEV;
    got = !fast_nodes.empty() && sys::bind_memory(base_, mapped_, fast_nodes, strict);
  }
  if (got) return;
  kind_ = WEIR_MEMORY_KIND_NORMAL;
  if (!strict) return;
  const char* const reason = std::strerror(errno);
  munmap(base_, mapped_);
  base_ = nullptr;
  fail(WEIR_STATUS_UNAVAILABLE, "{} of {} memory cannot be had: {}; clear strict to take normal",
       format_size(bytes), kind_name(kind), reason);
}

HostAllocation::HostAllocation(HostAllocation&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)),
      mapped_(other.mapped_),
      address_(std::exchange(other.address_, nullptr)),
      kind_(other.kind_) {}

HostAllocation::~HostAllocation() {
  if (base_ != nullptr) munmap(base_, mapped_);
}

}  // namespace weir::rt
