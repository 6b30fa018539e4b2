#include "backend/host_memory.hpp"

#include <sys/mman.h>

#include "base/text.hpp"

namespace weir::rt {

namespace {

constexpr std::size_t kLarge = std::size_t{8} << 20;

}  // namespace

Memory allocate_host_memory(std::size_t bytes, const std::string& owner) {
  void* address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) {
    fail(WEIR_STATUS_OUT_OF_MEMORY, "the system has no {} left for {}", format_size(bytes), owner);
  }
  // Huge pages: far fewer page table walks in large matrices.
  if (bytes >= kLarge) madvise(address, bytes, MADV_HUGEPAGE);
  return {address, bytes};
}

void release_host_memory(Memory& memory) noexcept {
  if (memory.address != nullptr && !memory.adopted) munmap(memory.address, memory.bytes);
  memory = {};
}

}  // namespace weir::rt
