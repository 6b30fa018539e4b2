// Shares: what a visit to the counter costs, and how close to the ideal the makespan is.
#include <atomic>
#include <sstream>
#include <stdexcept>
#include <string>

#include <weir/weir.hpp>

#include "common/program.hpp"

namespace weir_bench {
namespace {

/// Nanoseconds of a visit, with a function that does nothing.
nlohmann::json measure_visits(const Arguments& arguments) {
  const auto items = static_cast<std::uint64_t>(arguments.number("--items", 1'000'000));
  const std::string chunks = arguments.text("--chunks", "one");
  const weir::Runtime runtime("host:cores=1");
  const auto once = [&] {
    std::uint64_t done = 0;
    const auto take = [&](const weir::Chunk& chunk) {
      done += chunk.count;
      return weir::Event();
    };
    weir::Share share;
    const double seconds = time_of([&] {
      share = runtime.share(items, take, {.chunks = chunks.c_str()});
      share.wait();
    });
    if (done != items) throw std::runtime_error("not every item was handed out once");
    return seconds / static_cast<double>(share.parts()[0].visits) * 1e9;
  };
  return {{"value", median(repeat(1, 5, once))}, {"config", "host:cores=1, chunks " + chunks}};
}

/// Makespan over ideal on simulated cards of the given speeds, in virtual time: 1 ms an item on a
/// card of speed 1. With --slow-by the last card becomes slower half way.
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
  const weir_implementation code = {"host", [](const weir_call*) { return WEIR_STATUS_OK; },
                                    nullptr};
  weir_kernel_options options = WEIR_KERNEL_OPTIONS_INIT;
  options.name = "item";
  options.implementations = &code;
  options.implementation_count = 1;
  options.cost = [](const weir_call* call) {
    return weir_cost{1e6 * weir::Call(call).scalar<double>(0), 0};
  };
  weir_kernel* kernel = nullptr;
  weir::check(weir_kernel_register(runtime.handle(), &options, &kernel));
  const weir::Share share =
      runtime.share(items,
                    [&](const weir::Chunk& chunk) {
                      return chunk.stream.compute(weir::Kernel(kernel), {}, {chunk.count});
                    },
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

nlohmann::json measure(const Arguments& arguments) {
  if (arguments.verb() == "visits") return measure_visits(arguments);
  if (arguments.verb() == "makespan") return measure_makespan(arguments);
  throw std::invalid_argument("'" + arguments.verb() + "' is neither visits nor makespan");
}

}  // namespace
}  // namespace weir_bench

int main(int count, char** values) {
  return weir_bench::run_program(count, values, weir_bench::measure);
}
