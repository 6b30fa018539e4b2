// What one-sided operations do to the windows of this rank.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>

#include "base/spin_lock.hpp"
#include "fabric/link.hpp"

namespace weir::rt {

/// Executes a fetch-and-add or compare-and-swap with the processor's atomics; `old` is the previous
/// value. Returns false without effect if the word is not aligned.
inline bool change_word(const OneSided& operation, std::byte* at, std::int64_t& old) noexcept {
  if (reinterpret_cast<std::uintptr_t>(at) % sizeof old != 0) return false;
  const std::atomic_ref<std::int64_t> word(*reinterpret_cast<std::int64_t*>(at));
  if (operation.kind == OneSidedKind::fetch_add) {
    old = word.fetch_add(operation.operand);
  } else {
    old = operation.expected;
    word.compare_exchange_strong(old, operation.operand);
  }
  return true;
}

/// The windows of this rank. Any thread.
class WindowTable {
 public:
  /// Throws std::bad_alloc.
  void add(WindowId window, void* memory, std::size_t bytes) {
    const SpinGuard guard(lock_);
    windows_[window] = {static_cast<std::byte*>(memory), bytes};
  }
  void remove(WindowId window) noexcept {
    const SpinGuard guard(lock_);
    windows_.erase(window);
  }
  /// Returns the address of [offset, offset + bytes) of a window; null if it has no such bytes.
  std::byte* find(WindowId window, std::uint64_t offset, std::uint64_t bytes) noexcept {
    const SpinGuard guard(lock_);
    const auto found = windows_.find(window);
    if (found == windows_.end()) return nullptr;
    const Window& known = found->second;
    return offset <= known.bytes && bytes <= known.bytes - offset ? known.memory + offset : nullptr;
  }

 private:
  struct Window {
    std::byte* memory;
    std::size_t bytes;
  };

  SpinLock lock_;
  std::map<WindowId, Window> windows_ WEIR_GUARDED_BY(lock_);
};

}  // namespace weir::rt
