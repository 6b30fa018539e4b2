#include "runtime/conveyor.hpp"

#include <list>
#include <utility>

#include "base/error.hpp"

using namespace weir::rt;

namespace {

constexpr std::size_t kMostHandlers = 256;
constexpr std::size_t kLeastBlock = 1024, kMostBlock = std::size_t{4} << 20;
constexpr std::size_t kMostInFlight = 1 << 16;
constexpr std::int64_t kUsualTimeout = 60'000'000'000;

std::size_t in_range(std::size_t value, std::size_t least, std::size_t most, const char* name) {
  if (value < least || value > most) {
    fail_argument("{} is {}: it must be {} to {}", name, value, least, most);
  }
  return value;
}

ConveyorSetup::Handler handler_of(const weir_conveyor_handler& handler, std::size_t number,
                                  const std::string& conveyor) {
  return [=](Rank from, const std::byte* items, std::size_t count) -> Outcome {
    const weir_items given{items, count, handler.item_bytes, from, handler.payload};
    const weir_status status = handler.function(&given);
    if (status == WEIR_STATUS_OK) return {};
    return failed_outcome(status, fmt::format("handler {} of conveyor '{}' returned {} for items "
                                              "of rank {}",
                                              number, conveyor, status_name(status), from)
                                      .c_str());
  };
}

void add_handlers(ConveyorSetup& setup, const weir_conveyor_options& options) {
  in_range(options.handler_count, 0, kMostHandlers, "handler_count");
  if (options.handler_count > 0 && options.handlers == nullptr) {
    fail_argument("handlers is NULL: handler_count says {}", options.handler_count);
  }
  for (std::size_t number = 0; number < options.handler_count; ++number) {
    const weir_conveyor_handler& handler = options.handlers[number];
    if (handler.function == nullptr) fail_argument("the function of handler {} is NULL", number);
    if (handler.item_bytes % kItemStep != 0) {
      fail_argument("the items of handler {} have {} bytes: it must be a multiple of {}", number,
                    handler.item_bytes, kItemStep);
    }
    setup.handler_bytes.push_back(static_cast<std::uint32_t>(
        in_range(handler.item_bytes, kItemStep, kLargestItem, "item_bytes of a handler")));
    setup.handlers.push_back(handler_of(handler, number, setup.name));
  }
}

/// With a seed the age of blocks is ignored unless the program sets a limit, because the seed, not
/// the time, decides the order.
ConveyorSetup setup_of(const weir_conveyor_options& options, bool seeded) {
  ConveyorSetup setup;
  setup.name = options.name != nullptr ? options.name : "conveyor";
  if (options.memory == nullptr && options.bytes > 0) {
    fail_argument("memory is NULL: bytes says {}", options.bytes);
  }
  setup.memory = static_cast<std::byte*>(options.memory);
  setup.bytes = options.bytes;
  add_handlers(setup, options);
  if (options.block_bytes > 0) {
    setup.block_bytes = in_range(options.block_bytes, kLeastBlock, kMostBlock, "block_bytes");
  }
  setup.block_items = options.block_items;
  if (options.blocks_in_flight > 0) {
    setup.blocks_in_flight =
        in_range(options.blocks_in_flight, 1, kMostInFlight, "blocks_in_flight");
  }
  if (options.age_ns != 0 || seeded) setup.age_ns = options.age_ns != 0 ? options.age_ns : -1;
  setup.timeout_ns = options.timeout_ns != 0 ? options.timeout_ns : kUsualTimeout;
  return setup;
}

}  // namespace

weir_producer::weir_producer(weir_conveyor& owner) : conveyor(owner), way(owner.conveyor) {}

const std::string& weir_producer::name() const noexcept { return conveyor.name(); }

weir_conveyor::weir_conveyor(OwnedList<weir_conveyor>& list, ConveyorHub& hub,
                             Collectives& collectives, const weir_conveyor_options& options)
    : owner(list), conveyor(hub, collectives, setup_of(options, hub.port().info().seeded)) {}

weir_producer* weir_conveyor::open_producer() {
  std::list<Owned<weir_producer>> made(1);
  made.front().reset(new weir_producer(*this));
  return producers_.add(std::move(made));
}
