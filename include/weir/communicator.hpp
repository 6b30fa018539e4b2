// Communicators for C++: groups of ranks and their collective operations. Header-only, C++20.
//
// Contracts are those of <weir/communicator.h>; a failure status is thrown as weir::Error.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <weir/communicator.h>
#include <weir/fabric.hpp>

namespace weir {

/// Numbers that a reduction combines.
template <class T>
concept ReducedNumber = std::is_arithmetic_v<T> && !std::is_same_v<T, bool> && sizeof(T) <= 8;

/// A group of ranks. One that a split returns ends with the object, and before its fabric.
class Communicator {
 public:
  using Timeout = std::chrono::nanoseconds;

  /// No group: that of a rank without a color.
  Communicator() = default;
  /// All ranks of a fabric, which must outlive it.
  explicit Communicator(const Fabric& fabric) : Communicator(fabric.handle()) {}
  /// The same for a fabric that C code has opened, as in weir_fabric_simulate().
  explicit Communicator(weir_fabric* fabric) : group_(weir_fabric_communicator(fabric), {false}) {}

  explicit operator bool() const noexcept { return group_ != nullptr; }
  weir_communicator* handle() const noexcept { return group_.get(); }
  unsigned rank() const noexcept { return weir_communicator_rank(handle()); }
  unsigned size() const noexcept { return weir_communicator_size(handle()); }
  /// Returns the rank of the fabric that is a rank of this group.
  unsigned fabric_rank(unsigned rank) const noexcept {
    return weir_communicator_fabric_rank(handle(), rank);
  }

  /// Ranks with the same color form a group, in the order of `key`, then of their rank.
  Communicator split(std::int64_t color, std::int64_t key = 0, Timeout timeout = forever) const {
    weir_communicator* group = nullptr;
    check(weir_communicator_split(handle(), color, key, timeout.count(), &group));
    return Communicator(group, Destroy{true});
  }
  /// One group for the ranks that share memory.
  Communicator split_by_node(Timeout timeout = forever) const {
    weir_communicator* group = nullptr;
    check(weir_communicator_split_by_node(handle(), timeout.count(), &group));
    return Communicator(group, Destroy{true});
  }

  /// The ranks that are left, after some have been lost.
  Communicator shrink(Timeout timeout = forever) const {
    weir_communicator* group = nullptr;
    check(weir_communicator_shrink(handle(), timeout.count(), &group));
    return Communicator(group, Destroy{true});
  }
  /// Makes the operations of all ranks fail. Any thread.
  void revoke() const { check(weir_communicator_revoke(handle())); }

  void barrier(Timeout timeout = forever) const {
    check(weir_communicator_barrier(handle(), timeout.count()));
  }
  template <FabricData T>
  void broadcast(unsigned root, std::span<T> data, Timeout timeout = forever) const {
    check(weir_communicator_broadcast(handle(), root, data.data(), data.size_bytes(),
                                      timeout.count()));
  }
  /// `all` has own.size() elements of each rank, on rank `root` only.
  template <FabricData T>
  void gather(unsigned root, std::span<const T> own, std::span<T> all,
              Timeout timeout = forever) const {
    if (root == WEIR_ALL_RANKS || root == rank()) require(all.size(), own.size() * size());
    check(weir_communicator_gather(handle(), root, own.data(), all.data(), own.size_bytes(),
                                   timeout.count()));
  }
  /// Returns the value of each rank.
  template <FabricData T>
  std::vector<T> all_gather(const T& own, Timeout timeout = forever) const {
    std::vector<T> all(size());
    gather(WEIR_ALL_RANKS, std::span<const T>(&own, 1), std::span(all), timeout);
    return all;
  }
  /// `all` has own.size() elements for each rank, on rank `root` only.
  template <FabricData T>
  void scatter(unsigned root, std::span<const T> all, std::span<T> own,
               Timeout timeout = forever) const {
    if (root == rank()) require(all.size(), own.size() * size());
    check(weir_communicator_scatter(handle(), root, all.data(), own.data(), own.size_bytes(),
                                    timeout.count()));
  }
  /// Both have the same number of elements for each rank.
  template <FabricData T>
  void all_to_all(std::span<const T> parts, std::span<T> received,
                  Timeout timeout = forever) const {
    require(received.size(), parts.size());
    require(parts.size() % size(), 0);
    check(weir_communicator_all_to_all(handle(), parts.data(), received.data(),
                                       parts.size_bytes() / size(), timeout.count()));
  }
  /// `counts` and `received_counts` are in elements.
  template <FabricData T>
  void all_to_all(std::span<const T> parts, std::span<const std::size_t> counts,
                  std::span<T> received, std::span<const std::size_t> received_counts,
                  Timeout timeout = forever) const {
    const auto bytes = sizes_of(counts, parts.size(), sizeof(T));
    const auto received_bytes = sizes_of(received_counts, received.size(), sizeof(T));
    check(weir_communicator_all_to_all_v(handle(), parts.data(), bytes.data(), received.data(),
                                         received_bytes.data(), timeout.count()));
  }

