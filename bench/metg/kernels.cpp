#include "metg/kernels.hpp"

namespace weir_bench::metg {

namespace {

using Vector = double __attribute__((vector_size(32)));

}  // namespace

void compute(std::uint64_t iterations) {
  const Vector one = Vector{} + 1.0;
  Vector a = one, b = a + one, c = b + one, d = c + one;
  Vector e = d + one, f = e + one, g = f + one, h = g + one;
  for (std::uint64_t half = 0; half < 2 * iterations; ++half) {  // 32 numbers fill 8 registers
    a = a * 0.999 + 0.001;
    b = b * 0.999 + 0.001;
    c = c * 0.999 + 0.001;
    d = d * 0.999 + 0.001;
    e = e * 0.999 + 0.001;
    f = f * 0.999 + 0.001;
    g = g * 0.999 + 0.001;
    h = h * 0.999 + 0.001;
  }
  const Vector sum = a + b + c + d + e + f + g + h;
  asm volatile("" : : "r"(&sum) : "memory");  // the sum is needed
}

void sweep(double* area, std::size_t bytes, std::size_t offset, std::uint64_t iterations) {
  constexpr std::size_t numbers = swept_bytes / sizeof(double);
  double* const end = area + bytes / sizeof(double);
  double* part = area + offset % bytes / sizeof(double);
  for (std::uint64_t iteration = 0; iteration < iterations; ++iteration) {
    for (std::size_t index = 0; index < numbers; ++index) part[index] = part[index] * 0.999 + 0.001;
    part += numbers;
    if (part == end) part = area;
  }
}

}  // namespace weir_bench::metg
