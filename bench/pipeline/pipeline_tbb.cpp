// The same pipelines in oneTBB: parallel_pipeline, by item or in chunks, parallel_for_each with a
// feeder, and flow graphs.
//
//   pipeline_tbb linear [--work NS] [--chunk N] [--items N]   M items a second
//   pipeline_tbb recursive [--work NS]                        M tasks a second
//   pipeline_tbb end                                          us from the last item to the return
//   pipeline_tbb bubble                                       us of processor time in 20 ms of
//   silence pipeline_tbb graph-linear [--work NS] [--items N]         by nodes of a flow graph
//   pipeline_tbb graph-recursive [--work NS]
#include <atomic>
#include <chrono>
#include <ctime>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <tbb/flow_graph.h>
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

double run_linear(std::uint64_t count, std::size_t chunk, Work work, End* end) {
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
    if (end != nullptr) end->last = now();
  };
  using tbb::filter_mode;
  const double seconds = time_of([&] {
    tbb::parallel_pipeline(8, tbb::make_filter<void, Chunk>(filter_mode::serial_in_order, source) &
                                  tbb::make_filter<Chunk, Chunk>(filter_mode::parallel, stage) &
                                  tbb::make_filter<Chunk, void>(filter_mode::parallel, sink));
  });
  if (end != nullptr) end->returned = now();
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

/// Processor time of the process while the source gives nothing for 20 ms.
double bubble() {
  using tbb::filter_mode;
  int calls = 0, seen = 0;
  double used = 0;
  const auto source = [&](tbb::flow_control& control) {
    if (++calls == 2) {
      const std::clock_t begin = std::clock();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      used = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    } else if (calls == 3) {
      control.stop();
    }
    return Item{};
  };
  tbb::parallel_pipeline(
      8, tbb::make_filter<void, Item>(filter_mode::serial_in_order, source) &
             tbb::make_filter<Item, void>(filter_mode::serial_in_order, [&](Item) { ++seen; }));
  if (seen != 2) throw std::runtime_error("items were lost");
  return used * 1e6;
}

double run_linear_graph(std::uint64_t count, Work work) {
  namespace flow = tbb::flow;
  Totals totals;
  flow::graph graph;
  std::uint64_t next = 0;
  flow::input_node<Item> source(graph, [&](tbb::flow_control& control) {
    if (next == count) control.stop();
    return Item{next == count ? 0 : next++, {}};
  });
  flow::limiter_node<Item> limit(graph, 64);  // else all items are in memory at once
  flow::function_node<Item, Item> stage(graph, flow::unlimited, work);
  flow::function_node<Item, flow::continue_msg> sink(graph, flow::unlimited, [&](const Item& item) {
    totals.add(this_worker(), item);
    return flow::continue_msg();
  });
  flow::make_edge(source, limit);
  flow::make_edge(limit, stage);
  flow::make_edge(stage, sink);
  flow::make_edge(sink, limit.decrementer());
  const double seconds = time_of([&] {
    source.activate();
    graph.wait_for_all();
  });
  totals.check(count, count * (count - 1) / 2);
  return static_cast<double>(count) / seconds;
}

double run_recursive_graph(Work work) {
  namespace flow = tbb::flow;
  using Node = flow::multifunction_node<Item, std::tuple<Item>>;
  Totals totals;
  flow::graph graph;
  Node split(graph, flow::unlimited, [&](const Item& item, Node::output_ports_type& ports) {
    const Item worked = work(item);
    if (worked.value == kDepth) return totals.add(this_worker(), worked);
    for (int child = 0; child < 2; ++child) std::get<0>(ports).try_put(Item{worked.value + 1, {}});
  });
  flow::make_edge(flow::output_port<0>(split), split);
  const double seconds = time_of([&] {
    for (std::uint64_t root = 0; root < kRoots; ++root) split.try_put(Item{});
    graph.wait_for_all();
  });
  totals.check(kLeaves, kLeaves * kDepth);
  return static_cast<double>(kTasks) / seconds;
}

nlohmann::json measure(const Arguments& arguments) {
  const long work_ns = arguments.number("--work", 0);
  const auto chunk = static_cast<std::size_t>(arguments.number("--chunk", 1));
  const auto items = static_cast<std::uint64_t>(
      arguments.number("--items", static_cast<long>(linear_items(work_ns))));
  const Work work(work_ns);
  const auto value = [](auto&& run, long repeats = 5) {
    return nlohmann::json{
        {"value", median(repeat(1, repeats, run))},
        {"config", std::to_string(tbb::this_task_arena::max_concurrency()) + " threads"}};
  };
  if (arguments.verb() == "linear") {
    return value([&] { return run_linear(items, chunk, work, nullptr) / 1e6; });
  }
  if (arguments.verb() == "recursive") return value([&] { return run_recursive(work) / 1e6; });
  if (arguments.verb() == "graph-linear") {
    return value([&] { return run_linear_graph(items, work) / 1e6; });
  }
  if (arguments.verb() == "graph-recursive") {
    return value([&] { return run_recursive_graph(work) / 1e6; });
  }
  if (arguments.verb() == "bubble") return value(bubble);
  if (arguments.verb() == "end") {
    return value(
        [&] { return end_us([&](End& end) { run_linear(kItemsBeforeEnd, chunk, work, &end); }); },
        kEnds);
  }
  throw std::invalid_argument("there is no pipeline '" + arguments.verb() + "'");
}

}  // namespace
}  // namespace weir_bench

int main(int argc, char** argv) { return weir_bench::run_program(argc, argv, weir_bench::measure); }
