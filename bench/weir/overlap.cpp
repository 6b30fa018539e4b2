// How much of the smaller of transfer and compute time one stream hides on a simulated device.
#include <sstream>

#include "common/spin_kernel.hpp"

namespace weir_bench {
namespace {

/// The experiment: blocks go to the device, are computed on and come back.
struct Experiment {
  long blocks;
  std::size_t block_bytes;
  double gbps;
  double balance;  ///< compute time over transfer time, of a block

  double transfer_s() const { return 2 * static_cast<double>(block_bytes) / (gbps * 1e9); }
  double compute_s() const { return balance * transfer_s(); }
  /// Full overlap, by the model of the link and the time given to the kernels.
  double ideal_s() const {
    return static_cast<double>(blocks) * std::max(transfer_s(), compute_s());
  }
};

double measure(const weir::Runtime& runtime, const weir::Stream& stream, const weir::Kernel& kernel,
               const weir::Buffer& buffer, const Experiment& experiment) {
  return time_of([&] {
    for (long block = 0; block < experiment.blocks; ++block) {
      const weir::Region part = buffer.range(
          static_cast<std::size_t>(block) * experiment.block_bytes, experiment.block_bytes);
      stream.upload(part);
      stream.compute(kernel, {weir::readwrite(part)}, {experiment.compute_s() * 1e6});
      stream.download(part);
    }
    runtime.synchronize();
  });
}

nlohmann::json run(const Arguments& arguments) {
  const Experiment experiment{
      arguments.number("--blocks", 16),
      static_cast<std::size_t>(arguments.number("--mib", 8)) << 20,
      static_cast<double>(arguments.number("--gbps", 6)),
      static_cast<double>(arguments.number("--balance-percent", 100)) / 100};
  std::ostringstream domain;
  domain << "sim:cores=1,duplex=half,gbps=" << experiment.gbps;
  const weir::Runtime runtime(domain.str());
  const weir::Kernel kernel = spin_kernel(runtime);
  const weir::Buffer buffer =
      runtime.buffer(static_cast<std::size_t>(experiment.blocks) * experiment.block_bytes);
  const weir::Place place = runtime.domain(0).place();
  const weir::Stream stream = place.stream();
  const auto once = [&] { return measure(runtime, stream, kernel, buffer, experiment); };
  const auto seconds = repeat(1, arguments.number("--repeats", 3), once);
  runtime.start_trace();
  static_cast<void>(once());
  runtime.stop_trace();
  std::ostringstream config;
  config << domain.str() << ", one stream, " << experiment.blocks << " blocks of "
         << (experiment.block_bytes >> 20) << " MiB, " << experiment.compute_s() * 1e3
         << " ms of compute each; overlap ratio by weir's own trace "
         << runtime.trace_summary().overlap_ratio;
  return {{"value", median(seconds) * 1e3},
          {"peer", experiment.ideal_s() * 1e3},
          {"unit", "ms"},
          {"config", config.str()}};
}

}  // namespace
}  // namespace weir_bench

int main(int argc, char** argv) { return weir_bench::run_program(argc, argv, weir_bench::run); }
