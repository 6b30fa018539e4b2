#include "net/window.hpp"

#include <cstring>
#include <exception>

namespace weir::rt {

Window::Own::Own(Port& port, void* memory, std::size_t bytes)
    : port_(port),
      allocated_(memory == nullptr),
      memory_(allocated_ ? port.allocate(bytes) : memory) {
  try {
    id_ = port_.expose(memory_, bytes);
  } catch (...) {
    if (allocated_) port_.release(memory_);
    throw;
  }
}

Window::Own::~Own() {
  port_.withdraw(id_);
  if (allocated_) port_.release(memory_);
}

Window::Window(Port& port, Collectives& collectives, void* memory, std::size_t bytes)
    : port_(port) {
  std::span<const std::byte> own;
  std::exception_ptr failure;  // the others are told by a part without content
  try {
    parts_.resize(port_.ranks());
    own_.emplace(port_, memory, bytes);
    parts_[port_.rank()] = {bytes, own_->id()};
    own = std::as_bytes(std::span(&parts_[port_.rank()], 1));
  } catch (...) {
    failure = std::current_exception();
  }
  std::vector<Collectives::Bytes> all;
  try {
    all = collectives.exchange("window creation", own, -1);
  } catch (...) {
    if (failure == nullptr) throw;
  }
  if (failure != nullptr) std::rethrow_exception(failure);
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
