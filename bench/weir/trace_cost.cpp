// What recording costs: the same actions in runtimes that differ in their recording, in turn.
#include "common/spin_kernel.hpp"

namespace weir_bench {
namespace {

/// A runtime that executes independent actions of a given length.
class Subject {
 public:
  explicit Subject(double action_us)
      : kernel_(spin_kernel(runtime_)),
        place_(runtime_.domain(0).place()),
        stream_(place_.stream()),
        action_us_(action_us) {}

  void start() const { runtime_.start_trace(); }
  void stop() const { runtime_.stop_trace(); }

  /// Returns nanoseconds an action.
  double run(long actions) const {
    const weir_scalar length = weir_scalar_f64(action_us_);
    weir_compute compute = WEIR_COMPUTE_INIT;
    compute.kernel = kernel_.handle();
    compute.scalars = &length;
    compute.scalar_count = 1;
    const double seconds = time_of([&] {
      for (long action = 0; action < actions; ++action) {
        weir::check(weir_stream_compute(stream_.handle(), &compute, nullptr));
      }
      stream_.synchronize();
    });
    return seconds / static_cast<double>(actions) * 1e9;
  }

 private:
  weir::Runtime runtime_{"host:cores=1"};
  weir::Kernel kernel_;
  weir::Place place_;
  weir::Stream stream_;
  double action_us_;
};

nlohmann::json result(const std::vector<double>& ours, const std::vector<double>& peer,
                      const char* config) {
  return {
      {"value", median(ours)}, {"peer", median(peer)}, {"unit", "ns/action"}, {"config", config}};
}

/// `off`: a runtime whose recording was stopped against one that never recorded, empty actions.
nlohmann::json measure_off(const Arguments& arguments) {
  const long actions = arguments.number("--actions", 50'000);
  const Subject stopped(0), never(0);
  stopped.start();
  static_cast<void>(stopped.run(1000));
  stopped.stop();
  std::vector<double> ours, peer;
  for (long round = 0; round < arguments.number("--repeats", 41); ++round) {
    ours.push_back(stopped.run(actions));
    peer.push_back(never.run(actions));
  }
  return result(ours, peer, "empty actions, host:cores=1, recording stopped / never started");
}

/// `on`: recording against not recording, actions of 10 microseconds.
nlohmann::json measure_on(const Arguments& arguments) {
  const long actions = arguments.number("--actions", 5'000);
  const Subject recording(10), never(10);
  std::vector<double> ours, peer;
  for (long round = 0; round < arguments.number("--repeats", 5); ++round) {
    recording.start();
    ours.push_back(recording.run(actions));
    recording.stop();
    peer.push_back(never.run(actions));
  }
  return result(ours, peer, "actions of 10 us, host:cores=1, recording / not");
}

nlohmann::json run(const Arguments& arguments) {
  if (arguments.verb() == "off") return measure_off(arguments);
  if (arguments.verb() == "on") return measure_on(arguments);
  throw std::invalid_argument("unknown measurement '" + arguments.verb() + "'");
}

}  // namespace
}  // namespace weir_bench

int main(int argc, char** argv) { return weir_bench::run_program(argc, argv, weir_bench::run); }
