#include "base/handle.hpp"

#include <new>

namespace weir::rt {

struct HandleHeap::Link {
  void* next;
};

HandleHeap::Link& HandleHeap::link_of(void* block) const noexcept {
  return *reinterpret_cast<Link*>(static_cast<std::byte*>(block) + bytes_);
}

void* HandleHeap::allocate() {
  {
    sys::Lock lock(mutex_);
    if (quarantined_ > kQuarantined) {
      void* const block = oldest_;
      oldest_ = link_of(block).next;
      --quarantined_;
      return block;
    }
  }
  return ::operator new(bytes_ + sizeof(Link), std::align_val_t{64});
}

void HandleHeap::release(void* block) noexcept {
  new (&link_of(block)) Link{nullptr};
  sys::Lock lock(mutex_);
  (oldest_ == nullptr ? oldest_ : link_of(newest_).next) = block;
  newest_ = block;
  ++quarantined_;
}

}  // namespace weir::rt
