// Threads for which there is no memory.
#pragma once

namespace weir::rt::test {

/// While it lives, operator new throws on this thread, where it `kWorks`.
class NoMemory {
 public:
#ifdef WEIR_FIXED_NEW
  static constexpr bool kWorks = false;
#else
  static constexpr bool kWorks = true;
#endif

  NoMemory() noexcept;
  NoMemory(const NoMemory&) = delete;
  NoMemory& operator=(const NoMemory&) = delete;
  ~NoMemory();
};

}  // namespace weir::rt::test
