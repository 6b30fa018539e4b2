#include <weir/conveyor.h>

#include <algorithm>

#include "capi/guard.hpp"
#include "runtime/conveyor.hpp"
#include "runtime/fabric.hpp"

using namespace weir::rt;
using namespace weir::rt::capi;

namespace {

void put(weir_producer* producer, const ItemType& type, unsigned rank, const uint64_t* offsets,
         const void* items, size_t count) {
  weir_producer& live = weir_producer::check(producer);
  if (count > 0 && items == nullptr) fail_argument("the items are NULL: there are {}", count);
  if (count > 0 && offsets == nullptr && type.kind != ItemKind::send) {
    fail_argument("the offsets are NULL: there are {}", count);
  }
  live.way.put(type, rank, offsets, static_cast<const std::byte*>(items), count);
}

/// Converts a size to the narrower field; a size that does not fit is invalid.
std::uint32_t narrow(size_t bytes) noexcept {
  return static_cast<std::uint32_t>(std::min<size_t>(bytes, UINT32_MAX));
}

}  // namespace

extern "C" {

weir_status weir_conveyor_create(weir_fabric* fabric, const weir_conveyor_options* options,
                                 weir_conveyor** out_conveyor) {
  return guard([&] {
    weir_conveyor*& result = out(out_conveyor, "out_conveyor");
    weir_fabric& live = weir_fabric::check(fabric);
    result = live.create_conveyor(
        read_options(options, weir_conveyor_options WEIR_CONVEYOR_OPTIONS_INIT, "options"));
  });
}

void weir_conveyor_destroy(weir_conveyor* conveyor) {
  if (conveyor == nullptr) return;
  guard([&] {
    weir_conveyor& live = weir_conveyor::check(conveyor);
    live.conveyor.check_may_wait();
    live.owner.destroy(&live);
  });
}

weir_status weir_conveyor_finish(weir_conveyor* conveyor, int64_t timeout_ns) {
  return guard([&] { weir_conveyor::check(conveyor).conveyor.finish(timeout_ns); });
}

weir_status weir_conveyor_get_info(weir_conveyor* conveyor, weir_conveyor_info* out_info) {
  return guard([&] {
    const weir_conveyor_info info = weir_conveyor::check(conveyor).conveyor.counts();
    write_info(out_info, info, "out_info");
  });
}

weir_status weir_producer_open(weir_conveyor* conveyor, weir_producer** out_producer) {
  return guard([&] {
    weir_producer*& result = out(out_producer, "out_producer");
    result = weir_conveyor::check(conveyor).open_producer();
  });
}

void weir_producer_close(weir_producer* producer) {
  if (producer == nullptr) return;
  guard([&] {
    weir_producer& live = weir_producer::check(producer);
    live.conveyor.conveyor.check_may_wait();
    live.conveyor.close_producer(&live);
  });
}

weir_status weir_producer_put(weir_producer* producer, unsigned rank, const uint64_t* offsets,
                              const void* items, size_t item_bytes, size_t count) {
  return guard([&] {
    put(producer, {ItemKind::put, 0, narrow(item_bytes)}, rank, offsets, items, count);
  });
}

weir_status weir_producer_add(weir_producer* producer, unsigned rank, const uint64_t* offsets,
                              const int64_t* values, size_t count) {
  return guard([&] {
    put(producer, {ItemKind::add, 0, sizeof *values}, rank, offsets, values, count);
  });
}

weir_status weir_producer_send(weir_producer* producer, unsigned rank, unsigned handler,
                               const void* items, size_t item_bytes, size_t count) {
  return guard([&] {
    const auto number = static_cast<std::uint16_t>(std::min<unsigned>(handler, UINT16_MAX));
    put(producer, {ItemKind::send, number, narrow(item_bytes)}, rank, nullptr, items, count);
  });
}

weir_status weir_producer_flush(weir_producer* producer, int64_t timeout_ns) {
  return guard([&] { weir_producer::check(producer).way.flush(timeout_ns); });
}
}
