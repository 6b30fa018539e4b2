// A sweep of the 7-point Laplacian without weir: AVX-512 by hand, written past the cache, on
// threads of OpenMP. Without AVX-512 the compiler makes the vectors.
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include <omp.h>
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#include "common/program.hpp"

namespace weir_bench {
namespace {

constexpr double kRate = 0.25 / 3;
constexpr double kOperations = 9;  ///< for a cell, as `weir run laplacian` counts
constexpr long kLead = 8;          ///< rows of cells begin on lines of the cache

/// n x n x n cells with a border of 1.
class Field {
 public:
  explicit Field(long edge)
      : n(edge), row(kLead + (n + kLead) / kLead * kLead), plane(row * (n + 2)) {
    const auto bytes = static_cast<std::size_t>(plane * (n + 2)) * sizeof(double);
    cells_.reset(static_cast<double*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64)));
    if (cells_ == nullptr) throw std::bad_alloc();
#pragma omp parallel for
    for (long z = 0; z < n + 2; ++z) {
      for (long i = 0; i < plane; ++i) cells_.get()[z * plane + i] = 1;
    }
  }

  double* at(long y, long z) const {
    return cells_.get() + (z + 1) * plane + (y + 1) * row + kLead;
  }

  const long n, row, plane;

 private:
  struct Free {
    void operator()(double* cells) const { std::free(cells); }
  };
  std::unique_ptr<double, Free> cells_;
};

void sweep_row(double* next, const double* u, long n, long row, long plane) {
  long x = 0;
#if defined(__AVX512F__)
  const __m512d rate = _mm512_set1_pd(kRate), six = _mm512_set1_pd(6);
  for (; x + 8 <= n; x += 8) {
    const double* const c = u + x;
    const __m512d here = _mm512_load_pd(c);
    const __m512d across = _mm512_add_pd(_mm512_loadu_pd(c - 1), _mm512_loadu_pd(c + 1));
    const __m512d along = _mm512_add_pd(_mm512_load_pd(c - row), _mm512_load_pd(c + row));
    const __m512d deep = _mm512_add_pd(_mm512_load_pd(c - plane), _mm512_load_pd(c + plane));
    const __m512d around = _mm512_add_pd(_mm512_add_pd(across, along), deep);
    const __m512d laplacian = _mm512_fnmadd_pd(six, here, around);
    _mm512_stream_pd(next + x, _mm512_fmadd_pd(rate, laplacian, here));
  }
#endif
#pragma omp simd
  for (long i = x; i < n; ++i) {
    const double around =
        u[i - 1] + u[i + 1] + u[i - row] + u[i + row] + u[i - plane] + u[i + plane];
    next[i] = u[i] + kRate * (around - 6 * u[i]);
  }
}

void sweep(const Field& now, const Field& next) {
  constexpr long kRows = 32;
  const long n = now.n, bands = (n + kRows - 1) / kRows;
#pragma omp parallel for schedule(static)
  for (long band = 0; band < bands; ++band) {
    for (long z = 0; z < n; ++z) {
      for (long y = band * kRows; y < std::min(n, (band + 1) * kRows); ++y) {
        sweep_row(next.at(y, z), now.at(y, z), n, now.row, now.plane);
      }
    }
#if defined(__AVX512F__)
    _mm_sfence();
#endif
  }
}

nlohmann::json measure(const Arguments& arguments) {
  const long n = arguments.number("--n", 256), iterations = arguments.number("--iterations", 20);
  omp_set_num_threads(static_cast<int>(arguments.number("--threads", omp_get_num_procs())));
  Field fields[] = {Field(n), Field(n)};
  const auto once = [&] {
    for (long y = 0; y < n; ++y) fields[0].at(y, n / 2)[n / 2] = 0;
    const double seconds = time_of([&] {
      for (long step = 0; step < iterations; ++step)
        sweep(fields[step % 2], fields[(step + 1) % 2]);
    });
    const double middle = fields[iterations % 2].at(n / 2, n / 2)[n / 2];
    if (!(middle > 0 && middle < 1)) {
      throw std::runtime_error("wrong cell " + std::to_string(middle));
    }
    return kOperations * std::pow(static_cast<double>(n), 3) * static_cast<double>(iterations) /
           seconds * 1e-9;
  };
  return {{"value", median(repeat(1, 3, once))},
          {"config", std::to_string(omp_get_max_threads()) + " thread(s)"}};
}

}  // namespace
}  // namespace weir_bench

int main(int count, char** values) {
  return weir_bench::run_program(count, values, weir_bench::measure);
}
