// Small puts through a conveyor: of blocks of so many bytes (--block) and items (--block-items), so
// many of them in flight (--in-flight); 0: as it chooses.
#include <cstdio>

#include <weir/conveyor.hpp>
#include <weir/fabric.hpp>

#include "common/halves.hpp"
#include "common/launch.hpp"
#include "common/mpirun.hpp"
#include "fabric/put_pattern.hpp"

namespace weir_bench {
namespace {

constexpr std::size_t kAtOnce = 64;

void put_all(const weir::Producer& producer, const PutPattern& pattern,
             const LargePages<std::uint64_t>& offsets, const LargePages<std::byte>& items) {
  for (std::size_t at = 0; at < offsets.size(); at += kAtOnce) {
    const std::size_t count = std::min(kAtOnce, offsets.size() - at);
    weir::check(weir_producer_put(producer.handle(), 1, offsets.data() + at,
                                  items.data() + at * pattern.bytes(), pattern.bytes(), count));
  }
  producer.flush();
}

/// What one rank does; rank 0 prints.
void work(const Arguments& arguments) {
  const PutPattern pattern(arguments);
  const weir::Fabric fabric;
  const bool puts = fabric.rank() == 0;
  const LargePages<std::byte> table(puts ? 0 : pattern.table_bytes());
  weir::ConveyorOptions options;
  options.memory = table.span();
  options.block_bytes = static_cast<std::size_t>(arguments.number("--block", 0));
  options.block_items = static_cast<std::size_t>(arguments.number("--block-items", 0));
  options.blocks_in_flight = static_cast<std::size_t>(arguments.number("--in-flight", 0));
  const weir::Conveyor conveyor(fabric, options);
  const weir::Producer producer = conveyor.producer();
  const auto offsets = puts ? pattern.offsets() : LargePages<std::uint64_t>();
  const auto items = puts ? pattern.payload() : LargePages<std::byte>();
  const auto values = repeat(1, arguments.number("--repeats", 3), [&] {
    conveyor.finish();
    const double seconds = time_of([&] {
      if (puts) put_all(producer, pattern, offsets, items);
      conveyor.finish();
    });
    return pattern.gigabytes() / seconds;
  });
  if (!puts) return pattern.check(table.data());
  const weir_conveyor_info info = conveyor.info();
  const nlohmann::json line = {
      {"value", median(values)},
      {"wire_per_payload",
       static_cast<double>(info.wire_bytes) / static_cast<double>(info.item_bytes)},
      {"blocks", info.blocks},
      {"config", "weir conveyor, two processes, " + arguments.text("--network", "shm")}};
  std::printf("%s\n", line.dump().c_str());
}

}  // namespace
}  // namespace weir_bench

int main(int argc, char** argv) {
  using namespace weir_bench;
  try {
    const Arguments arguments(argc, argv);
    leave_cores_to_halves();
    if (!under_mpirun()) {
      if (wants_mpirun(arguments)) become_mpirun(arguments, argc, argv);
      if (std::getenv("WEIR_RANK") == nullptr) return launch(2, argc, argv);
    }
    take_half();
    work(arguments);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
