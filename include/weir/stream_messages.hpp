// Messages, collective operations, one-sided operations and halos as actions of streams, for C++.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include <weir/stream_messages.h>
#include <weir/communicator.hpp>
#include <weir/fabric.hpp>
#include <weir/grid.hpp>
#include <weir/weir.hpp>

namespace weir {

/// Enqueues the send of a region of the stream's domain to a rank: weir_stream_send(). Throws
/// Error.
inline Event send(const StreamRef& stream, const Communicator& communicator, unsigned to,
                  const Region& part, std::uint32_t tag = 0) {
  weir_event event = WEIR_EVENT_INIT;
  check(weir_stream_send(stream.handle(), communicator.handle(), to, tag, part.buffer, part.region,
                         &event));
  return {stream.runtime(), event};
}

/// Enqueues the matching receive: weir_stream_receive(). Throws Error.
inline Event receive(const StreamRef& stream, const Communicator& communicator, unsigned from,
                     const Region& part, std::uint32_t tag = 0) {
  weir_event event = WEIR_EVENT_INIT;
  check(weir_stream_receive(stream.handle(), communicator.handle(), from, tag, part.buffer,
                            part.region, &event));
  return {stream.runtime(), event};
}

/// Enqueues the copy of a region of the stream's domain to the elements from `index` in the part of
/// a rank: weir_stream_put(). Throws Error.
template <FabricData T>
Event put(const StreamRef& stream, const Window<T>& window, unsigned to, std::size_t index,
          const Region& part) {
  weir_event event = WEIR_EVENT_INIT;
  check(weir_stream_put(stream.handle(), window.handle(), to, index * sizeof(T), part.buffer,
                        part.region, &event));
  return {stream.runtime(), event};
}

/// Enqueues the copy from the part of a rank: weir_stream_get(). Throws Error.
template <FabricData T>
Event get(const StreamRef& stream, const Window<T>& window, unsigned from, std::size_t index,
          const Region& part) {
  weir_event event = WEIR_EVENT_INIT;
  check(weir_stream_get(stream.handle(), window.handle(), from, index * sizeof(T), part.buffer,
                        part.region, &event));
  return {stream.runtime(), event};
}

/// Enqueues a step of a halo: weir_stream_halo(). Throws Error.
inline Event exchange(const StreamRef& stream, const Halo& halo,
                      std::initializer_list<Operand> operands) {
  weir_event event = WEIR_EVENT_INIT;
  check(
      weir_stream_halo(stream.handle(), halo.handle(), operands.begin(), operands.size(), &event));
  return {stream.runtime(), event};
}

/// Enqueues a collective operation: weir_stream_collective(). Throws Error.
inline Event collective(const StreamRef& stream, const Communicator& communicator,
                        const weir_collective& operation) {
  weir_event event = WEIR_EVENT_INIT;
  check(weir_stream_collective(stream.handle(), communicator.handle(), &operation, &event));
  return {stream.runtime(), event};
}

/// Enqueues the copy of a region of rank `root` to those of all ranks. Throws Error.
inline Event broadcast(const StreamRef& stream, const Communicator& communicator, unsigned root,
                       const Region& part) {
  weir_collective operation = WEIR_COLLECTIVE_INIT;
  operation.root = root;
  operation.buffer = part.buffer;
  operation.region = part.region;
  return collective(stream, communicator, operation);
}

/// Enqueues a reduction of the numbers of type T in a region, in place on all ranks. For a result
/// on one rank use collective(). Throws Error.
template <ReducedNumber T>
Event all_reduce(const StreamRef& stream, const Communicator& communicator, const Region& part,
                 weir_fabric_op op = WEIR_FABRIC_OP_SUM) {
  weir_collective operation = WEIR_COLLECTIVE_INIT;
  operation.kind = WEIR_COLLECTIVE_REDUCE;
  operation.root = WEIR_ALL_RANKS;
  operation.buffer = part.buffer;
  operation.region = part.region;
  operation.reduction = Communicator::reduction_of<T>(op);
  return collective(stream, communicator, operation);
}

}  // namespace weir
