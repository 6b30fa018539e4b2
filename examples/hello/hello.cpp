// Squares numbers block by block. It reads like a sequential program; weir finds what may overlap.
#include <cstdio>
#include <numeric>
#include <vector>

#include <weir/weir.hpp>

int main(int argc, char** argv) try {
  std::vector<double> numbers(1 << 20);
  std::iota(numbers.begin(), numbers.end(), 1.0);

  weir::Runtime runtime(argc > 1 ? argv[1] : "host");  // or a simulated device: "sim:gbps=6"
  weir::Kernel square = runtime.kernel("square", [](const weir::Call& call) {
    for (double& number : call.span<double>(0)) number *= number;
  });
  weir::Buffer buffer = runtime.wrap(numbers, "numbers");
  weir::Place place = runtime.domain(0).place();
  weir::Stream stream = place.stream();

  const std::size_t block = numbers.size() / 8;
  for (std::size_t first = 0; first < numbers.size(); first += block) {
    weir::Region part = buffer.elements<double>(first, block);
    stream.upload(part);                              // copies nothing where memory is shared
    stream.compute(square, {weir::readwrite(part)});  // waits for its own upload only
    stream.download(part);
  }
  stream.synchronize();
  std::printf("%zu squares, the last is %.0f\n", numbers.size(), numbers.back());
} catch (const weir::Error& error) {
  std::fprintf(stderr, "hello: %s\n", error.what());
  return 1;
}
