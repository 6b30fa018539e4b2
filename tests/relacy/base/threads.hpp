// The seam to threads, for Relacy: stands in front of src/base/threads.hpp.
//
// Each operation is one that the model checker schedules, with the memory order that the source
// asks for. A wait returns for no reason now and then. Deadlines pass when the checker says so.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

#include <cxxabi.h>

#include "base/plain.hpp"
#include "base/thread_safety.hpp"
#include "checker.hpp"

namespace weir::rt::sys {

using Where = std::source_location;

/// Keeps over a switch what threads have of their own: the checker's are fibers of one thread.
class FiberLocals {
 public:
  FiberLocals() noexcept {
    std::memcpy(exceptions_, abi::__cxa_get_globals(), sizeof exceptions_);
    if (named != nullptr) std::memcpy(values_, named, named_bytes);
  }
  FiberLocals(const FiberLocals&) = delete;
  FiberLocals& operator=(const FiberLocals&) = delete;
  ~FiberLocals() {
    std::memcpy(abi::__cxa_get_globals(), exceptions_, sizeof exceptions_);
    if (named != nullptr) std::memcpy(named, values_, named_bytes);
  }

  /// A fiber begins: with nothing.
  static void clear() noexcept {
    std::memset(static_cast<void*>(abi::__cxa_get_globals()), 0, sizeof exceptions_);
    if (named != nullptr) std::memset(named, 0, named_bytes);
  }

  /// A thread_local variable of the source, of at most 32 bytes. Set before the check.
  static inline void* named = nullptr;
  static inline std::size_t named_bytes = 0;

 private:
  std::byte exceptions_[16];
  std::byte values_[32];
};

inline rl::memory_order model_order(std::memory_order order) noexcept {
  switch (order) {
    case std::memory_order_relaxed: return rl::mo_relaxed;
    case std::memory_order_consume: return rl::mo_consume;
    case std::memory_order_acquire: return rl::mo_acquire;
    case std::memory_order_release: return rl::mo_release;
    case std::memory_order_acq_rel: return rl::mo_acq_rel;
    default: return rl::mo_seq_cst;
  }
}

inline std::memory_order order_of_failure(std::memory_order order) noexcept {
  if (order == std::memory_order_acq_rel) return std::memory_order_acquire;
  if (order == std::memory_order_release) return std::memory_order_relaxed;
  return order;
}

/// std::atomic as the checker models it. One that is made outside of a check (a static variable)
/// is a plain value.
template <class T>
class Atomic {
 public:
  Atomic() : Atomic(T()) {}
  Atomic(T value) {
    if (rl::is_ctx()) {
      new (&modelled_) Modelled(value);
      live_ = true;
    } else {
      value_ = value;
    }
  }
  Atomic(const Atomic&) = delete;
  Atomic& operator=(const Atomic&) = delete;
  ~Atomic() {
    if (live_) modelled_.~Modelled();
  }

  T load(std::memory_order order = std::memory_order_seq_cst,
         Where where = Where::current()) const noexcept {
    if (!live_) return value_;
    const FiberLocals locals;
    return modelled_.load(model_order(order), here(where));
  }
  void store(T value, std::memory_order order = std::memory_order_seq_cst,
             Where where = Where::current()) noexcept {
    if (!live_) {
      value_ = value;
      return;
    }
    const FiberLocals locals;
    modelled_.store(value, model_order(order), here(where));
  }
  T exchange(T value, std::memory_order order = std::memory_order_seq_cst,
             Where where = Where::current()) noexcept {
    if (!live_) return std::exchange(value_, value);
    const FiberLocals locals;
    return modelled_.exchange(value, model_order(order), here(where));
  }

  bool compare_exchange_weak(T& expected, T value, std::memory_order order,
                             std::memory_order failure, Where where = Where::current()) noexcept {
    if (!live_) return exchange_outside(expected, value);
    const FiberLocals locals;
    if (fails_early(expected, failure, where)) return false;
    return modelled_.compare_exchange_weak(expected, value, model_order(order), here(where),
                                           model_order(failure), here(where));
  }
  bool compare_exchange_strong(T& expected, T value, std::memory_order order,
                               std::memory_order failure, Where where = Where::current()) noexcept {
    if (!live_) return exchange_outside(expected, value);
    const FiberLocals locals;
    if (fails_early(expected, failure, where)) return false;
    return modelled_.compare_exchange_strong(expected, value, model_order(order), here(where),
                                             model_order(failure), here(where));
  }
  bool compare_exchange_weak(T& expected, T value,
                             std::memory_order order = std::memory_order_seq_cst,
                             Where where = Where::current()) noexcept {
    return compare_exchange_weak(expected, value, order, order_of_failure(order), where);
  }
  bool compare_exchange_strong(T& expected, T value,
                               std::memory_order order = std::memory_order_seq_cst,
                               Where where = Where::current()) noexcept {
    return compare_exchange_strong(expected, value, order, order_of_failure(order), where);
  }
  /// Where the expected value is plain data itself, such as a link.
  bool compare_exchange_weak(Plain<T>& expected, T value, std::memory_order order,
                             std::memory_order failure, Where where = Where::current()) noexcept {
    T known = expected;
    const bool done = compare_exchange_weak(known, value, order, failure, where);
    if (!done) expected = known;
    return done;
  }

