// Streams blocks through a few slots of a device's memory, so that copies hide behind kernels.
//
// Nothing below says when a slot is free again: weir orders the download from it and the next
// upload into it, because they access the same region.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include <weir/weir.hpp>

namespace {

constexpr std::size_t blocks = 32;
constexpr std::size_t block = std::size_t{1} << 18;  // elements, 2 MiB

/// Replaces each number by its square root, with Newton's method to have something to do.
void take_roots(const weir::Call& call) {
  for (double& number : call.span<double>(0)) {
    double root = number;
    for (int step = 0; step < 4; ++step) root = 0.5 * (root + number / root);
    number = root;
  }
}

weir_endpoint part(const weir::Buffer& buffer, std::size_t index, const weir::Domain* domain) {
  const weir::Region region = buffer.elements<double>(index * block, block);
  return {domain ? domain->handle() : nullptr, region.buffer, region.region};
}

/// Enqueues the actions of one block: the upload into its slot, the kernel, and the download.
void enqueue(const weir::Stream& stream, const weir::Kernel& roots, const weir::Domain& device,
             const weir::Buffer& numbers, const weir::Buffer& memory, std::size_t index,
             std::size_t slot) {
  stream.transfer(part(numbers, index, nullptr), part(memory, slot, &device));
  stream.compute(roots, {weir::readwrite(memory.elements<double>(slot * block, block))});
  stream.transfer(part(memory, slot, &device), part(numbers, index, nullptr));
}

/// Sends all blocks through the device and prints what the trace says about it.
void measure(const weir::Runtime& runtime, const weir::Kernel& roots, std::size_t slots) {
  std::vector<double> values(blocks * block, 2.0);
  const weir::Buffer numbers = runtime.wrap(values, "numbers");
  const weir::Buffer memory = runtime.buffer(slots * block * sizeof(double), "slots");
  const weir::Domain device = runtime.domain(0);
  const weir::Place place = device.place();
  const weir::Stream stream = place.stream();

  for (std::size_t i = 0; i < slots; ++i) enqueue(stream, roots, device, numbers, memory, i, i);
  stream.synchronize();  // the device's memory has been touched

  std::fill(values.begin(), values.end(), 2.0);
  runtime.start_trace();
  for (std::size_t i = 0; i < blocks; ++i) {
    enqueue(stream, roots, device, numbers, memory, i, i % slots);
  }
  stream.synchronize();
  runtime.stop_trace();

  const weir_trace_summary summary = runtime.trace_summary();
  const bool right = std::all_of(values.begin(), values.end(), [](double root) {
    return std::abs(root - std::sqrt(2.0)) < 1e-5;
  });
  std::printf("%5zu %11.1f ms %8.1f ms %9.1f ms %15.2f   %s\n", slots, 1e3 * summary.measured_s,
              1e3 * summary.busiest_link_s, 1e3 * summary.busiest_place_s, summary.overlap_ratio,
              right ? "right" : "wrong");
}

}  // namespace

int main(int argc, char** argv) try {
  const weir::Runtime runtime(argc > 1 ? argv[1] : "sim:cores=1,gbps=6,latency_us=10");
  const weir::Kernel roots = runtime.kernel("roots", take_roots);
  std::printf("%zu blocks of %zu KiB through %s\n", blocks, block * sizeof(double) / 1024,
              runtime.domain(0).name().c_str());
  std::printf("slots    measured        link      kernels  measured/ideal   roots\n");
  for (const std::size_t slots : {1u, 2u, 3u}) measure(runtime, roots, slots);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "overlap: %s\n", error.what());
  return 1;
}
