// Names for Clang's thread safety analysis: which mutex guards which data. `make lint` checks them;
// other compilers ignore them.
#pragma once

#include <mutex>

#if defined(__clang__)
#define WEIR_THREAD_SAFETY(attribute) __attribute__((attribute))
#else
#define WEIR_THREAD_SAFETY(attribute)
#endif

#define WEIR_CAPABILITY(kind) WEIR_THREAD_SAFETY(capability(kind))
#define WEIR_SCOPED_CAPABILITY WEIR_THREAD_SAFETY(scoped_lockable)
/// Data that only the holder of the mutex reads and writes.
#define WEIR_GUARDED_BY(mutex) WEIR_THREAD_SAFETY(guarded_by(mutex))
/// A pointer whose target only the holder of the mutex reads and writes.
#define WEIR_PT_GUARDED_BY(mutex) WEIR_THREAD_SAFETY(pt_guarded_by(mutex))
/// The caller holds the mutexes.
#define WEIR_REQUIRES(...) WEIR_THREAD_SAFETY(requires_capability(__VA_ARGS__))
/// The caller does not hold the mutexes, which the function locks.
#define WEIR_EXCLUDES(...) WEIR_THREAD_SAFETY(locks_excluded(__VA_ARGS__))
#define WEIR_ACQUIRE(...) WEIR_THREAD_SAFETY(acquire_capability(__VA_ARGS__))
#define WEIR_TRY_ACQUIRE(...) WEIR_THREAD_SAFETY(try_acquire_capability(__VA_ARGS__))
#define WEIR_RELEASE(...) WEIR_THREAD_SAFETY(release_capability(__VA_ARGS__))
/// The function returns a reference to this mutex.
#define WEIR_RETURNS_MUTEX(mutex) WEIR_THREAD_SAFETY(lock_returned(mutex))
/// For accesses that the analysis cannot follow; a comment beside it says why the access is safe.
#define WEIR_NOT_ANALYSED WEIR_THREAD_SAFETY(no_thread_safety_analysis)

namespace weir::rt::sys {

/// Holds a mutex while it lives, except between unlock() and lock(). Not copyable, not movable.
template <class Mutex>
class WEIR_SCOPED_CAPABILITY BasicLock {
 public:
  explicit BasicLock(Mutex& mutex) WEIR_ACQUIRE(mutex) : lock_(mutex) {}
  BasicLock(const BasicLock&) = delete;
  BasicLock& operator=(const BasicLock&) = delete;
  ~BasicLock() WEIR_RELEASE() {}

  void lock() WEIR_ACQUIRE() { lock_.lock(); }
  void unlock() WEIR_RELEASE() { lock_.unlock(); }

  std::unique_lock<Mutex>& native() noexcept { return lock_; }

 private:
  std::unique_lock<Mutex> lock_;
};

}  // namespace weir::rt::sys
