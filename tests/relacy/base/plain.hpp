// Plain data, for Relacy: stands in front of src/base/plain.hpp.
#pragma once

#include <source_location>
#include <type_traits>
#include <utility>

#include "checker.hpp"

namespace weir::rt::sys {

/// Data whose every use the checker compares with those of other threads: two of which one writes
/// must be ordered. To end its life counts as writing.
template <class T>
class Plain {
 public:
  Plain() : data_(rl::is_ctx() ? rl::ctx().var_ctor() : nullptr) {}
  Plain(T value) : Plain() { write(value); }
  Plain(const Plain& other) : Plain() { write(other.read()); }
  ~Plain() {
    if (data_ == nullptr) return;
    if (written_) touch(true);
    rl::ctx().var_dtor(data_);
  }

  Plain& operator=(const Plain& other) {
    write(other.read());
    return *this;
  }
  Plain& operator=(T value) {
    write(value);
    return *this;
  }

  operator T() const { return read(); }
  T operator->() const { return read(); }

  Plain& operator++() {
    T value = read();
    write(++value);
    return *this;
  }
  T operator++(int) {
    const T value = read();
    ++*this;
    return value;
  }
  Plain& operator+=(T by) { return *this = static_cast<T>(read() + by); }

 private:
  struct Event {
    const void* where;
    bool store;
    void output(std::ostream& out) const {
      out << "<" << where << "> plain " << (store ? "store" : "load");
    }
  };

  T read() const {
    if (data_ != nullptr && !written_) fail(false, rl::test_result_unitialized_access);
    touch(false);
    return value_;
  }
  void write(T value) {
    if (written_) {
      touch(true);
    } else if (data_ != nullptr) {
      data_->init(*rl::ctx().threadx_);
    }
    written_ = true;
    value_ = value;
  }
  void touch(bool store) const {
    if (data_ == nullptr || rl::ctx().invariant_executing) return;
    rl::thread_info_base& thread = *rl::ctx().threadx_;
    if (!(store ? data_->store(thread) : data_->load(thread))) {
      fail(store, rl::test_result_data_race);
    }
    note(store);
  }
  void note(bool store) const {
    rl::context& c = rl::ctx();
    const rl::debug_info info("", typeid(T).name(), 0);
    RL_HIST(Event){this, store} RL_HIST_END();
  }
  void fail(bool store, rl::test_result_e result) const {
    note(store);
    rl::ctx().fail_test(typeid(T).name(), result, rl::debug_info());
  }

  rl::var_data* const data_;
  bool written_ = false;
  T value_{};
};

template <class T>
constexpr T scaled([[maybe_unused]] T size, T tiny) noexcept {
  return tiny;
}

}  // namespace weir::rt::sys
