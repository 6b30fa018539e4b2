#include "fabric/window.hpp"

#include <cstring>

namespace weir::rt {

namespace {

constexpr char kCreation[] = "window creation";

}  // namespace

Window::Window(Port& port, void* memory, std::size_t bytes, std::int64_t deadline_ns)
    : port_(port),
      parts_(port.ranks()),
      allocated_(memory == nullptr),
      memory_(allocated_ ? port.allocate(bytes, deadline_ns) : memory) {
  if (memory_ == nullptr) {
    fail(WEIR_STATUS_TIMEOUT,
         "no window in time: a handler of messages is at work, or {} B of memory take longer",
         bytes);
  }
  try {
    parts_[port_.rank()] = {bytes, port_.expose(memory_, bytes, deadline_ns)};
  } catch (...) {
    if (allocated_) port_.release(memory_);
    throw;
  }
}

Window::~Window() {
  port_.withdraw(id(port_.rank()));
  if (allocated_) port_.release(memory_);
}

/// Contributes an empty part, by which the other ranks learn of the failure.
void Window::decline(Collectives& collectives, std::int64_t deadline_ns) noexcept {
  try {
    collectives.exchange(kCreation, {}, time_left(deadline_ns));
  } catch (...) {  // the caller throws its own failure
  }
}

void Window::learn(Collectives& collectives, std::int64_t deadline_ns) {
  const auto own = std::as_bytes(std::span(&parts_[port_.rank()], 1));
  const std::vector<Collectives::Bytes> all =
      collectives.exchange(kCreation, own, time_left(deadline_ns));
  for (Rank rank = 0; rank < port_.ranks(); ++rank) {
    if (all[rank].size() != sizeof(Part)) {
      fail(WEIR_STATUS_NETWORK_ERROR, "rank {} could not make its part of the window", rank);
    }
    std::memcpy(&parts_[rank], all[rank].data(), sizeof(Part));
  }
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
