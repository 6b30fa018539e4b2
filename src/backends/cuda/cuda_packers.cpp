#include "backends/cuda/cuda_packers.hpp"

#include "base/thread_role.hpp"

namespace weir::rt {

CudaPackers::CudaPackers(unsigned helpers, const std::string& name) {
  helpers_.reserve(helpers);
  try {
    for (unsigned i = 0; i < helpers; ++i) helpers_.emplace_back(name, [this] { serve(); });
  } catch (...) {  // fewer helpers
  }
}

CudaPackers::~CudaPackers() {
  {
    const sys::Lock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  helpers_.clear();
}

void CudaPackers::pack(const CudaStagedPiece& piece) noexcept {
  const std::size_t parts = piece.block.bytes() / kPart;
  sys::Lock lock(mutex_);
  if (helpers_.empty() || parts < 2 || piece_ != nullptr) {
    lock.unlock();
    return piece.pack(0, 1);
  }
  piece_ = &piece;
  next_ = 0;
  parts_ = parts;
  changed_.notify_all();
  take_parts();
  while (active_ > 0) packed_.wait(lock);
  piece_ = nullptr;
}

void CudaPackers::take_parts() noexcept {
  const CudaStagedPiece* const piece = piece_;  // until all parts are packed
  const std::size_t parts = parts_;
  while (next_ < parts) {
    const std::size_t part = next_++;
    ++active_;
    mutex_.unlock();
    piece->pack(part, parts);
    mutex_.lock();
    if (--active_ == 0) packed_.notify_one();
  }
}

void CudaPackers::serve() noexcept {
  const NoWaitScope no_wait;
  for (sys::Lock lock(mutex_); !stopping_;) {
    if (piece_ != nullptr && next_ < parts_) {
      take_parts();
    } else {
      changed_.wait(lock);
    }
  }
}

}  // namespace weir::rt
