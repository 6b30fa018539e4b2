#include "no_memory.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace weir::rt::test {

namespace {

[[maybe_unused]] thread_local bool none_left = false;

}  // namespace

NoMemory::NoMemory() noexcept { none_left = true; }
NoMemory::~NoMemory() { none_left = false; }

#ifndef WEIR_FIXED_NEW

namespace {

void* take_memory(std::size_t bytes) {
  void* const memory = none_left ? nullptr : std::malloc(std::max<std::size_t>(bytes, 1));
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

#endif

}  // namespace weir::rt::test

#ifndef WEIR_FIXED_NEW
void* operator new(std::size_t bytes) { return weir::rt::test::take_memory(bytes); }
void* operator new[](std::size_t bytes) { return weir::rt::test::take_memory(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
#endif
