// The same with weir.hpp.
#include <cstdio>
#include <vector>

#include <weir/weir.hpp>

int main() {
  std::vector<double> vector(1000);
  for (int i = 0; i < 1000; ++i) vector[static_cast<std::size_t>(i)] = i;

  const weir::Runtime runtime;
  const weir::Kernel scale = runtime.kernel("scale", [](const weir::Call& call) {
    for (double& value : call.span<double>(0)) value *= call.scalar<double>(0);
  });
  const weir::Buffer buffer = runtime.wrap(vector);
  const weir::Place place = runtime.domain(0).place();
  const weir::Stream stream = place.stream();
  stream.compute(scale, {weir::readwrite(buffer.all())}, {2.0});
  stream.synchronize();
  std::printf("vector[999] = %g\n", vector[999]);
}
