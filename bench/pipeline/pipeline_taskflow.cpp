// The same pipelines in Taskflow: tf::Pipeline with 8 lines, and tasks that start tasks.
//
//   pipeline_taskflow linear [--work NS] [--items N]   M items a second
//   pipeline_taskflow recursive [--work NS]            M tasks a second
//   pipeline_taskflow end                              us from the last item to the return
#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <thread>

#include <taskflow/algorithm/pipeline.hpp>
#include <taskflow/taskflow.hpp>

#include "pipeline/pipeline_shapes.hpp"

namespace weir_bench {
namespace {

constexpr std::size_t kLines = 8;

std::size_t cores() { return std::max(1u, std::thread::hardware_concurrency()); }

std::size_t this_worker(tf::Executor& executor) {
  return static_cast<std::size_t>(executor.this_worker_id());
}

/// Items a second. What is between two stages is the program's: an item for each line.
double run_linear(std::uint64_t count, Work work, End* end) {
  Totals totals;
  std::array<Item, kLines> items{};
  tf::Executor executor(cores());
  tf::Taskflow flow;
  tf::Pipeline pipeline(
      kLines,
      tf::Pipe{tf::PipeType::SERIAL,
               [&](tf::Pipeflow& at) {
                 if (at.token() == count) return at.stop();
                 items[at.line()] = Item{at.token(), {}};
               }},
      tf::Pipe{tf::PipeType::PARALLEL,
               [&](tf::Pipeflow& at) { items[at.line()] = work(items[at.line()]); }},
      tf::Pipe{tf::PipeType::PARALLEL, [&](tf::Pipeflow& at) {
                 totals.add(this_worker(executor), items[at.line()]);
                 if (end != nullptr) end->last = now();
               }});
  flow.composed_of(pipeline);
  const double seconds = time_of([&] { executor.run(flow).wait(); });
  if (end != nullptr) end->returned = now();
  totals.check(count, count * (count - 1) / 2);
  return static_cast<double>(count) / seconds;
}

double run_recursive(Work work) {
  Totals totals;
  tf::Executor executor(cores());
  const std::function<void(Item)> task = [&](Item item) {
    const Item worked = work(item);
    if (worked.value == kDepth) return totals.add(this_worker(executor), worked);
    for (int child = 0; child < 2; ++child) {
      executor.silent_async([&task, next = Item{worked.value + 1, {}}] { task(next); });
    }
  };
  const double seconds = time_of([&] {
    for (std::uint64_t root = 0; root < kRoots; ++root) {
      executor.silent_async([&task] { task(Item{}); });
    }
    executor.wait_for_all();
  });
  totals.check(kLeaves, kLeaves * kDepth);
  return static_cast<double>(kTasks) / seconds;
}

nlohmann::json measure(const Arguments& arguments) {
  const long work_ns = arguments.number("--work", 0);
  const auto items = static_cast<std::uint64_t>(
      arguments.number("--items", static_cast<long>(linear_items(work_ns))));
  const Work work(work_ns);
  const auto value = [](auto&& run, long repeats = 5) {
    return nlohmann::json{{"value", median(repeat(1, repeats, run))},
                          {"config", std::to_string(cores()) + " threads"}};
  };
  if (arguments.verb() == "linear") {
    return value([&] { return run_linear(items, work, nullptr) / 1e6; });
  }
  if (arguments.verb() == "recursive") return value([&] { return run_recursive(work) / 1e6; });
  if (arguments.verb() == "end") {
    return value([&] { return end_us([&](End& end) { run_linear(kItemsBeforeEnd, work, &end); }); },
                 kEnds);
  }
  throw std::invalid_argument("there is no pipeline '" + arguments.verb() + "'");
}

}  // namespace
}  // namespace weir_bench

int main(int argc, char** argv) { return weir_bench::run_program(argc, argv, weir_bench::measure); }