  T fetch_add(T by, std::memory_order order = std::memory_order_seq_cst,
              Where where = Where::current()) noexcept {
    if (!live_) return std::exchange(value_, static_cast<T>(value_ + by));
    const FiberLocals locals;
    return modelled_.fetch_add(by, model_order(order), here(where));
  }
  T fetch_sub(T by, std::memory_order order = std::memory_order_seq_cst,
              Where where = Where::current()) noexcept {
    if (!live_) return std::exchange(value_, static_cast<T>(value_ - by));
    const FiberLocals locals;
    return modelled_.fetch_sub(by, model_order(order), here(where));
  }
  T fetch_or(T bits, std::memory_order order = std::memory_order_seq_cst,
             Where where = Where::current()) noexcept {
    if (!live_) return std::exchange(value_, static_cast<T>(value_ | bits));
    const FiberLocals locals;
    return modelled_.fetch_or(bits, model_order(order), here(where));
  }

  operator T() const noexcept { return load(); }
  T operator=(T value) noexcept {
    store(value);
    return value;
  }
  T operator++(int) noexcept { return fetch_add(1); }

  /// For wait() and wake_*().
  void park_while(T expected, bool timed, Where where) const noexcept {
    rl::context& context = rl::ctx();
    const FiberLocals locals;
    context.sched();
    {
      // The system compares the newest value, and orders nothing else.
      rl::preemption_disabler together(context);
      T seen = static_cast<T>(expected + 1);
      modelled_.compare_exchange_strong(seen, seen, rl::mo_relaxed, here(where), rl::mo_relaxed,
                                        here(where));
      if (seen != expected) return;
    }
    if (modelled_.wait(context, timed, true, here(where)) == rl::unpark_reason_timeout) {
      checker::time_passes();
    }
  }
  void unpark(rl::thread_id_t count, Where where) const noexcept {
    rl::context& context = rl::ctx();
    const FiberLocals locals;
    context.sched();
    modelled_.wake(context, count, here(where));
  }

 private:
  using Modelled = rl::atomic<T>;
  static rl::debug_info here(const Where& where) noexcept {
    return {where.function_name(), where.file_name(), where.line()};
  }
  /// An exchange that fails is a load, and may see an older value: which the checker leaves out.
  bool fails_early(T& expected, std::memory_order order, const Where& where) noexcept {
    if (!rl::ctx().is_random_sched() || rl::rand(4) != 0) return false;
    const T seen = modelled_.load(model_order(order), here(where));
    if (seen == expected) return false;
    expected = seen;
    return true;
  }
  bool exchange_outside(T& expected, T value) noexcept {
    const T found = value_;
    if (found == expected) {
      value_ = value;
      return true;
    }
    expected = found;
    return false;
  }

  bool live_ = false;
  union {
    mutable Modelled modelled_;
    T value_;
  };
};

/// A function that is looked up once: the checker knows no such values.
template <class Result, class... Arguments>
class Atomic<Result (*)(Arguments...)> : public std::atomic<Result (*)(Arguments...)> {
  using std::atomic<Result (*)(Arguments...)>::atomic;
};

inline std::int64_t now_ns() noexcept { return checker::now(); }
inline constexpr std::int64_t kNever = INT64_MAX;
inline std::int64_t deadline_after(std::int64_t timeout_ns) noexcept {
  return timeout_ns < 0 ? kNever : now_ns() + timeout_ns;
}

inline void yield(Where where = Where::current()) noexcept {
  const FiberLocals locals;
  rl::ctx().yield(1, {where.function_name(), where.file_name(), where.line()});
}
inline void pause(Where where = Where::current()) noexcept { yield(where); }
inline void sleep_until(std::int64_t) noexcept { checker::time_passes(); }

inline void wait(const Atomic<std::uint32_t>& word, std::uint32_t expected,
                 std::int64_t deadline_ns = kNever, Where where = Where::current()) noexcept {
  word.park_while(expected, deadline_ns != kNever, where);
}
inline void wake_one(const Atomic<std::uint32_t>& word, Where where = Where::current()) noexcept {
  word.unpark(1, where);
}
inline void wake_all(const Atomic<std::uint32_t>& word, Where where = Where::current()) noexcept {
  word.unpark(1000, where);
}

class WEIR_CAPABILITY("mutex") Mutex {
 public:
  void lock() WEIR_ACQUIRE() {
    const FiberLocals locals;
    mutex_.lock($);
  }
  void unlock() WEIR_RELEASE() {
    const FiberLocals locals;
    mutex_.unlock($);
  }

 private:
  rl::mutex mutex_;
};
using Lock = BasicLock<Mutex>;

class Condition {
 public:
  void notify_one() noexcept { condition_.notify_one($); }
  void notify_all() noexcept { condition_.notify_all($); }

 private:
  rl::condition_variable condition_;
};

/// One of the check's dynamic threads.
class Thread {
 public:
  Thread() = default;
  Thread(const std::string&, std::function<void()> body)
      : body_(std::make_unique<std::function<void()>>(std::move(body))),
        handle_(rl::ctx().create_thread(run, body_.get())) {}
  Thread(Thread&& other) noexcept
      : body_(std::move(other.body_)), handle_(std::exchange(other.handle_, nullptr)) {}
  Thread& operator=(Thread&&) = delete;
  ~Thread() { join(); }

  void join() noexcept {
    if (handle_ == nullptr) return;
    const FiberLocals locals;
    std::exchange(handle_, nullptr)->wait(false, false, $);
  }

 private:
  static void* run(void* body) {
    FiberLocals::clear();
    (*static_cast<std::function<void()>*>(body))();
    return nullptr;
  }

  std::unique_ptr<std::function<void()>> body_;
  rl::win_waitable_object* handle_ = nullptr;
};

inline bool bind_this_thread(const std::vector<unsigned>&) noexcept { return true; }
inline void run_promptly() noexcept {}

}  // namespace weir::rt::sys
