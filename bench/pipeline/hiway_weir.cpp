// Threads of the program that take items by the verbs of HiWayLib.
//
//   hiway_weir [--threads N] [--workers N]   M tasks a second; workers: 2
#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <hiway/hiway.hpp>

#include "pipeline/pipeline_shapes.hpp"

namespace weir_bench {
namespace {

/// Takes items until the end, and puts two for each above the leaves. Returns the number of leaves.
std::uint64_t split_items(int tunnel) {
  std::uint64_t leaves = 0;
  Item item;
  while (!HiWayLib::isTerminate_h()) {
    if (!HiWayLib::get_h(&item, tunnel)) continue;
    if (item.value == kDepth) {
      ++leaves;
    } else {
      const Item child{item.value + 1, {}};
      HiWayLib::put_h(child, tunnel);
      HiWayLib::put_h(child, tunnel);
    }
    HiWayLib::endTask_h(tunnel);
  }
  return leaves;
}

/// Tasks a second.
double run(const weir::Runtime& runtime, long threads) {
  HiWayLib::use(runtime);
  int tunnel = -1;
  HiWayLib::createTunnel<Item>(tunnel, HiWayLib::CPU_TO_CPU, true);
  HiWayLib::setupService();
  std::atomic<std::uint64_t> leaves{0};
  const double seconds = time_of([&] {
    std::vector<std::jthread> all;
    for (long i = 0; i < threads; ++i) {
      all.emplace_back([&] { leaves += split_items(tunnel); });
    }
    for (std::uint64_t i = 0; i < kRoots; ++i) HiWayLib::put_h(Item{}, tunnel);
    HiWayLib::put_h(HiWayLib::endFlag_h, tunnel);
  });
  HiWayLib::shutdownService();
  if (leaves != kLeaves) throw std::runtime_error("items were lost");
  return static_cast<double>(kTasks) / seconds;
}

nlohmann::json measure(const Arguments& arguments) {
  const long threads = arguments.number("--threads", 2), workers = arguments.number("--workers", 2);
  const weir::Runtime runtime(("host:cores=" + std::to_string(workers)).c_str());
  const auto values = repeat(1, 5, [&] { return run(runtime, threads) / 1e6; });
  return {
      {"value", median(values)},
      {"config", std::to_string(threads) + " threads, " + std::to_string(workers) + " workers"}};
}

}  // namespace
}  // namespace weir_bench

int main(int argc, char** argv) { return weir_bench::run_program(argc, argv, weir_bench::measure); }
