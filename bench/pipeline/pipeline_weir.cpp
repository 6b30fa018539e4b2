// Pipelines of weir.
//
//   pipeline_weir linear|recursive [--work NS] [--workers N] [--relief 0|1|2]   M items or tasks a
//   second; relief: both, warp, off
//   pipeline_weir loop [--work NS]                             the items of linear in a loop,
//   without weir pipeline_weir end [--workers N]                            us from the last item
//   to the return pipeline_weir end-of-wait [--workers N]                    of run(), or of wait()
//   by no worker pipeline_weir bubble [--workers N]                         us of processor time in
//   20 ms silence
#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include <ctime>

#include <weir/pipeline.hpp>

#include "pipeline/pipeline_shapes.hpp"

namespace weir_bench {
namespace {

using weir::into;
using weir::Outlet;
using weir::StageContext;

class Pipelines {
 public:
  explicit Pipelines(const Arguments& arguments)
      : runtime_("host"),
        place_(runtime_.domain(std::size_t{0})
                   .place(static_cast<std::size_t>(arguments.number("--workers", 0)))),
        relief_(static_cast<weir_relief>(arguments.number("--relief", WEIR_RELIEF_BOTH))),
        work_ns_(arguments.number("--work", 0)),
        work_(work_ns_) {}

  std::string config() const { return std::to_string(place_.cores()) + " workers"; }

  /// Items a second.
  double linear() const {
    return run_linear(linear_items(work_ns_) / (relief_ == WEIR_RELIEF_OFF ? 16 : 1), nullptr,
                      [](const weir::Pipeline& pipeline) { pipeline.run(); });
  }

  double loop() const {
    Totals totals;
    const std::uint64_t count = linear_items(work_ns_);
    const double seconds = time_of([&] {
      for (std::uint64_t i = 0; i < count; ++i) totals.add(0, work_(Item{i, {}}));
    });
    totals.check(count, count * (count - 1) / 2);
    return static_cast<double>(count) / seconds;
  }

  double end_of_run() const {
    return end_of([](const weir::Pipeline& pipeline) { pipeline.run(); });
  }
  double end_of_wait() const {
    return end_of([](const weir::Pipeline& pipeline) {
      pipeline.start();
      pipeline.wait();
    });
  }

  /// Tasks a second.
  double recursive() const {
    Totals totals;
    const weir::Pipeline pipeline = make();
    const auto tasks = pipeline.tunnel<Item>("tasks");
    const auto leaves = pipeline.tunnel<Item>("leaves");
    pipeline.source("roots", into(tasks), [n = std::uint64_t{0}](const Outlet<Item>& out) mutable {
      out.put(Item{0, {}});
      return ++n < kRoots;
    });
    pipeline.stage(
        "split", tasks, into(tasks, leaves),
        [work = work_](const Item& item, const Outlet<Item>& again, const Outlet<Item>& leaf) {
          const Item worked = work(item);
          if (worked.value == kDepth) return leaf.put(worked);
          again.put(Item{worked.value + 1, {}});
          again.put(Item{worked.value + 1, {}});
        });
    pipeline.stage("sink", leaves, [&totals](const Item& item, StageContext context) {
      totals.add(context.worker(), item);
    });
    const double seconds = time_of([&] { pipeline.run(); });
    totals.check(kLeaves, kLeaves * kDepth);
    return static_cast<double>(kTasks) / seconds;
  }

  /// Processor time of the process while nothing comes for 20 ms.
  double bubble() const {
    const weir::Pipeline pipeline = make();
    const auto items = pipeline.tunnel<Item>("items");
    std::atomic<long> seen{0};
    pipeline.stage("sink", items, [&seen](const Item&) { ++seen; });
    auto feed = pipeline.feed(items);
    pipeline.start();
    feed.put(Item{});
    while (seen == 0) std::this_thread::yield();
    const std::clock_t begin = std::clock();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const double used = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    feed.put(Item{});
    feed.close();
    pipeline.wait();
    if (seen != 2) throw std::runtime_error("the end came early");
    return used * 1e6;
  }

 private:
  weir::Pipeline make() const {
    weir::PipelineOptions options;
    options.place = &place_;
    options.relief = relief_;
    return weir::Pipeline(runtime_, options);
  }

  template <class Run>
  double end_of(Run&& run) const {
    End end;
    run_linear(kItemsBeforeEnd, &end, run);
    return end.latency() * 1e6;
  }

  template <class Run>
  double run_linear(std::uint64_t count, End* end, Run&& run) const {
    Totals totals;
    const weir::Pipeline pipeline = make();
    const auto raw = pipeline.tunnel<Item>("raw");
    const auto worked = pipeline.tunnel<Item>("worked");
    pipeline.source("source", into(raw),
                    [count, next = std::uint64_t{0}](const Outlet<Item>& out) mutable {
                      out.put(Item{next++, {}});
                      return next < count;
                    });
    pipeline.stage(
        "work", raw, into(worked),
        [work = work_](const Item& item, const Outlet<Item>& out) { out.put(work(item)); });
    pipeline.stage("sink", worked, [&totals, end](const Item& item, StageContext context) {
      totals.add(context.worker(), item);
      if (end != nullptr) end->last = now();
    });
    const double seconds = time_of([&] { run(pipeline); });
    if (end != nullptr) end->returned = now();
    totals.check(count, count * (count - 1) / 2);
    return static_cast<double>(count) / seconds;
  }

  weir::Runtime runtime_;
  weir::Place place_;
  weir_relief relief_;
  long work_ns_;
  Work work_;
};

nlohmann::json measure(const Arguments& arguments) {
  const Pipelines pipelines(arguments);
  const std::string& verb = arguments.verb();
  const auto value = [&](auto method, double unit, long repeats = 5) {
    const auto values = repeat(1, repeats, [&] { return (pipelines.*method)() / unit; });
    return nlohmann::json{{"value", median(values)}, {"config", pipelines.config()}};
  };
  if (verb == "linear") return value(&Pipelines::linear, 1e6);
  if (verb == "loop") return value(&Pipelines::loop, 1e6);
  if (verb == "recursive") return value(&Pipelines::recursive, 1e6);
  if (verb == "end") return value(&Pipelines::end_of_run, 1, kEnds);
  if (verb == "end-of-wait") return value(&Pipelines::end_of_wait, 1, kEnds);
  if (verb == "bubble") return value(&Pipelines::bubble, 1);
  throw std::invalid_argument("there is no pipeline '" + verb + "'");
}

}  // namespace
}  // namespace weir_bench

int main(int argc, char** argv) { return weir_bench::run_program(argc, argv, weir_bench::measure); }
