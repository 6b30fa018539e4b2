// Pipelines of weir.
//
//   pipeline_weir linear|recursive [--work NS] [--workers N]   M items or tasks a second
//   pipeline_weir end [--workers N]                            us from the last item to the return
//   pipeline_weir bubble [--workers N]                         us of processor time in 20 ms
//   silence
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
        work_ns_(arguments.number("--work", 0)),
        work_(work_ns_) {}

  std::string config() const { return std::to_string(place_.cores()) + " workers"; }

  /// Items a second.
  double linear() const { return run_linear(linear_items(work_ns_), nullptr); }

  double end_latency() const {
    std::atomic<double> last{0};
    run_linear(20'000, &last);
    return (now() - last) * 1e6;
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
    return weir::Pipeline(runtime_, options);
  }

  double run_linear(std::uint64_t count, std::atomic<double>* last) const {
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
    pipeline.stage("sink", worked, [&totals, last](const Item& item, StageContext context) {
      totals.add(context.worker(), item);
      if (last != nullptr) last->store(now());
    });
    const double seconds = time_of([&] { pipeline.run(); });
    totals.check(count, count * (count - 1) / 2);
    return static_cast<double>(count) / seconds;
  }

  weir::Runtime runtime_;
  weir::Place place_;
  long work_ns_;
  Work work_;
};

nlohmann::json measure(const Arguments& arguments) {
  const Pipelines pipelines(arguments);
  const std::string& verb = arguments.verb();
  const auto value = [&](auto method, double unit) {
    const auto values = repeat(1, 5, [&] { return (pipelines.*method)() / unit; });
    return nlohmann::json{{"value", median(values)}, {"config", pipelines.config()}};
  };
  if (verb == "linear") return value(&Pipelines::linear, 1e6);
  if (verb == "recursive") return value(&Pipelines::recursive, 1e6);
  if (verb == "end") return value(&Pipelines::end_latency, 1);
  if (verb == "bubble") return value(&Pipelines::bubble, 1);
  throw std::invalid_argument("there is no pipeline '" + verb + "'");
}

}  // namespace
}  // namespace weir_bench

int main(int argc, char** argv) { return weir_bench::run_program(argc, argv, weir_bench::measure); }
