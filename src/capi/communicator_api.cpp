#include <weir/communicator.h>

#include <vector>

#include "capi/guard.hpp"
#include "runtime/fabric.hpp"
#include "runtime/reduction.hpp"

using namespace weir::rt;
using namespace weir::rt::capi;

namespace {

std::span<std::byte> memory_at(void* data, std::size_t bytes) {
  if (data == nullptr && bytes > 0) fail_argument("the memory for {} bytes is NULL", bytes);
  return {static_cast<std::byte*>(data), bytes};
}

std::span<const std::byte> memory_at(const void* data, std::size_t bytes) {
  return memory_at(const_cast<void*>(data), bytes);
}

/// Returns parts of memory, one for each rank.
template <class Byte>
std::vector<std::span<Byte>> parts_of(Byte* data, const std::size_t* sizes, std::size_t size,
                                      unsigned ranks) {
  std::vector<std::span<Byte>> parts;
  std::size_t offset = 0;
  for (unsigned rank = 0; rank < ranks; ++rank) {
    const std::size_t bytes = sizes != nullptr ? sizes[rank] : size;
    if (data == nullptr && bytes > 0) fail_argument("the memory for {} bytes is NULL", bytes);
    parts.emplace_back(data + offset, bytes);
    offset += bytes;
  }
  return parts;
}

void all_to_all(weir_communicator* communicator, const void* parts, const std::size_t* sizes,
                void* received, const std::size_t* received_sizes, std::size_t size,
                std::int64_t timeout_ns) {
  weir_communicator& group = weir_communicator::check(communicator);
  const auto out = parts_of(static_cast<const std::byte*>(parts), sizes, size, group.size());
  const auto in = parts_of(static_cast<std::byte*>(received), received_sizes, size, group.size());
  group.all_to_all(out, in, timeout_ns);
}

Numbers numbers_of(void* values, std::size_t count, const weir_reduction* reduction) {
  return numbers_at(values, count,
                    read_options(reduction, weir_reduction WEIR_REDUCTION_INIT, "reduction"));
}

weir_communicator* split(weir_communicator& group, std::int64_t color, std::int64_t key,
                         std::int64_t timeout_ns) {
  return group.fabric().create_communicator(group,
                                            [&](std::uint32_t number, Communicator::Part& part) {
                                              group.split({color, key, number}, timeout_ns, part);
                                            });
}

/// Returns the lowest rank that shares memory with this one.
std::int64_t node_of(Fabric& fabric) {
  const Port& port = fabric.port();
  for (Rank rank = 0; rank < port.rank(); ++rank) {
    if (port.peer_info(rank).shares_memory) return rank;
  }
  return port.rank();
}

}  // namespace

