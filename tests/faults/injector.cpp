#include "injector.hpp"

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <new>
#include <span>

#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "one_machine.hpp"

using hwloc_topology_t = hwloc_topology*;

namespace faults {

namespace {

std::atomic<bool> armed{false};
Plan plan{};
Notes notes{};
std::atomic<std::uint64_t> counted{0};
std::atomic<std::uint64_t> failed{0};

/// Above 0 the calling thread's calls are the test's own.
thread_local int inside = 0;
/// Above 0 what the calling thread allocates belongs to the C library, which keeps it.
thread_local int for_the_system = 0;

struct Inside {
  Inside() { ++inside; }
  ~Inside() { --inside; }
};

/// Reads the innermost frames, without this one and must_fail().
[[gnu::noinline]] void read_stack(Stack& stack, std::size_t count = kFrames) {
  const Inside own;
  void* frames[kFrames + 2] = {};
  backtrace(frames, static_cast<int>(count) + 2);
  std::memcpy(stack.frames, frames + 2, sizeof stack.frames);
}

std::uint64_t hash_of(const Stack& stack) {
  std::uint64_t hash = 14695981039346656037u;
  for (void* frame : std::span(stack.frames).first(notes.frames)) {
    hash = (hash ^ reinterpret_cast<std::uintptr_t>(frame)) * 1099511628211u;
  }
  return hash;
}

[[gnu::always_inline]] inline std::uint64_t site_here() {
  Stack stack;
  read_stack(stack, notes.frames);
  return hash_of(stack);
}

bool reaches_position(std::uint64_t number) {
  return plan.position != 0 && (plan.lasting ? number >= plan.position : number == plan.position);
}

/// The calls of different threads come in any order.
[[gnu::always_inline]] inline bool reaches_site() {
  if (failed.load(std::memory_order_relaxed) > 0) return plan.lasting;
  static std::atomic<bool> found{false};
  return site_here() == plan.site && !found.exchange(true);
}

/// Counts a call and decides about it.
[[gnu::noinline]] bool must_fail(Kind kind) {
  if (!armed.load(std::memory_order_acquire) || inside > 0 || plan.kind != kind) return false;
  const std::uint64_t number = counted.fetch_add(1, std::memory_order_relaxed) + 1;
  if (notes.sites != nullptr && number <= notes.most_sites) notes.sites[number - 1] = site_here();
  if (plan.site != 0 ? !reaches_site() : !reaches_position(number)) return false;
  if (failed.fetch_add(1, std::memory_order_relaxed) == 0 && notes.failed != nullptr) {
    read_stack(*notes.failed);
  }
  return true;
}

/// The allocations that are live, in an open table that needs no memory itself.
struct AllocationTable {
  static constexpr unsigned kSlotBits = 14;  // few pages: a child process copies those it touches
  static constexpr std::size_t kSlots = 1u << kSlotBits;
  struct Entry {
    void* address;
    std::size_t bytes;
  };
  Entry entries[kSlots];
  std::size_t held = 0;
  Stack* stacks = nullptr;  ///< as many, when wanted
  std::atomic<bool> watching{false};
  std::atomic_flag lock = ATOMIC_FLAG_INIT;

  static std::size_t home(const void* address) {
    return (reinterpret_cast<std::uintptr_t>(address) >> 4) * 0x9E3779B97F4A7C15u >>
           (64 - kSlotBits);
  }
  void acquire() {
    while (lock.test_and_set(std::memory_order_acquire)) sched_yield();
  }
  void release() { lock.clear(std::memory_order_release); }

