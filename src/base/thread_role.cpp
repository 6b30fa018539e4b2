#include "base/thread_role.hpp"

#include <new>

#include <pthread.h>

namespace weir::rt {

namespace {

using Lifetime = std::shared_ptr<const void>;

/// Not a thread_local with a destructor: the C library aborts when it has no memory to register
/// one.
class LifetimeKey {
 public:
  LifetimeKey() {
    const auto end = [](void* lifetime) { delete static_cast<Lifetime*>(lifetime); };
    if (pthread_key_create(&key_, end) != 0) throw std::bad_alloc();
  }
  LifetimeKey(const LifetimeKey&) = delete;
  LifetimeKey& operator=(const LifetimeKey&) = delete;
  ~LifetimeKey() { pthread_key_delete(key_); }

  const Lifetime& get() const {
    if (const void* const mine = pthread_getspecific(key_)) {
      return *static_cast<const Lifetime*>(mine);
    }
    auto made = std::make_unique<Lifetime>(std::make_shared<const char>());
    if (pthread_setspecific(key_, made.get()) != 0) throw std::bad_alloc();
    return *made.release();
  }

 private:
  pthread_key_t key_{};
};

}  // namespace

const void* this_thread() noexcept {
  static thread_local const char mark = 0;
  return &mark;
}

std::weak_ptr<const void> thread_lifetime() {
  static const LifetimeKey key;
  return key.get();
}

int& NoWaitScope::depth() noexcept {
  thread_local int value = 0;
  return value;
}

}  // namespace weir::rt
