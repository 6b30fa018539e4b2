// The same pipelines in oneTBB: parallel_pipeline, by item or in chunks, and parallel_for_each with
// a feeder.
//
//   pipeline_tbb linear [--work NS] [--chunk N]   M items a second
//   pipeline_tbb recursive [--work NS]            M tasks a second
//   pipeline_tbb end                              us from the last item to the return
#include <atomic>
#include <vector>

#include <tbb/parallel_for_each.h>
#include <tbb/parallel_pipeline.h>
#include <tbb/task_arena.h>

#include "pipeline/pipeline_shapes.hpp"

namespace weir_bench {
namespace {

std::size_t this_worker() {
  return static_cast<std::size_t>(tbb::this_task_arena::current_thread_index());
}

using Chunk = std::vector<Item>;

double run_linear(std::uint64_t count, std::size_t chunk, Work work, std::atomic<double>* last) {
  Totals totals;
  std::uint64_t next = 0;
  const auto source = [&](tbb::flow_control& control) {
    Chunk items;
    items.reserve(chunk);
    while (items.size() < chunk && next < count) items.push_back(Item{next++, {}});
    if (items.empty()) control.stop();
    return items;
  };
  const auto stage = [work](Chunk items) {
    for (Item& item : items) item = work(item);
    return items;
  };
  const auto sink = [&](const Chunk& items) {
    for (const Item& item : items) totals.add(this_worker(), item);
    if (last != nullptr) last->store(now());
  };
  using tbb::filter_mode;
  const double seconds = time_of([&] {
    tbb::parallel_pipeline(8, tbb::make_filter<void, Chunk>(filter_mode::serial_in_order, source) &
                                  tbb::make_filter<Chunk, Chunk>(filter_mode::parallel, stage) &
                                  tbb::make_filter<Chunk, void>(filter_mode::parallel, sink));
  });
  totals.check(count, count * (count - 1) / 2);
  return static_cast<double>(count) / seconds;
}

double run_recursive(Work work) {
  Totals totals;
  const std::vector<Item> roots(kRoots, Item{});
  const double seconds = time_of([&] {
    tbb::parallel_for_each(roots.begin(), roots.end(),
                           [&](const Item& item, tbb::feeder<Item>& feeder) {
                             const Item worked = work(item);
                             if (worked.value == kDepth) return totals.add(this_worker(), worked);
                             feeder.add(Item{worked.value + 1, {}});
                             feeder.add(Item{worked.value + 1, {}});
                           });
  });
  totals.check(kLeaves, kLeaves * kDepth);
  return static_cast<double>(kTasks) / seconds;
}

nlohmann::json measure(const Arguments& arguments) {
  const long work_ns = arguments.number("--work", 0);
  const auto chunk = static_cast<std::size_t>(arguments.number("--chunk", 1));
  const Work work(work_ns);
  const auto value = [](auto&& run) {
    return nlohmann::json{{"value", median(repeat(1, 5, run))}};
  };
  if (arguments.verb() == "linear") {
    return value([&] { return run_linear(linear_items(work_ns), chunk, work, nullptr) / 1e6; });
  }
  if (arguments.verb() == "recursive") return value([&] { return run_recursive(work) / 1e6; });
  if (arguments.verb() == "end") {
    return value([&] {
      std::atomic<double> last{0};
      run_linear(20'000, chunk, work, &last);
      return (now() - last) * 1e6;
    });
  }
  throw std::invalid_argument("there is no pipeline '" + arguments.verb() + "'");
}

}  // namespace
}  // namespace weir_bench

int main(int argc, char** argv) { return weir_bench::run_program(argc, argv, weir_bench::measure); }