  /// Combines in place, by default on all ranks.
  template <ReducedNumber T>
  void reduce(std::span<T> values, weir_fabric_op op = WEIR_FABRIC_OP_SUM,
              unsigned root = WEIR_ALL_RANKS, Timeout timeout = forever) const {
    const weir_reduction reduction = reduction_of<T>(op);
    check(weir_communicator_reduce(handle(), root, values.data(), values.size(), &reduction,
                                   timeout.count()));
  }
  /// The same by a function: combine(T& into, const T& from), where `into` has the value of lower
  /// ranks. It must not throw.
  template <FabricData T, class Combine>
    requires std::is_invocable_v<Combine&, T&, const T&>
  void reduce(std::span<T> values, Combine combine, unsigned root = WEIR_ALL_RANKS,
              Timeout timeout = forever) const {
    weir_reduction reduction = WEIR_REDUCTION_INIT;
    reduction.size = sizeof(T);
    reduction.payload = &combine;
    reduction.combine = [](void* into, const void* from, std::size_t count, void* payload) {
      auto& function = *static_cast<Combine*>(payload);
      for (std::size_t i = 0; i < count; ++i) {
        function(static_cast<T*>(into)[i], static_cast<const T*>(from)[i]);
      }
    };
    check(weir_communicator_reduce(handle(), root, values.data(), values.size(), &reduction,
                                   timeout.count()));
  }
  /// Combines the values of the ranks up to this one, in place.
  template <ReducedNumber T>
  void scan(std::span<T> values, weir_fabric_op op = WEIR_FABRIC_OP_SUM,
            Timeout timeout = forever) const {
    const weir_reduction reduction = reduction_of<T>(op);
    check(weir_communicator_scan(handle(), values.data(), values.size(), &reduction,
                                 timeout.count()));
  }
  /// Combines the values of the ranks below this one; rank 0 keeps its values.
  template <ReducedNumber T>
  void exclusive_scan(std::span<T> values, weir_fabric_op op = WEIR_FABRIC_OP_SUM,
                      Timeout timeout = forever) const {
    const weir_reduction reduction = reduction_of<T>(op);
    check(weir_communicator_exclusive_scan(handle(), values.data(), values.size(), &reduction,
                                           timeout.count()));
  }

  /// Returns how a reduction combines numbers of a type.
  template <ReducedNumber T>
  static weir_reduction reduction_of(weir_fabric_op op) {
    constexpr int kLog = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
    weir_reduction reduction = WEIR_REDUCTION_INIT;
    reduction.op = op;
    if constexpr (std::is_floating_point_v<T>) {
      reduction.type = sizeof(T) == 4 ? WEIR_NUMBER_FLOAT : WEIR_NUMBER_DOUBLE;
    } else {
      constexpr int kFirst = std::is_signed_v<T> ? WEIR_NUMBER_INT8 : WEIR_NUMBER_UINT8;
      reduction.type = static_cast<weir_number>(kFirst + kLog);
    }
    return reduction;
  }

 private:
  struct Destroy {
    bool is_owned;
    void operator()(weir_communicator* group) const noexcept {
      if (is_owned) weir_communicator_destroy(group);
    }
  };
  Communicator(weir_communicator* group, Destroy destroy) : group_(group, destroy) {}

  static void require(std::size_t found, std::size_t expected) {
    if (found != expected) {
      throw Error(WEIR_STATUS_INVALID_ARGUMENT,
                  std::to_string(found) + " elements for a collective operation that needs " +
                      std::to_string(expected));
    }
  }
  std::vector<std::size_t> sizes_of(std::span<const std::size_t> counts, std::size_t available,
                                    std::size_t bytes) const {
    require(counts.size(), size());
    std::vector<std::size_t> sizes;
    std::size_t sum = 0;
    for (const std::size_t count : counts) {
      sizes.push_back(count * bytes);
      sum += count;
    }
    require(available, sum);
    return sizes;
  }

  std::unique_ptr<weir_communicator, Destroy> group_;
};

}  // namespace weir
