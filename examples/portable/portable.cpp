// Kernels that are written once and run on the host, on simulated devices and on devices that
// compile them: portable [DOMAINS], "host" or "opencl:0".
#include <cstddef>
#include <cstdio>
#include <vector>

#include <weir/portable.h>
#include <weir/weir.hpp>

#include <kernels.wk.h>
#include "kernels.wk"

namespace {

constexpr std::size_t kCount = 1'000'000;
constexpr int kSize = 256;

class Demo {
 public:
  explicit Demo(const char* domains) : runtime_(domains) {}

  /// The sum of y = 1 + 2 x for x = 0, 1, 2, 3, 0, ...
  double saxpy() const {
    const weir::Kernel kernel = runtime_.portable_kernel(
        {.kernel = &::saxpy, .source = kernels_wk, .source_name = "kernels.wk"},
        [](const weir::Call& call) {
          return weir::Groups{weir::group_count(call.scalar<std::size_t>(1), WIDTH)};
        });
    const weir::Buffer x = runtime_.buffer(kCount * sizeof(float), "x");
    const weir::Buffer y = runtime_.buffer(kCount * sizeof(float), "y");
    for (std::size_t i = 0; i < kCount; ++i) {
      x.data<float>()[i] = static_cast<float>(i % 4);
      y.data<float>()[i] = 1;
    }
    stream_.upload(x.all());
    stream_.upload(y.all());
    stream_.compute(kernel, {weir::readwrite(y.all()), weir::read(x.all())}, {2.0F, kCount});
    stream_.download(y.all());
    stream_.synchronize();
    double sum = 0;
    for (std::size_t i = 0; i < kCount; ++i) sum += static_cast<double>(y.data<float>()[i]);
    return sum;
  }

  /// How many elements of a product of matrices are wrong.
  int multiply() const {
    const weir::Kernel kernel = runtime_.portable_kernel(
        {.kernel = &::multiply, .source = kernels_wk, .source_name = "kernels.wk"},
        [](const weir::Call& call) {
          const std::uint32_t tiles = weir::group_count(call.scalar<std::size_t>(0), TILE);
          return weir::Groups{tiles, tiles};
        });
    const std::size_t bytes = std::size_t{kSize} * kSize * sizeof(double);
    const weir::Buffer a = runtime_.buffer(bytes, "A"), b = runtime_.buffer(bytes, "B");
    const weir::Buffer c = runtime_.buffer(bytes, "C");
    const auto at = [](const weir::Buffer& matrix, int row, int column) -> double& {
      return matrix.data<double>()[column * kSize + row];
    };
    for (int column = 0; column < kSize; ++column) {
      for (int row = 0; row < kSize; ++row) {
        at(a, row, column) = row % 5 - 2;
        at(b, row, column) = column % 3 + (row == column ? 1 : 0);
      }
    }
    stream_.upload(a.all());
    stream_.upload(b.all());
    stream_.compute(kernel, {weir::read(a.all()), weir::read(b.all()), weir::write(c.all())},
                    {kSize});
    stream_.download(c.all());
    stream_.synchronize();
    int wrong = 0;
    for (int column = 0; column < kSize; ++column) {
      for (int row = 0; row < kSize; ++row) {
        wrong += at(c, row, column) != (row % 5 - 2) * (column % 3 * kSize + 1) ? 1 : 0;
      }
    }
    return wrong;
  }

 private:
  weir::Runtime runtime_;
  weir::Place place_ = runtime_.domain(0).place();
  weir::Stream stream_ = place_.stream();
};

}  // namespace

int main(int argc, char** argv) {
  try {
    const Demo demo(argc > 1 ? argv[1] : "host");
    std::printf("saxpy: the sum is %.0f\n", demo.saxpy());
    std::printf("multiply: %d wrong elements\n", demo.multiply());
    return 0;
  } catch (const weir::Error& error) {
    std::fprintf(stderr, "portable: %s\n", error.what());
    return 1;
  }
}
