// Owns an object of a library that is opened at run time.
#pragma once

#include <utility>

namespace weir::rt {

/// Releases the object by a function of Library::get(). Empty when default constructed.
template <class Library, class T, auto release>
class OwnedObject {
 public:
  OwnedObject() = default;
  explicit OwnedObject(T value) noexcept : value_(value) {}
  OwnedObject(OwnedObject&& other) noexcept : value_(std::exchange(other.value_, nullptr)) {}
  OwnedObject& operator=(OwnedObject&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~OwnedObject() {
    if (value_ != nullptr) (Library::get().*release)(value_);
  }
  T get() const noexcept { return value_; }

 private:
  T value_ = nullptr;
};

}  // namespace weir::rt
