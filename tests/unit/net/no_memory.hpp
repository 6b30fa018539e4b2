// Threads for which there is no memory.
#pragma once

namespace weir::rt::test {

/// While it lives, operator new throws on this thread.
class NoMemory {
 public:
  NoMemory() noexcept;
  NoMemory(const NoMemory&) = delete;
  NoMemory& operator=(const NoMemory&) = delete;
  ~NoMemory();
};

}  // namespace weir::rt::test