  void add(void* address, std::size_t bytes) {
    if (!watching.load(std::memory_order_relaxed) || inside > 0 || for_the_system > 0) return;
    Stack stack{};
    if (stacks != nullptr) read_stack(stack);
    acquire();
    if (++held == kSlots) std::abort();
    std::size_t at = home(address);
    while (entries[at].address != nullptr) at = (at + 1) % kSlots;
    entries[at] = {address, bytes};
    if (stacks != nullptr) stacks[at] = stack;
    release();
  }
  void remove(void* address) {
    if (!watching.load(std::memory_order_relaxed)) return;
    acquire();
    std::size_t at = home(address);
    while (entries[at].address != nullptr && entries[at].address != address) at = (at + 1) % kSlots;
    if (entries[at].address != nullptr) close_gap(at);
    release();
  }
  void close_gap(std::size_t gap) {
    for (std::size_t at = (gap + 1) % kSlots; entries[at].address != nullptr;
         at = (at + 1) % kSlots) {
      const std::size_t from_home = (at - home(entries[at].address)) % kSlots;
      if (from_home < (at - gap) % kSlots) continue;
      entries[gap] = entries[at];
      if (stacks != nullptr) stacks[gap] = stacks[at];
      gap = at;
    }
    entries[gap] = {};
    --held;
  }
};
AllocationTable allocations;

template <class Function>
Function* real(const char* name) {
  const Inside own;
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

int refused(int reason) {
  errno = reason;
  return -1;
}

}  // namespace

const char* kind_name(Kind kind) {
  switch (kind) {
    case Kind::memory: return "memory";
    case Kind::mapping: return "mapping";
    case Kind::thread: return "thread";
    case Kind::file: return "file";
  }
  return "?";
}

void arm(const Plan& wanted, const Notes& where) {
  plan = wanted;
  notes = where;
  counted.store(0, std::memory_order_relaxed);
  failed.store(0, std::memory_order_relaxed);
  armed.store(true, std::memory_order_release);
}

void disarm() { armed.store(false, std::memory_order_release); }
std::uint64_t calls() { return counted.load(std::memory_order_relaxed); }
std::uint64_t failures() { return failed.load(std::memory_order_relaxed); }

void watch_memory(bool with_stacks) {
  if (with_stacks) {
    void* const room = reinterpret_cast<void*>(
        syscall(SYS_mmap, nullptr, AllocationTable::kSlots * sizeof(Stack), PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (room != MAP_FAILED) allocations.stacks = static_cast<Stack*>(room);
  }
  allocations.watching.store(true, std::memory_order_relaxed);
}

std::size_t live_allocations(void (*each)(std::size_t bytes, const Stack& stack)) {
  constexpr std::size_t kMostShown = 5;
  const Inside own;
  std::size_t count = 0;
  for (std::size_t at = 0; at < AllocationTable::kSlots; ++at) {
    const AllocationTable::Entry& entry = allocations.entries[at];
    if (entry.address == nullptr) continue;
    if (++count > kMostShown || each == nullptr) continue;
    each(entry.bytes, allocations.stacks != nullptr ? allocations.stacks[at] : Stack{});
  }
  return count;
}

bool intercepts_memory() {
#ifdef WEIR_SANITIZED
  return false;
#else
  return true;
#endif
}

}  // namespace faults

using faults::Kind;

extern "C" {

// ---- Memory ------------------------------------------------------------------------------------

#ifndef WEIR_SANITIZED

void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* old, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);
void __libc_free(void* address);

static void* noted(void* address, std::size_t bytes) {
  if (address != nullptr) {
    faults::allocations.add(address, bytes);
  } else {
    errno = ENOMEM;
  }
  return address;
}

void* malloc(std::size_t bytes) {
  return noted(faults::must_fail(Kind::memory) ? nullptr : __libc_malloc(bytes), bytes);
}

void* calloc(std::size_t count, std::size_t bytes) {
  return noted(faults::must_fail(Kind::memory) ? nullptr : __libc_calloc(count, bytes),
               count * bytes);
}

void* realloc(void* old, std::size_t bytes) {
  if (bytes > 0 && faults::must_fail(Kind::memory)) return noted(nullptr, bytes);
  if (old != nullptr) faults::allocations.remove(old);
  void* const moved = __libc_realloc(old, bytes);
  return bytes > 0 ? noted(moved, bytes) : moved;
}

void* memalign(std::size_t alignment, std::size_t bytes) {
  return noted(faults::must_fail(Kind::memory) ? nullptr : __libc_memalign(alignment, bytes),
               bytes);
}

void* aligned_alloc(std::size_t alignment, std::size_t bytes) { return memalign(alignment, bytes); }

int posix_memalign(void** result, std::size_t alignment, std::size_t bytes) {
  void* const address = memalign(alignment, bytes);
  if (address == nullptr) return ENOMEM;
  *result = address;
  return 0;
}

void free(void* address) {
  if (address != nullptr) faults::allocations.remove(address);
  __libc_free(address);
}

#endif

// ---- Mappings, threads, files ------------------------------------------------------------------

// hwloc 2.9 checks few of its allocations, and the plugins it opens and closes leave a lock of the
// C library behind when there is no memory (glibc 2.36): it fails as a whole, not in the middle.

int hwloc_topology_load(hwloc_topology_t topology) {
  if (faults::must_fail(Kind::memory)) return faults::refused(ENOMEM);
  const faults::Inside own;
  return weir::one_machine::load(topology);
}

int hwloc_topology_init(hwloc_topology_t* topology) {
  if (faults::must_fail(Kind::memory)) return faults::refused(ENOMEM);
  const faults::Inside own;
  return weir::one_machine::initialise(topology);
}

void hwloc_topology_destroy(hwloc_topology_t topology) {
  using Destroy = void(hwloc_topology_t);
  static Destroy* const destroy = faults::real<Destroy>("hwloc_topology_destroy");
  const faults::Inside own;
  destroy(topology);
}

void* mmap(void* address, std::size_t bytes, int protection, int flags, int descriptor,
           off_t offset) {
  if (faults::must_fail(Kind::mapping)) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return reinterpret_cast<void*>(
      syscall(SYS_mmap, address, bytes, protection, flags, descriptor, offset));
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                   void* argument) {
  using Create = int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static Create* const create = faults::real<Create>("pthread_create");
  if (faults::must_fail(Kind::thread)) return EAGAIN;
  ++faults::for_the_system;
  const int result = create(thread, attributes, start, argument);
  --faults::for_the_system;
  return result;
}

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const auto mode = static_cast<unsigned>(va_arg(arguments, int));
  va_end(arguments);
  if (faults::must_fail(Kind::file)) return faults::refused(EMFILE);
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

int mkostemp(char* name, int flags) {
  using Make = int(char*, int);
  static Make* const make = faults::real<Make>("mkostemp");
  return faults::must_fail(Kind::file) ? faults::refused(EACCES) : make(name, flags);
}

ssize_t write(int descriptor, const void* data, std::size_t bytes) {
  if (faults::must_fail(Kind::file)) return faults::refused(ENOSPC);
  return syscall(SYS_write, descriptor, data, bytes);
}

int close(int descriptor) {
  const bool fail = faults::must_fail(Kind::file);
  const int result = static_cast<int>(syscall(SYS_close, descriptor));
  return fail ? faults::refused(EIO) : result;
}

int rename(const char* from, const char* to) {
  if (faults::must_fail(Kind::file)) return faults::refused(EACCES);
  return static_cast<int>(syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}
}

#ifdef WEIR_SANITIZED

// Sanitizers have a malloc of their own; what C++ allocates can still be made to fail.

void* operator new(std::size_t bytes) {
  void* const address = faults::must_fail(Kind::memory) ? nullptr : std::malloc(bytes);
  if (address == nullptr) throw std::bad_alloc();
  return address;
}

void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return faults::must_fail(Kind::memory) ? nullptr : std::malloc(bytes);
}

void* operator new[](std::size_t bytes) { return operator new(bytes); }

void* operator new(std::size_t bytes, std::align_val_t alignment) {
  const auto boundary = static_cast<std::size_t>(alignment);
  void* const address =
      faults::must_fail(Kind::memory)
          ? nullptr
          : std::aligned_alloc(boundary, (bytes + boundary - 1) / boundary * boundary);
  if (address == nullptr) throw std::bad_alloc();
  return address;
}

void operator delete(void* address) noexcept { std::free(address); }
void operator delete(void* address, std::size_t) noexcept { std::free(address); }
void operator delete[](void* address) noexcept { std::free(address); }
void operator delete[](void* address, std::size_t) noexcept { std::free(address); }
void operator delete(void* address, std::align_val_t) noexcept { std::free(address); }
void operator delete(void* address, std::size_t, std::align_val_t) noexcept { std::free(address); }

#endif
