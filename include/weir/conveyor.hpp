// Conveyors for C++: typed items, and lambdas for handlers. Header-only, C++20.
//
// Contracts are those of <weir/conveyor.h>; a failure status is thrown as weir::Error.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <weir/conveyor.h>
#include <weir/fabric.hpp>
#include <weir/weir.hpp>

namespace weir {

/// A type whose values a conveyor carries.
template <class T>
concept ConveyorItem = std::is_trivially_copyable_v<T> && sizeof(T) % 8 == 0 && sizeof(T) <= 256;

/// The number of a handler, and its item type.
template <ConveyorItem T>
struct HandlerOf {
  unsigned number = 0;
};

/// The memory and handlers of a conveyor on this rank, set up before it.
class ConveyorOptions {
 public:
  std::string name = "conveyor";
  std::span<std::byte> memory;  ///< that the other ranks put to
  std::size_t block_bytes = 0;
  std::size_t block_items = 0;
  std::size_t blocks_in_flight = 0;
  std::chrono::nanoseconds age{0};
  std::chrono::nanoseconds timeout{0};

  /// Adds a handler: code(std::span<const T> items, unsigned from), which must not throw. All ranks
  /// add theirs in the same order.
  template <ConveyorItem T, class Code>
  HandlerOf<T> handle(Code code) {
    auto held = std::make_shared<Code>(std::move(code));
    handlers_.push_back({&run<T, Code>, held.get(), sizeof(T)});
    held_.push_back(std::move(held));
    return {static_cast<unsigned>(handlers_.size() - 1)};
  }

 private:
  friend class Conveyor;

  template <class T, class Code>
  static weir_status run(const weir_items* items) noexcept {
    const std::span<const T> given(static_cast<const T*>(items->items), items->count);
    (*static_cast<Code*>(items->payload))(given, items->from);
    return WEIR_STATUS_OK;
  }

  std::vector<weir_conveyor_handler> handlers_;
  std::vector<std::shared_ptr<void>> held_;
};

/// One thread's access to a conveyor. Closed when destroyed: items are lost unless it was flushed.
class Producer {
 public:
  Producer() = default;
  explicit Producer(weir_producer* owned) noexcept : producer_(owned) {}
  weir_producer* handle() const noexcept { return producer_.get(); }

  template <ConveyorItem T>
  void put(unsigned rank, std::uint64_t offset, const T& item) const {
    check(weir_producer_put(producer_.get(), rank, &offset, &item, sizeof item, 1));
  }
  /// As many offsets as items.
  template <ConveyorItem T>
  void put(unsigned rank, std::span<const std::uint64_t> offsets, std::span<const T> items) const {
    check(weir_producer_put(producer_.get(), rank, offsets.data(), items.data(), sizeof(T),
                            items.size()));
  }
  void add(unsigned rank, std::uint64_t offset, std::int64_t value) const {
    check(weir_producer_add(producer_.get(), rank, &offset, &value, 1));
  }
  /// As many offsets as values.
  void add(unsigned rank, std::span<const std::uint64_t> offsets,
           std::span<const std::int64_t> values) const {
    check(weir_producer_add(producer_.get(), rank, offsets.data(), values.data(), values.size()));
  }
  template <ConveyorItem T>
  void send(unsigned rank, HandlerOf<T> handler, const T& item) const {
    check(weir_producer_send(producer_.get(), rank, handler.number, &item, sizeof item, 1));
  }
  template <ConveyorItem T>
  void send(unsigned rank, HandlerOf<T> handler, std::span<const T> items) const {
    check(weir_producer_send(producer_.get(), rank, handler.number, items.data(), sizeof(T),
                             items.size()));
  }

  void flush(std::chrono::nanoseconds timeout = forever) const {
    check(weir_producer_flush(producer_.get(), timeout.count()));
  }

 private:
  detail::Owner<weir_producer, weir_producer_close> producer_;
};

/// Sends small items to other ranks.
class Conveyor {
 public:
  Conveyor(const Fabric& fabric, ConveyorOptions options)
      : Conveyor(fabric.handle(), std::move(options)) {}
  /// For a fabric that C code has opened, as in weir_fabric_simulate().
  Conveyor(weir_fabric* fabric, ConveyorOptions options) : held_(std::move(options.held_)) {
    weir_conveyor_options given = WEIR_CONVEYOR_OPTIONS_INIT;
    given.name = options.name.c_str();
    given.memory = options.memory.data();
    given.bytes = options.memory.size();
    given.handlers = options.handlers_.data();
    given.handler_count = options.handlers_.size();
    given.block_bytes = options.block_bytes;
    given.block_items = options.block_items;
    given.blocks_in_flight = options.blocks_in_flight;
    given.age_ns = options.age.count();
    given.timeout_ns = options.timeout.count();
    weir_conveyor* made = nullptr;
    check(weir_conveyor_create(fabric, &given, &made));
    conveyor_.reset(made);
  }
  Conveyor(Conveyor&&) noexcept = default;
  /// Destroys the former conveyor before the functions that it calls.
  Conveyor& operator=(Conveyor&& other) noexcept {
    conveyor_ = std::move(other.conveyor_);
    held_ = std::move(other.held_);
    return *this;
  }

  weir_conveyor* handle() const noexcept { return conveyor_.get(); }

  Producer producer() const {
    weir_producer* made = nullptr;
    check(weir_producer_open(conveyor_.get(), &made));
    return Producer(made);
  }

  void finish(std::chrono::nanoseconds timeout = forever) const {
    check(weir_conveyor_finish(conveyor_.get(), timeout.count()));
  }

  weir_conveyor_info info() const {
    weir_conveyor_info found = WEIR_CONVEYOR_INFO_INIT;
    check(weir_conveyor_get_info(conveyor_.get(), &found));
    return found;
  }

 private:
  std::vector<std::shared_ptr<void>> held_;  // outlives the conveyor
  detail::Owner<weir_conveyor, weir_conveyor_destroy> conveyor_;
};

}  // namespace weir
