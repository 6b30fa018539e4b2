// A model of the calls of SYCL 2020 that bench/forms uses: see ../../model.hpp.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "../../model.hpp"

namespace sycl {

template <int dimensions>
class range {
 public:
  explicit range(std::size_t count) : count_(count) {}
  std::size_t size() const { return count_; }

 private:
  std::size_t count_;
};

template <int dimensions>
class id {
 public:
  explicit id(std::size_t index) : index_(index) {}
  operator std::size_t() const { return index_; }

 private:
  std::size_t index_;
};

/// A command: complete until it stands for one that is enqueued.
class event {
 public:
  bool complete() const { return *complete_; }

 private:
  friend class queue;
  std::shared_ptr<bool> complete_ = std::make_shared<bool>(true);
};

/// Out of order, as by default.
class queue {
 public:
  event memcpy(void* to, const void* from, std::size_t bytes) {
    return enqueue({}, [=] { std::memcpy(to, from, bytes); });
  }
  event memcpy(void* to, const void* from, std::size_t bytes, event awaited) {
    return enqueue({awaited}, [=] { std::memcpy(to, from, bytes); });
  }
  template <class Kernel>
  event single_task(event awaited, const Kernel& kernel) {
    return enqueue({awaited}, kernel);
  }
  template <class Kernel>
  event parallel_for(range<1> items, event awaited, const Kernel& kernel) {
    return parallel_for(items, std::vector<event>{awaited}, kernel);
  }
  template <class Kernel>
  event parallel_for(range<1> items, const std::vector<event>& awaited, const Kernel& kernel) {
    return enqueue(awaited, [=] {
      for (std::size_t item = items.size(); item-- > 0;) kernel(id<1>(item));
    });
  }
  void wait_and_throw() {
    while (!commands_.empty()) {
      std::vector<std::size_t> able;
      for (std::size_t i = 0; i < commands_.size(); ++i) {
        if (can_run(commands_[i])) able.push_back(i);
      }
      const std::size_t chosen = able[order_.choose(able.size())];
      const Command command = commands_[chosen];
      commands_.erase(commands_.begin() + static_cast<std::ptrdiff_t>(chosen));
      command.run();
      *command.end.complete_ = true;
    }
  }

 private:
  struct Command {
    std::vector<event> awaited;
    std::function<void()> run;
    event end;
  };

  static bool can_run(const Command& command) {
    for (const event& each : command.awaited) {
      if (!each.complete()) return false;
    }
    return true;
  }
  event enqueue(std::vector<event> awaited, std::function<void()> run) {
    if (!forms_model::Order::waits_count()) awaited.clear();
    event end;
    *end.complete_ = false;
    commands_.push_back({std::move(awaited), std::move(run), end});
    return end;
  }

  forms_model::Order order_;
  std::vector<Command> commands_;
};

template <class T>
T* malloc_device(std::size_t count, const queue&) {
  return static_cast<T*>(forms_model::device_memory(count * sizeof(T)));
}
inline void free(void* memory, const queue&) { std::free(memory); }

}  // namespace sycl
