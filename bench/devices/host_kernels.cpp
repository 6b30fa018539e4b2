// The kernels of kernels.wk as loops of C++ with OpenMP.
#include <omp.h>

#include <cstdlib>

#include "devices/problems.hpp"

namespace weir_bench {
namespace {

using In = const float* __restrict__;
using Out = float* __restrict__;

void saxpy(In x, Out y) {
#pragma omp parallel for simd schedule(static)
  for (std::size_t i = 0; i < elements; ++i) y[i] += factor * x[i];
}

void stencil(In x, Out y) {
#pragma omp parallel for schedule(static)
  for (std::size_t row = 1; row <= side; ++row) {
    for (std::size_t i = row * pitch + 1; i <= row * pitch + side; ++i) {
      y[i] = x[i - 1] + x[i + 1] + x[i - pitch] + x[i + pitch] - 4 * x[i];
    }
  }
}

void reduce(In x, Out sums) {
  constexpr std::size_t each = group_width * parts;
#pragma omp parallel for schedule(static)
  for (std::size_t group = 0; group < elements / each; ++group) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::size_t i = group * each; i < (group + 1) * each; ++i) sum += x[i];
    sums[group] = sum;
  }
}

/// The tile of C at (row, column), in tiles of A and B that the caches keep.
void multiply_tile(In a, In b, Out c, std::size_t row, std::size_t column) {
  alignas(64) float sum[tile][tile] = {};
  for (std::size_t step = 0; step < order; step += tile) {
    for (std::size_t j = 0; j < tile; ++j) {
      for (std::size_t k = 0; k < tile; ++k) {
        const float factor_of = b[(column + j) * order + step + k];
        for (std::size_t i = 0; i < tile; ++i) {
          sum[j][i] += a[(step + k) * order + row + i] * factor_of;
        }
      }
    }
  }
  for (std::size_t j = 0; j < tile; ++j) {
    for (std::size_t i = 0; i < tile; ++i) c[(column + j) * order + row + i] = sum[j][i];
  }
}

void multiply(In a, In b, Out c) {
#pragma omp parallel for collapse(2) schedule(static)
  for (std::size_t column = 0; column < order; column += tile) {
    for (std::size_t row = 0; row < order; row += tile) multiply_tile(a, b, c, row, column);
  }
}

void call(const std::string& name, const Arrays& arrays) {
  if (name == "saxpy") return saxpy(arrays.first, arrays.result);
  if (name == "stencil") return stencil(arrays.first, arrays.result);
  if (name == "reduce") return reduce(arrays.first, arrays.result);
  multiply(arrays.first, arrays.second, arrays.result);
}

/// Floats at the start of a page, as those of a runtime.
struct Release {
  void operator()(float* address) const { std::free(address); }
};
using Floats = std::unique_ptr<float, Release>;
Floats floats(std::size_t count) {
  constexpr std::size_t page = 4096;
  void* made = std::aligned_alloc(page, (count * sizeof(float) / page + 1) * page);
  if (made == nullptr) throw std::bad_alloc();
  return Floats(static_cast<float*>(made));
}

double rate(const Problem& problem) {
  const Floats first = floats(problem.first), second = floats(problem.second),
               result = floats(problem.result);
  const Arrays arrays{first.get(), second.get(), result.get()};
  arrays.fill(problem);
  const auto calls = [&](long count) {
    for (long i = 0; i < count; ++i) call(problem.name, arrays);
  };
  return rate_of(problem, calls, [&] { arrays.check(problem); });
}

}  // namespace
}  // namespace weir_bench

int main(int argc, char** argv) {
  using namespace weir_bench;
  return run_program(argc, argv, [](const Arguments& arguments) -> nlohmann::json {
    const Problem problem = Problem::of(arguments.verb());
    return {{"value", rate(problem)},
            {"unit", problem.unit},
            {"config", std::to_string(omp_get_max_threads()) + " OpenMP threads"}};
  });
}
