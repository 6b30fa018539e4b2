#include "net/window.hpp"

#include <cstring>

namespace weir::rt {

Window::Window(Port& port, Collectives& collectives, void* memory, std::size_t bytes)
    : port_(port),
      memory_(memory == nullptr ? port.allocate(bytes) : memory),
      allocated_(memory == nullptr),
      parts_(port.ranks()) {
  const WindowId id = port_.expose(memory_, bytes);
  parts_[port_.rank()] = {bytes, id};
  try {
    const auto own = std::as_bytes(std::span(&parts_[port_.rank()], 1));
    const auto all = collectives.exchange("window creation", own, -1);
    for (Rank rank = 0; rank < port_.ranks(); ++rank) {
      if (all[rank].size() != sizeof(Part)) {
        fail(WEIR_STATUS_NETWORK_ERROR, "rank {} says nothing of its window", rank);
      }
      std::memcpy(&parts_[rank], all[rank].data(), sizeof(Part));
    }
  } catch (...) {
    port_.withdraw(id);
    if (allocated_) port_.release(memory_);
    throw;
  }
}

Window::~Window() {
  port_.withdraw(parts_[port_.rank()].id);
  if (allocated_) port_.release(memory_);
}

void Window::check_range(Rank rank, std::uint64_t offset, std::uint64_t bytes) const {
  if (rank >= port_.ranks()) {
    fail_argument("there is no rank {}: the fabric has the ranks 0 to {}", rank, port_.ranks() - 1);
  }
  if (offset > parts_[rank].bytes || bytes > parts_[rank].bytes - offset) {
    fail_argument("{} bytes at {} are outside the window: rank {} has {} bytes there", bytes,
                  offset, rank, parts_[rank].bytes);
  }
}

}  // namespace weir::rt
