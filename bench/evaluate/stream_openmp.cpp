// STREAM's triad with OpenMP: the bandwidth of memory that a plain loop reaches.
#include <omp.h>

#include <memory>

#include "common/program.hpp"

namespace weir_bench {
namespace {

/// Returns GB/s, of two loads and a store for each element. Threads touch first what they work on.
std::vector<double> triad(long elements, long repeats) {
  const auto array = [&] { return std::unique_ptr<double[]>(new double[elements]); };
  const auto a = array(), b = array(), c = array();
  double* const x = a.get();
  double *const y = b.get(), *const z = c.get();
#pragma omp parallel for schedule(static)
  for (long i = 0; i < elements; ++i) {
    x[i] = 0;
    y[i] = 1;
    z[i] = 2;
  }
  return repeat(2, repeats, [&] {
    const double seconds = time_of([&] {
#pragma omp parallel for simd schedule(static)
      for (long i = 0; i < elements; ++i) x[i] = y[i] + 3 * z[i];
    });
    return 3 * sizeof(double) * static_cast<double>(elements) / seconds / 1e9;
  });
}

}  // namespace
}  // namespace weir_bench

int main(int argc, char** argv) {
  using namespace weir_bench;
  return run_program(argc, argv, [](const Arguments& arguments) -> nlohmann::json {
    const long elements = arguments.number("--elements", 16'000'000);
    return {{"value", median(triad(elements, arguments.number("--repeats", 11)))},
            {"unit", "GB/s"},
            {"config", "triad, " + std::to_string(omp_get_max_threads()) + " OpenMP threads"}};
  });
}
