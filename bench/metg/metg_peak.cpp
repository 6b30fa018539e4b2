// The loop of the tasks alone, on all cores: the rate that efficiencies are a part of.
//
//   metg_peak [--kernel compute|memory] [--repeats N] [--gauge on|off]
#include "metg/driver.hpp"

namespace weir_bench::metg {
namespace {

class Peak {
 public:
  explicit Peak(const Arguments& arguments)
      : memory_(parse_work(arguments.text("--kernel", "compute")) == Work::memory),
        cores_(allowed_cores()),
        threads_(cores_),
        gauge_(cores_) {
    if (!memory_) return;
    areas_.resize(cores_.size());
    threads_.run(
        [&](std::size_t index) { areas_[index].assign(area_bytes / sizeof(double), 1.0); });
  }

  /// Returns operations or bytes of all cores in a second, by 1e9.
  double rate() {
    const std::uint64_t iterations = memory_ ? 400'000 : 4'000'000;
    const double seconds = time_of([&] {
      threads_.run([&](std::size_t index) {
        if (memory_) {
          sweep(areas_[index].data(), area_bytes, 0, iterations);
        } else {
          compute(iterations);
        }
      });
    });
    const double each = memory_ ? bytes_per_iteration : flops_per_iteration;
    return each * static_cast<double>(iterations * cores_.size()) / seconds / 1e9;
  }

  nlohmann::json measure(const Arguments& arguments) {
    const long repeats = arguments.number("--repeats", 5);
    const bool gauged = arguments.text("--gauge", "on") == "on";
    static_cast<void>(rate());
    nlohmann::json best = nullptr;
    long refused = 0;
    long accepted = 0;
    while (accepted < repeats && refused < 4 * repeats) {
      const bool was_away = gauged && gauge_.lost_part() > largest_loss;
      const double found = rate();
      if (was_away || (gauged && gauge_.lost_part() > largest_loss)) {
        ++refused;
        continue;
      }
      ++accepted;
      if (best.is_null() || best.get<double>() < found) best = found;
    }
    return {{"value", best},
            {"unit", memory_ ? "GB/s" : "GFLOP/s"},
            {"threads", cores_.size()},
            {"refused", refused},
            {"samples", accepted},
            {"config", "the loop alone on " + std::to_string(cores_.size()) + " cores"}};
  }

 private:
  static constexpr std::size_t area_bytes = 16 << 20;

  bool memory_;
  std::vector<std::size_t> cores_;
  CoreThreads threads_;
  Gauge gauge_;
  std::vector<std::vector<double>> areas_;
};

}  // namespace
}  // namespace weir_bench::metg

int main(int argc, char** argv) {
  using namespace weir_bench;
  return run_program(argc, argv, [](const Arguments& arguments) {
    return metg::Peak(arguments).measure(arguments);
  });
}
