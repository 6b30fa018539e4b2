// Copies of tiles as loops of C++ with OpenMP: what short rows cost those who do nothing else.
#include <omp.h>

#include <cstring>

#include "common/large_pages.hpp"
#include "common/program.hpp"

namespace weir_bench {
namespace {

/// GB/s of copies of rows, of which each begins `stride` bytes after the one before.
double rate(std::size_t bytes, std::size_t row, std::size_t stride, long count) {
  const LargePages<char> source(bytes / row * stride), target(bytes / row * stride);
  const auto once = [&] {
    return time_of([&] {
      for (long i = 0; i < count; ++i) {
#pragma omp parallel for schedule(static)
        for (std::size_t number = 0; number < bytes / row; ++number) {
          std::memcpy(target.data() + number * stride, source.data() + number * stride, row);
        }
      }
    });
  };
  const double seconds = median(repeat(2, 5, once));
  return static_cast<double>(bytes) * static_cast<double>(count) / seconds * 1e-9;
}

/// With `--row` only so many bytes of every 2 `row`, else all in pieces of 64 KiB.
nlohmann::json run(const Arguments& arguments) {
  const auto bytes = static_cast<std::size_t>(arguments.number("--bytes", 4 << 20));
  const auto row = static_cast<std::size_t>(arguments.number("--row", 0));
  const long count = arguments.number("--count", 64);
  const std::size_t piece = 64 << 10;
  return {{"value", row > 0 ? rate(bytes, row, 2 * row, count) : rate(bytes, piece, piece, count)},
          {"config", std::to_string(omp_get_max_threads()) + " OpenMP threads"}};
}

}  // namespace
}  // namespace weir_bench

int main(int argc, char** argv) { return weir_bench::run_program(argc, argv, weir_bench::run); }
