#include "core/buffer.hpp"

namespace weir::rt {

Buffer::~Buffer() {
  for (auto& instance : instances_) delete instance.load(std::memory_order_relaxed);
}

Instance& Buffer::instance(std::uint16_t memory) {
  if (Instance* known = find_instance(memory)) return *known;
  auto made = std::make_unique<Instance>();
  Instance* expected = nullptr;
  if (instances_[memory].compare_exchange_strong(expected, made.get(), std::memory_order_acq_rel)) {
    return *made.release();
  }
  return *expected;
}

}  // namespace weir::rt