extern "C" {

weir_communicator* weir_fabric_communicator(weir_fabric* fabric) {
  weir_communicator* found = nullptr;
  guard([&] { found = &weir_fabric::check(fabric).communicator(); });
  return found;
}

weir_status weir_communicator_split(weir_communicator* communicator, int64_t color, int64_t key,
                                    int64_t timeout_ns, weir_communicator** out_communicator) {
  return guard([&] {
    weir_communicator*& result = out(out_communicator, "out_communicator");
    weir_communicator& group = weir_communicator::check(communicator);
    if (color < WEIR_NO_COLOR) {
      fail_argument("the color of a split is {}: choose one of at least 0, or WEIR_NO_COLOR",
                    color);
    }
    result = split(group, color, key, timeout_ns);
  });
}

weir_status weir_communicator_split_by_node(weir_communicator* communicator, int64_t timeout_ns,
                                            weir_communicator** out_communicator) {
  return guard([&] {
    weir_communicator*& result = out(out_communicator, "out_communicator");
    weir_communicator& group = weir_communicator::check(communicator);
    result = split(group, node_of(group.fabric()), 0, timeout_ns);
  });
}

weir_status weir_communicator_shrink(weir_communicator* communicator, int64_t timeout_ns,
                                     weir_communicator** out_communicator) {
  return guard([&] {
    weir_communicator*& result = out(out_communicator, "out_communicator");
    weir_communicator& group = weir_communicator::check(communicator);
    result = group.fabric().create_communicator(
        group, [&](std::uint32_t number, Communicator::Part& part) {
          group.shrink(number, timeout_ns, part);
        });
  });
}

weir_status weir_communicator_revoke(weir_communicator* communicator) {
  return guard([&] { weir_communicator::check(communicator).revoke(); });
}

void weir_communicator_destroy(weir_communicator* communicator) {
  if (communicator == nullptr) return;
  guard([&] {
    weir_communicator& group = weir_communicator::check(communicator);
    group.fabric().destroy_communicator(&group);
  });
}

unsigned weir_communicator_rank(const weir_communicator* communicator) {
  unsigned rank = 0;
  guard([&] { rank = weir_communicator::check(communicator).rank(); });
  return rank;
}

unsigned weir_communicator_size(const weir_communicator* communicator) {
  unsigned size = 0;
  guard([&] { size = weir_communicator::check(communicator).size(); });
  return size;
}

unsigned weir_communicator_fabric_rank(const weir_communicator* communicator, unsigned rank) {
  unsigned found = WEIR_ALL_RANKS;
  guard([&] {
    const auto& ranks = weir_communicator::check(communicator).ranks();
    if (rank < ranks.size()) found = ranks[rank];
  });
  return found;
}

weir_status weir_communicator_barrier(weir_communicator* communicator, int64_t timeout_ns) {
  return guard([&] { weir_communicator::check(communicator).barrier(timeout_ns); });
}

weir_status weir_communicator_broadcast(weir_communicator* communicator, unsigned root, void* data,
                                        size_t bytes, int64_t timeout_ns) {
  return guard([&] {
    weir_communicator::check(communicator).broadcast(root, memory_at(data, bytes), timeout_ns);
  });
}

weir_status weir_communicator_gather(weir_communicator* communicator, unsigned root,
                                     const void* own, void* all, size_t bytes, int64_t timeout_ns) {
  return guard([&] {
    weir_communicator& group = weir_communicator::check(communicator);
    const bool receives = root == WEIR_ALL_RANKS || root == group.rank();
    group.gather(root, memory_at(own, bytes),
                 receives ? memory_at(all, bytes * group.size()) : std::span<std::byte>(),
                 timeout_ns);
  });
}

weir_status weir_communicator_scatter(weir_communicator* communicator, unsigned root,
                                      const void* all, void* own, size_t bytes,
                                      int64_t timeout_ns) {
  return guard([&] {
    weir_communicator& group = weir_communicator::check(communicator);
    group.scatter(
        root,
        root == group.rank() ? memory_at(all, bytes * group.size()) : std::span<const std::byte>(),
        memory_at(own, bytes), timeout_ns);
  });
}

weir_status weir_communicator_all_to_all(weir_communicator* communicator, const void* parts,
                                         void* received, size_t bytes, int64_t timeout_ns) {
  return guard(
      [&] { all_to_all(communicator, parts, nullptr, received, nullptr, bytes, timeout_ns); });
}

weir_status weir_communicator_all_to_all_v(weir_communicator* communicator, const void* parts,
                                           const size_t* sizes, void* received,
                                           const size_t* received_sizes, int64_t timeout_ns) {
  return guard([&] {
    if (sizes == nullptr || received_sizes == nullptr) {
      fail_argument("the sizes of the parts of an all-to-all exchange are NULL");
    }
    all_to_all(communicator, parts, sizes, received, received_sizes, 0, timeout_ns);
  });
}

weir_status weir_communicator_reduce(weir_communicator* communicator, unsigned root, void* values,
                                     size_t count, const weir_reduction* reduction,
                                     int64_t timeout_ns) {
  return guard([&] {
    weir_communicator::check(communicator)
        .reduce(root, numbers_of(values, count, reduction), timeout_ns);
  });
}

weir_status weir_communicator_scan(weir_communicator* communicator, void* values, size_t count,
                                   const weir_reduction* reduction, int64_t timeout_ns) {
  return guard([&] {
    weir_communicator::check(communicator).scan(numbers_of(values, count, reduction), timeout_ns);
  });
}

weir_status weir_communicator_exclusive_scan(weir_communicator* communicator, void* values,
                                             size_t count, const weir_reduction* reduction,
                                             int64_t timeout_ns) {
  return guard([&] {
    weir_communicator::check(communicator)
        .exclusive_scan(numbers_of(values, count, reduction), timeout_ns);
  });
}
}
