// What one small thing on another process of this machine costs, in microseconds.
//
//   remote_weir fetch-add [--count N]   on memory of a rank that computes: the median
//   remote_weir action [--count N]      an empty action on its domain, one by one: the median
//   remote_weir actions [--count N]     so many at once: for each
//   remote_weir message [--count N]     8 bytes from a stream to one of the other rank, where the
//                                       reply waits for them: so many and as many replies, for each
//
// With --network mpirun, mpirun starts the processes instead of weir.
#include <atomic>
#include <cstdio>

#include <weir/fabric.hpp>
#include <weir/stream_messages.hpp>

#include "common/halves.hpp"
#include "common/launch.hpp"
#include "common/mpirun.hpp"
#include "common/program.hpp"

namespace weir_bench {
namespace {

/// Returns the median of the microseconds that each call of one() takes.
template <class One>
double each(long count, One&& one) {
  return 1e6 * median(repeat(count / 10, count, [&] { return time_of(one); }));
}

/// Rank 1 computes, and looks only at its own memory, until rank 0 has finished.
double fetch_add(weir_fabric* fabric, long count) {
  weir_window* window = nullptr;
  weir::check(weir_window_create(fabric, nullptr, 16, WEIR_FOREVER, &window));
  double microseconds = 0;
  if (weir_fabric_rank(fabric) == 0) {
    microseconds =
        each(count, [&] { weir::check(weir_window_fetch_add(window, 1, 0, 1, nullptr)); });
    weir::check(weir_window_fetch_add(window, 1, 8, 1, nullptr));
  } else {
    auto* const words = static_cast<std::int64_t*>(weir_window_memory(window));
    const std::atomic_ref<std::int64_t> over(words[1]);
    while (over.load() == 0) {
    }
    if (words[0] != count + count / 10) throw std::runtime_error("some were not added");
  }
  weir::check(weir_fabric_barrier(fabric, WEIR_FOREVER));
  weir_window_destroy(window);
  return microseconds;
}

double actions(weir_fabric* fabric, long count, bool one_by_one) {
  weir_runtime_options options = WEIR_RUNTIME_OPTIONS_INIT;
  options.domains = "rank:1/host:cores=1";
  options.fabric = fabric;
  const weir::Runtime runtime(options);
  const weir::Kernel nothing = runtime.kernel("nothing", [](const weir::Call&) {});
  if (runtime.serve()) return 0;
  const weir::Place place = runtime.domain(0).place();
  const weir::Stream stream = place.stream();
  if (one_by_one) return each(count, [&] { stream.compute(nothing, {}, {}).wait(); });
  const auto all = [&] {
    return time_of([&] {
      for (long i = 0; i < count; ++i) stream.compute(nothing, {}, {});
      stream.synchronize();
    });
  };
  return 1e6 * median(repeat(1, 3, all)) / static_cast<double>(count);
}

/// Each message is sent when the one before it has arrived.
double messages(weir_fabric* fabric, long count) {
  weir_runtime_options options = WEIR_RUNTIME_OPTIONS_INIT;
  options.domains = "host:cores=1";
  options.fabric = fabric;
  const weir::Runtime runtime(options);
  const weir::Communicator all(fabric);
  const weir::Place place = runtime.domain(0).place();
  const weir::Stream stream = place.stream();
  const weir::Buffer ball = runtime.buffer(sizeof(double));
  const unsigned rank = weir_fabric_rank(fabric);
  const auto exchange = [&] {
    for (long i = 0; i < count; ++i) {
      if (rank == 0) weir::send(stream, all, 1, ball.all());
      weir::receive(stream, all, 1 - rank, ball.all());
      if (rank == 1) weir::send(stream, all, 0, ball.all());
    }
    stream.synchronize();
  };
  return 1e6 * median(repeat(1, 5, [&] { return time_of(exchange); })) /
         (2 * static_cast<double>(count));
}

void work(const Arguments& arguments) {
  const weir::Fabric fabric;
  const std::string& verb = arguments.verb();
  double value = 0;
  if (verb == "fetch-add") {
    value = fetch_add(fabric.handle(), arguments.number("--count", 20'000));
  } else if (verb == "action" || verb == "actions") {
    const bool one = verb == "action";
    value = actions(fabric.handle(), arguments.number("--count", one ? 10'000 : 100'000), one);
  } else if (verb == "message") {
    value = messages(fabric.handle(), arguments.number("--count", 10'000));
  } else {
    throw std::invalid_argument("choose from fetch-add, action, actions, message");
  }
  if (fabric.rank() > 0) return;
  const nlohmann::json line = {
      {"value", value}, {"config", "weir, two processes, " + arguments.text("--network", "shm")}};
  std::printf("%s\n", line.dump().c_str());
}

}  // namespace
}  // namespace weir_bench

int main(int argc, char** argv) {
  using namespace weir_bench;
  try {
    const Arguments arguments(argc, argv);
    if (!under_mpirun()) {
      leave_cores_to_halves();
      if (wants_mpirun(arguments)) become_mpirun(arguments, argc, argv);
      if (std::getenv("WEIR_RANK") == nullptr) return launch(2, argc, argv);
    }
    work(arguments);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
