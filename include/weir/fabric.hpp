// Fabrics for C++: ranks, collective operations, messages, windows. Header-only, C++20.
//
// Contracts are those of <weir/fabric.h>; a failure status is thrown as weir::Error.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include <weir/fabric.h>
#include <weir/weir.hpp>

namespace weir {

/// Words that a window's memory or a message is made of.
template <class T>
concept FabricData = std::is_trivially_copyable_v<T>;

/// One rank's membership. Leaves the fabric when it ends.
class Fabric {
 public:
  explicit Fabric(const weir_fabric_options& options = WEIR_FABRIC_OPTIONS_INIT) {
    weir_fabric* fabric = nullptr;
    check(weir_fabric_open(&options, &fabric));
    fabric_.reset(fabric);
  }

  Fabric(Fabric&&) noexcept = default;
  /// Ends the former membership before the functions that it calls.
  Fabric& operator=(Fabric&& other) noexcept {
    fabric_ = std::move(other.fabric_);
    handler_ = std::move(other.handler_);
    return *this;
  }

  weir_fabric* handle() const noexcept { return fabric_.get(); }
  unsigned rank() const noexcept { return weir_fabric_rank(handle()); }
  unsigned ranks() const noexcept { return weir_fabric_ranks(handle()); }
  bool is_alive(unsigned rank) const noexcept { return weir_fabric_is_alive(handle(), rank); }
  const char* link(unsigned rank) const noexcept { return weir_fabric_link(handle(), rank); }

  void barrier(std::chrono::nanoseconds timeout = forever) const {
    check(weir_fabric_barrier(handle(), timeout.count()));
  }
  /// Reduces in place.
  void reduce(std::span<std::int64_t> values, weir_fabric_op op,
              std::chrono::nanoseconds timeout = forever) const {
    check(weir_fabric_reduce_int64(handle(), values.data(), values.size(), op, timeout.count()));
  }
  void reduce(std::span<double> values, weir_fabric_op op,
              std::chrono::nanoseconds timeout = forever) const {
    check(weir_fabric_reduce_double(handle(), values.data(), values.size(), op, timeout.count()));
  }
  /// Returns the sum over all ranks.
  template <class Number>
    requires std::is_same_v<Number, std::int64_t> || std::is_same_v<Number, double>
  Number sum(Number value) const {
    reduce(std::span<Number>(&value, 1), WEIR_FABRIC_OP_SUM);
    return value;
  }
  template <FabricData T>
  void broadcast(unsigned root, std::span<T> data,
                 std::chrono::nanoseconds timeout = forever) const {
    check(weir_fabric_broadcast(handle(), root, data.data(), data.size_bytes(), timeout.count()));
  }

  /// Takes messages: code(unsigned from, std::span<const std::byte> message), which must not throw.
  /// An empty handler queues messages. A handler may set another one.
  using Handler = std::function<void(unsigned from, std::span<const std::byte> message)>;
  void listen(Handler handler) {
    Held held = handler ? std::make_shared<Handler>(std::move(handler)) : nullptr;
    check(weir_fabric_listen(handle(), nullptr, nullptr));
    *handler_ = std::move(held);
    if (*handler_ != nullptr) check(weir_fabric_listen(handle(), &take, handler_.get()));
  }
  template <FabricData T>
  void send(unsigned to, std::span<const T> message) const {
    check(weir_fabric_send(handle(), to, message.data(), message.size_bytes()));
  }
  /// Returns whether a message arrived.
  bool progress(std::chrono::nanoseconds timeout = forever) const {
    const weir_status status = weir_fabric_progress(handle(), timeout.count());
    if (status == WEIR_STATUS_TIMEOUT) return false;
    check(status);
    return true;
  }

 private:
  struct Close {
    void operator()(weir_fabric* fabric) const noexcept { weir_fabric_close(fabric); }
  };

  using Held = std::shared_ptr<Handler>;

  static void take(unsigned from, const void* message, std::size_t bytes, void* handler) noexcept {
    const Held held = *static_cast<const Held*>(handler);  // until it returns
    (*held)(from, {static_cast<const std::byte*>(message), bytes});
  }

  std::unique_ptr<Held> handler_ = std::make_unique<Held>();
  std::unique_ptr<weir_fabric, Close> fabric_;
};

/// Memory of all ranks, as elements of one type. Ends on this rank with the object.
template <FabricData T>
class Window {
 public:
  /// Collective: memory that weir allocates, zeroed.
  Window(const Fabric& fabric, std::size_t count, std::chrono::nanoseconds timeout = forever)
      : Window(fabric.handle(), nullptr, count, timeout) {}
  /// Collective: memory of the caller, which must outlive the window.
  Window(const Fabric& fabric, std::span<T> memory, std::chrono::nanoseconds timeout = forever)
      : Window(fabric.handle(), memory.data(), memory.size(), timeout) {}
  /// The same for a fabric that C code has opened, as in weir_fabric_simulate().
  Window(weir_fabric* fabric, std::size_t count, std::chrono::nanoseconds timeout = forever)
      : Window(fabric, nullptr, count, timeout) {}
  Window(weir_fabric* fabric, std::span<T> memory, std::chrono::nanoseconds timeout = forever)
      : Window(fabric, memory.data(), memory.size(), timeout) {}

  weir_window* handle() const noexcept { return window_.get(); }
  /// This rank's part.
  std::span<T> memory() const noexcept {
    return {static_cast<T*>(weir_window_memory(handle())), count_};
  }

  /// `data` must stay as it is until flush().
  void put(unsigned rank, std::size_t index, std::span<const T> data) const {
    check(weir_window_put(handle(), rank, index * sizeof(T), data.data(), data.size_bytes()));
  }
  void get(unsigned rank, std::size_t index, std::span<T> data) const {
    check(weir_window_get(handle(), rank, index * sizeof(T), data.data(), data.size_bytes()));
  }
  std::int64_t fetch_add(unsigned rank, std::size_t index, std::int64_t operand) const
    requires std::is_same_v<T, std::int64_t>
  {
    std::int64_t old = 0;
    check(weir_window_fetch_add(handle(), rank, index * sizeof(T), operand, &old));
    return old;
  }
  std::int64_t compare_swap(unsigned rank, std::size_t index, std::int64_t expected,
                            std::int64_t desired) const
    requires std::is_same_v<T, std::int64_t>
  {
    std::int64_t old = 0;
    check(weir_window_compare_swap(handle(), rank, index * sizeof(T), expected, desired, &old));
    return old;
  }
  void flush(unsigned rank, std::chrono::nanoseconds timeout = forever) const {
    check(weir_window_flush(handle(), rank, timeout.count()));
  }

 private:
  struct Destroy {
    void operator()(weir_window* window) const noexcept { weir_window_destroy(window); }
  };

  Window(weir_fabric* fabric, T* memory, std::size_t count, std::chrono::nanoseconds timeout)
      : count_(count) {
    weir_window* window = nullptr;
    check(weir_window_create(fabric, memory, count * sizeof(T), timeout.count(), &window));
    window_.reset(window);
  }

  std::size_t count_;
  std::unique_ptr<weir_window, Destroy> window_;
};

}  // namespace weir
