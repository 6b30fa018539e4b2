// Makes calls of the process fail, one position at a time, and knows which memory is still live.
//
// The executable defines malloc, mmap, pthread_create, open, write and their kin, so that the
// library, the C++ library and every other library of the process call them here.
#pragma once

#include <cstddef>
#include <cstdint>

namespace faults {

/// What can fail. `memory` is every way to heap memory, operator new included.
enum class Kind : unsigned { memory, mapping, thread, file };
inline constexpr unsigned kKinds = 4;
const char* kind_name(Kind kind);

inline constexpr std::size_t kFrames = 24;

/// Return addresses of one call, innermost first, up to the first null.
struct Stack {
  void* frames[kFrames];
};

/// Fails the call number `position` (from 1) of a kind, counted from arm() on, and all later ones
/// when `lasting`. Position 0 fails none, and counts.
struct Plan {
  Kind kind;
  std::uint64_t position;
  bool lasting;
  std::uint64_t site = 0;  ///< not 0: the first call with this hash of its stack, at any position
};

/// What is learned meanwhile. In memory that parent and child share; null members are not filled.
struct Notes {
  Stack* failed;         ///< the first call that was made to fail
  std::uint64_t* sites;  ///< when counting: a hash of the stack of each position, from index 0
  std::size_t most_sites;
  std::size_t frames = kFrames;  ///< of a stack, innermost first, that tell positions apart
};

void arm(const Plan& plan, const Notes& notes);
void disarm();
/// Calls since arm(), of the plan's kind.
std::uint64_t calls();
/// Calls that were made to fail since arm().
std::uint64_t failures();

/// Starts to remember what is allocated from now on.
void watch_memory(bool with_stacks);
/// Allocations since watch_memory() that are live; calls `each` for the first few.
std::size_t live_allocations(void (*each)(std::size_t bytes, const Stack& stack));

/// Whether heap memory can be intercepted in this build: sanitizers have an allocator of their own.
bool intercepts_memory();

}  // namespace faults
