// Shares: what a visit to the counter costs, and how close to the ideal the makespan is.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <weir/fabric.hpp>

#include "balance/rank_items.hpp"
#include "common/launch.hpp"
#include "common/mpirun.hpp"
#include "common/program.hpp"

namespace weir_bench {
namespace {

/// Nanoseconds of a visit, with a function that does nothing.
nlohmann::json measure_visits(const Arguments& arguments) {
  const auto items = static_cast<std::uint64_t>(arguments.number("--items", 1'000'000));
  const std::string chunks = arguments.text("--chunks", "one");
  const weir::Runtime runtime("host:cores=1");
  const weir::Place place = runtime.domain(0).place();  // takes time, but no visit
  weir_place* const handle = place.handle();
  const auto once = [&] {
    std::uint64_t done = 0;
    const auto take = [&](const weir::Chunk& chunk) {
      done += chunk.count;
      return weir::Event();
    };
    weir::Share share;
    const double seconds = time_of([&] {
      share = runtime.share(items, take, {.chunks = chunks.c_str(), .places = {&handle, 1}});
      share.wait();
    });
    if (done != items) throw std::runtime_error("not every item was handed out once");
    return seconds / static_cast<double>(share.parts()[0].visits) * 1e9;
  };
  return {{"value", median(repeat(1, 5, once))}, {"config", "host:cores=1, chunks " + chunks}};
}

/// Makespan over ideal on simulated devices of the given speeds, in virtual time: 1 ms an item on a
/// device of speed 1. With --slow-by the last device becomes slower half way.
nlohmann::json measure_makespan(const Arguments& arguments) {
  const auto items = static_cast<std::uint64_t>(arguments.number("--items", 300));
  const std::string chunks = arguments.text("--chunks", "learned");
  const auto speeds = arguments.numbers("--speeds", "1,2");
  const double slow_by = static_cast<double>(arguments.number("--slow-by", 1));
  double speed = 0;
  for (const long each : speeds) speed += static_cast<double>(each);
  const double last = static_cast<double>(speeds.back());
  const double all = static_cast<double>(items), half_ms = all / speed / 2;
  std::ostringstream domains;
  for (std::size_t i = 0; i < speeds.size(); ++i) {
    domains << (i > 0 ? "," : "") << "sim:clock=virtual,gflops=1,latency_us=0,speed=" << speeds[i];
    if (i + 1 == speeds.size()) domains << ",slow_by=" << slow_by << ",slow_at_ms=" << half_ms;
  }
  const weir::Runtime runtime(domains.str());
  const weir::Kernel kernel = runtime.kernel(
      "item", [](const weir::Call&) {}, WEIR_KERNEL_SHAPE_SERIAL,
      [](const weir_call* call) {
        return weir_cost{1e6 * weir::Call(call).scalar<double>(0), 0};
      });
  const weir::Share share = runtime.share(
      items,
      [&](const weir::Chunk& chunk) { return chunk.stream.compute(kernel, {}, {chunk.count}); },
      {.chunks = chunks.c_str()});
  share.wait();
  const double ideal_ms = half_ms + all / 2 / (speed - last + last / slow_by);
  const double ratio = static_cast<double>(share.info().makespan_ns) / 1e6 / ideal_ms;
  double idle = 0, visits = 0;
  for (const weir_share_part& part : share.parts()) {
    idle += static_cast<double>(part.idle_ns);
    visits += static_cast<double>(part.visits);
  }
  const double time = static_cast<double>(share.info().makespan_ns);
  return {{"value", ratio},
          {"idle", idle / time / static_cast<double>(speeds.size())},
          {"visits", visits},
          {"config", domains.str() + ", chunks " + chunks}};
}

/// Makespan over ideal on ranks of one core each.
nlohmann::json measure_ranks(const Arguments& arguments, const weir::Fabric& fabric) {
  const std::string chunks = arguments.text("--chunks", "learned");
  const std::string scheduler = arguments.text("--scheduler", "onesided");
  RankItems items(arguments, fabric.rank(), fabric.ranks());
  const weir::Runtime runtime("host:cores=1");
  const weir::Kernel kernel = runtime.kernel("items", [&items](const weir::Call& call) {
    items.compute(static_cast<std::uint64_t>(call.scalar<std::int64_t>(0)));
  });
  const auto compute = [&](const weir::Chunk& chunk) {
    return chunk.stream.compute(kernel, {}, {static_cast<std::int64_t>(chunk.count)});
  };
  const weir::Share share = runtime.share(
      items.count(), compute,
      {.chunks = chunks.c_str(), .fabric = fabric.handle(), .scheduler = scheduler.c_str()});
  share.wait();
  double visits = 0;
  for (const weir_share_part& part : share.parts()) visits += static_cast<double>(part.visits);
  return {
      {"value", static_cast<double>(share.info().makespan_ns) / 1e9 / items.ideal_s()},
      {"visits", visits},
      {"config", std::to_string(fabric.ranks()) + " ranks, " + arguments.text("--network", "shm") +
                     ", chunks " + chunks + ", " + scheduler}};
}

/// Nanoseconds of an addition to the counter of rank 0, which computes meanwhile.
nlohmann::json measure_rank_visits(const Arguments& arguments, const weir::Fabric& fabric) {
  const long visits = arguments.number("--visits", 100'000);
  weir_window* window = nullptr;
  weir::check(
      weir_window_create(fabric.handle(), nullptr, sizeof(std::int64_t), WEIR_FOREVER, &window));
  std::int64_t taken_ns = 0;
  if (fabric.rank() == 1) {
    const double seconds = time_of([&] {
      for (long i = 0; i < visits; ++i) {
        weir::check(weir_window_fetch_add(window, 0, 0, 1, nullptr));
      }
    });
    taken_ns = static_cast<std::int64_t>(seconds / static_cast<double>(visits) * 1e9);
  } else {
    const double end = now() + 0.1;
    while (now() < end) {
    }
  }
  weir::check(
      weir_fabric_reduce_int64(fabric.handle(), &taken_ns, 1, WEIR_FABRIC_OP_MAX, WEIR_FOREVER));
  weir_window_destroy(window);
  return {{"value", taken_ns}, {"config", "two ranks, shared memory"}};
}

/// Runs on ranks what is for them, which it starts first.
int run_on_ranks(const Arguments& arguments, int count, char** values) {
  if (std::getenv("WEIR_RANK") == nullptr && !under_mpirun()) {
    return launch(static_cast<unsigned>(arguments.number("--ranks", 2)), count, values);
  }
  const weir::Fabric fabric;
  const nlohmann::json line = arguments.verb() == "ranks" ? measure_ranks(arguments, fabric)
                                                          : measure_rank_visits(arguments, fabric);
  if (fabric.rank() == 0) std::printf("%s\n", line.dump().c_str());
  return 0;
}

nlohmann::json measure(const Arguments& arguments) {
  if (arguments.verb() == "visits") return measure_visits(arguments);
  if (arguments.verb() == "makespan") return measure_makespan(arguments);
  throw std::invalid_argument("'" + arguments.verb() +
                              "' is not one of visits, makespan, ranks, rank-visits");
}

}  // namespace
}  // namespace weir_bench

int main(int count, char** values) {
  try {
    const weir_bench::Arguments arguments(count, values);
    const std::string verb = arguments.verb();
    if (verb == "ranks" || verb == "rank-visits") {
      return weir_bench::run_on_ranks(arguments, count, values);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return weir_bench::run_program(count, values, weir_bench::measure);
}
