// The same pipelines by hand on moodycamel's queue: a thread for each core, batches of 64, and a
// counter of what is not through, by which the threads know the end.
//
//   pipeline_moodycamel linear [--work NS]      M items a second
//   pipeline_moodycamel recursive [--work NS]   M tasks a second
//   pipeline_moodycamel end                     us from the last item to the return
//   pipeline_moodycamel bubble                  us of processor time in 20 ms of silence
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <string>
#include <thread>
#include <vector>

#include <concurrentqueue/blockingconcurrentqueue.h>

#include "pipeline/pipeline_shapes.hpp"

namespace weir_bench {
namespace {

using Queue = moodycamel::ConcurrentQueue<Item>;
constexpr std::size_t kBatch = 64;
constexpr std::size_t kAhead = 1024;  ///< items that the source may be ahead

std::size_t cores() { return std::max(1u, std::thread::hardware_concurrency()); }

/// Runs code(number) on a thread for each core.
template <class Code>
void on_all_cores(Code&& code) {
  std::vector<std::thread> others;
  for (std::size_t i = 1; i < cores(); ++i) others.emplace_back(code, i);
  code(std::size_t{0});
  for (std::thread& each : others) each.join();
}

/// Items a second.
double run_linear(std::uint64_t count, const Work& work, End* end) {
  Totals totals;
  Queue raw, worked;
  std::atomic<std::uint64_t> next{0}, through{0};
  const double seconds = time_of([&] {
    on_all_cores([&](std::size_t thread) {
      std::array<Item, kBatch> batch;
      moodycamel::ProducerToken to_raw(raw), to_worked(worked);
      while (through.load(std::memory_order_acquire) < count) {
        if (const std::size_t n = worked.try_dequeue_bulk(batch.data(), kBatch); n > 0) {
          for (std::size_t i = 0; i < n; ++i) totals.add(thread, batch[i]);
          if (end != nullptr) end->last = now();
          through.fetch_add(n, std::memory_order_acq_rel);
        } else if (const std::size_t m = raw.try_dequeue_bulk(batch.data(), kBatch); m > 0) {
          for (std::size_t i = 0; i < m; ++i) batch[i] = work(batch[i]);
          worked.enqueue_bulk(to_worked, batch.data(), m);
        } else if (next.load(std::memory_order_relaxed) < count && raw.size_approx() < kAhead) {
          const std::uint64_t first = next.fetch_add(kBatch, std::memory_order_relaxed);
          std::size_t made = 0;
          for (std::uint64_t i = first; i < std::min(first + kBatch, count); ++i) {
            batch[made++] = Item{i, {}};
          }
          raw.enqueue_bulk(to_raw, batch.data(), made);
        } else {
          std::this_thread::yield();
        }
      }
    });
  });
  if (end != nullptr) end->returned = now();
  totals.check(count, count * (count - 1) / 2);
  return static_cast<double>(count) / seconds;
}

/// Tasks a second.
double run_recursive(const Work& work) {
  Totals totals;
  Queue tasks;
  const std::vector<Item> roots(kRoots, Item{});
  tasks.enqueue_bulk(roots.data(), roots.size());
  std::atomic<std::int64_t> open{static_cast<std::int64_t>(kRoots)};
  const double seconds = time_of([&] {
    on_all_cores([&](std::size_t thread) {
      std::array<Item, kBatch> batch;
      std::array<Item, 2 * kBatch> children;
      moodycamel::ProducerToken token(tasks);
      while (open.load(std::memory_order_acquire) > 0) {
        const std::size_t n = tasks.try_dequeue_bulk(batch.data(), kBatch);
        std::size_t made = 0;
        for (std::size_t i = 0; i < n; ++i) {
          const Item worked = work(batch[i]);
          if (worked.value == kDepth) {
            totals.add(thread, worked);
          } else {
            children[made++] = Item{worked.value + 1, {}};
            children[made++] = Item{worked.value + 1, {}};
          }
        }
        if (made != n)
          open.fetch_add(static_cast<std::int64_t>(made) - static_cast<std::int64_t>(n));
        if (made > 0) tasks.enqueue_bulk(token, children.data(), made);
        if (n == 0) std::this_thread::yield();
      }
    });
  });
  totals.check(kLeaves, kLeaves * kDepth);
  return static_cast<double>(kTasks) / seconds;
}

/// Processor time of the process while a thread waits for items that do not come for 20 ms.
double bubble() {
  moodycamel::BlockingConcurrentQueue<Item> items;
  std::atomic<long> seen{0};
  std::thread sink([&] {
    Item item{};
    do {
      items.wait_dequeue(item);
      ++seen;
    } while (item.value == 0);
  });
  items.enqueue(Item{0, {}});
  while (seen == 0) std::this_thread::yield();
  const std::clock_t begin = std::clock();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const double used = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  items.enqueue(Item{1, {}});
  sink.join();
  return used * 1e6;
}

nlohmann::json measure(const Arguments& arguments) {
  const long work_ns = arguments.number("--work", 0);
  const Work work(work_ns);
  const auto value = [](auto&& run, long repeats = 5) {
    return nlohmann::json{{"value", median(repeat(1, repeats, run))},
                          {"config", std::to_string(cores()) + " threads, batches of 64"}};
  };
  if (arguments.verb() == "linear") {
    return value([&] { return run_linear(linear_items(work_ns), work, nullptr) / 1e6; });
  }
  if (arguments.verb() == "recursive") return value([&] { return run_recursive(work) / 1e6; });
  if (arguments.verb() == "end") {
    return value([&] { return end_us([&](End& end) { run_linear(kItemsBeforeEnd, work, &end); }); },
                 kEnds);
  }
  if (arguments.verb() == "bubble") return value(bubble);
  throw std::invalid_argument("there is no pipeline '" + arguments.verb() + "'");
}

}  // namespace
}  // namespace weir_bench

int main(int argc, char** argv) { return weir_bench::run_program(argc, argv, weir_bench::measure); }
