// A list of objects behind public handles.
#pragma once

#include <list>
#include <utility>

#include "base/handle.hpp"
#include "base/threads.hpp"

namespace weir::rt {

/// Objects that the program creates and destroys by their handles. Any thread.
template <class T>
class OwnedList {
 public:
  /// Adds the object in a list of one, whose memory exists before a collective creation.
  T* add(std::list<Owned<T>> one) noexcept {
    const sys::Lock lock(mutex_);
    objects_.splice(objects_.end(), one);
    return objects_.back().get();
  }
  /// Destroys an object, without the mutex. No effect if it is not there.
  void destroy(const T* object) noexcept {
    Owned<T> last;
    const sys::Lock lock(mutex_);
    for (auto each = objects_.begin(); each != objects_.end(); ++each) {
      if (each->get() != object) continue;
      last = std::move(*each);
      objects_.erase(each);
      return;
    }
  }
  /// Returns the object that was added last, null for an empty list.
  T* last() const noexcept {
    const sys::Lock lock(mutex_);
    return objects_.empty() ? nullptr : objects_.back().get();
  }
  /// Calls visit(object) for all objects. It must not create or destroy objects.
  template <class Visit>
  void each(const Visit& visit) const {
    const sys::Lock lock(mutex_);
    for (const auto& object : objects_) visit(*object);
  }

 private:
  mutable sys::Mutex mutex_;
  std::list<Owned<T>> objects_ WEIR_GUARDED_BY(mutex_);
};

}  // namespace weir::rt
