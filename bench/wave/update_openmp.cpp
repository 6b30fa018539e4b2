// What the bandwidth of memory allows a step of the wave equation, with OpenMP.
#include <omp.h>

#include <memory>

#include "common/program.hpp"

namespace weir_bench {
namespace {

constexpr double kOperations = 36;  ///< of a cell, as weir counts them

/// Returns GFLOP/s of a loop with the traffic of a step and without its neighbours: each cell is
/// read and written, two more arrays are read. Threads touch first what they work on.
std::vector<double> updates(long cells, long repeats) {
  const auto array = [&] { return std::unique_ptr<double[]>(new double[cells]); };
  const auto a = array(), b = array(), c = array();
  double* const next = a.get();
  const double *const now = b.get(), *const speed = c.get();
#pragma omp parallel for schedule(static)
  for (long i = 0; i < cells; ++i) {
    a[i] = 1;
    b[i] = 2;
    c[i] = 0.1;
  }
  return repeat(2, repeats, [&] {
    const double seconds = time_of([&] {
#pragma omp parallel for simd schedule(static)
      for (long i = 0; i < cells; ++i) next[i] = now[i] - next[i] + speed[i] * now[i];
    });
    return kOperations * static_cast<double>(cells) / seconds / 1e9;
  });
}

}  // namespace
}  // namespace weir_bench

int main(int argc, char** argv) {
  using namespace weir_bench;
  return run_program(argc, argv, [](const Arguments& arguments) -> nlohmann::json {
    const long n = arguments.number("--n", 256);
    const double rate = median(updates(n * n * n, arguments.number("--repeats", 11)));
    return {{"value", rate},
            {"unit", "GFLOP/s"},
            {"config", "the same traffic without neighbours, " +
                           std::to_string(omp_get_max_threads()) + " OpenMP threads"}};
  });
}
