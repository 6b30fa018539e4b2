// The objects behind public handles: their memory outlives them, so that a stale handle is detected
// instead of used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <string_view>

#include "base/error.hpp"
#include "base/threads.hpp"

namespace weir::rt {

/// Allocates memory for handles of one type: the last kQuarantined freed blocks keep the name of
/// their object before they are reused. Never returned to the system.
class HandleHeap {
 public:
  explicit HandleHeap(std::size_t bytes) noexcept : bytes_(bytes) {}

  /// Throws std::bad_alloc.
  void* allocate();
  void release(void* block) noexcept;

 private:
  static constexpr std::size_t kQuarantined = 256;
  struct Link;
  Link& link_of(void* block) const noexcept;

  const std::size_t bytes_;
  sys::Mutex mutex_;
  /// Freed blocks are linked by a pointer behind their object.
  void* oldest_ WEIR_GUARDED_BY(mutex_) = nullptr;
  void* newest_ WEIR_GUARDED_BY(mutex_) = nullptr;
  std::size_t quarantined_ WEIR_GUARDED_BY(mutex_) = 0;
};

/// Base of every public handle type T, which defines `static constexpr const char* kNoun`, and
/// maybe kEnd: the message for a destroyed object, in place of "has been destroyed". Objects are
/// created with new and destroyed with bury().
template <class T>
class Handle {
 public:
  Handle() noexcept : mark_(kLive) {}
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  static void* operator new(std::size_t) { return heap().allocate(); }
  static void operator delete(void* block) noexcept { heap().release(block); }

  /// Destroys an object and keeps its name, for the message of a call with the stale handle.
  static void bury(T* object) noexcept {
    Handle* const handle = object;
    auto* const grave = reinterpret_cast<std::byte*>(&handle->mark_);
    char epitaph[kEpitaph] = {};
    std::string_view(object->name()).copy(epitaph, kEpitaph - 1);
    object->~T();
    // Raw memory now: writes that the optimiser cannot remove as dead stores to an object. Atomic:
    // check() may read them at any time.
    std::memcpy(grave + sizeof kDead, epitaph, kEpitaph);
    __atomic_store_n(reinterpret_cast<std::uint32_t*>(grave), kDead, __ATOMIC_RELEASE);
    heap().release(object);
  }
  struct Bury {
    void operator()(T* object) const noexcept { bury(object); }
  };

  /// Returns the object of a handle. Throws Error{invalid_argument} for NULL, a destroyed object
  /// (by name), or something else.
  __attribute__((no_sanitize("vptr"))) static T& check(T* handle) {
    if (handle != nullptr && static_cast<Handle*>(handle)->handle_mark() == kLive) [[likely]] {
      return *handle;
    }
    refuse(handle);
  }
  static const T& check(const T* handle) { return check(const_cast<T*>(handle)); }

 protected:
  /// Virtual for the layout: a polymorphic base is first in all types, so the mark, which
  /// identifies the type, is at the same offset in handles of all types.
  virtual ~Handle() = default;

 private:
  /// The mark of a type: its noun's hash (FNV-1a), which is odd while the object lives.
  static constexpr std::uint32_t mark_of(bool live) noexcept {
    std::uint32_t hash = 0x811C9DC5u;
    for (const char letter : std::string_view(T::kNoun)) {
      hash = (hash ^ static_cast<unsigned char>(letter)) * 0x01000193u;
    }
    return live ? hash | 1u : hash & ~1u;
  }
  static constexpr std::uint32_t kLive = mark_of(true);
  static constexpr std::uint32_t kDead = mark_of(false);
  static constexpr std::size_t kEpitaph = 20;

  /// Never destroyed: handles may be used until the process ends.
  static HandleHeap& heap() {
    alignas(HandleHeap) static std::byte room[sizeof(HandleHeap)];
    static HandleHeap& instance = *new (room) HandleHeap(sizeof(T));
    return instance;
  }

  [[noreturn, gnu::cold]] __attribute__((no_sanitize("vptr"))) static void refuse(const T* object) {
    if (object == nullptr) fail_argument("the {} is NULL", T::kNoun);
    const Handle* const handle = object;
    if (handle->handle_mark() != kDead) fail_argument("the handle is not a {}", T::kNoun);
    const char* end = "has been destroyed";
    if constexpr (requires { T::kEnd; }) end = T::kEnd;
    fail_argument("{} '{}' {}", T::kNoun, handle->epitaph_, end);
  }

  std::uint32_t handle_mark() const noexcept { return __atomic_load_n(&mark_, __ATOMIC_ACQUIRE); }

  std::uint32_t mark_;
  char epitaph_[kEpitaph];  ///< written after the object's end
};

/// Owner of a handle's object.
template <class T>
using Owned = std::unique_ptr<T, typename Handle<T>::Bury>;

}  // namespace weir::rt
