// Applies atomic operations of other ranks to memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "net/transport.hpp"

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

}  // namespace weir::rt
