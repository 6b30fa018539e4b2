// Bandwidth of the exchange of one face between two ranks of a process: one that is contiguous, or
// one with a cell on each line of the cache.
#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include <weir/grid.hpp>

#include "common/program.hpp"

namespace weir_bench {
namespace {

struct Task {
  long n, steps;
  std::size_t dimension;  ///< in which the grid is cut
  double megabytes_per_second = 0;
};

void run_rank(weir_fabric* fabric, Task& task) {
  const auto n = static_cast<std::size_t>(task.n);
  weir::GridOptions options{.cells = {n, n, n}, .ranks = 2};
  options.blocks = {1, 1, 1};
  options.blocks[task.dimension] = 2;
  const weir::Grid grid(options);
  const weir::GridRange block =
      grid.blocks()[grid.blocks_of(weir_fabric_rank(fabric)).front()].cells;
  const auto extent = [&](int d) { return static_cast<std::size_t>(block.extent(d)) + 2; };
  const std::size_t row = extent(0), plane = row * extent(1);
  std::vector<double> cells(plane * extent(2), 1.0);
  const weir::Halo halo(
      fabric, grid,
      {.fields = {{sizeof(double), "double"}},
       .arrays = {{&cells[plane + row + 1], row * sizeof(double), plane * sizeof(double)}}});
  const auto step = [&] {
    halo.start();
    halo.finish();
  };
  for (int i = 0; i < 10; ++i) step();
  weir::check(weir_fabric_barrier(fabric, WEIR_FOREVER));
  const double seconds = time_of([&] {
    for (long i = 0; i < task.steps; ++i) step();
  });
  if (weir_fabric_rank(fabric) != 0) return;
  const auto bytes = static_cast<double>(halo.info().bytes_sent);
  task.megabytes_per_second = bytes * static_cast<double>(task.steps) / seconds * 1e-6;
}

weir_status program(weir_fabric* fabric, void* payload) {
  try {
    run_rank(fabric, *static_cast<Task*>(payload));
    return WEIR_STATUS_OK;
  } catch (const weir::Error& error) {
    return error.status();
  }
}

nlohmann::json measure(const Arguments& arguments) {
  const std::string face = arguments.text("--face", "z");
  if (face != "x" && face != "z") throw std::invalid_argument("--face is x or z");
  Task task{arguments.number("--n", 256), arguments.number("--steps", 200), face == "x" ? 0u : 2u};
  const auto once = [&] {
    weir::check(weir_fabric_simulate(nullptr, 2, program, &task));
    return task.megabytes_per_second;
  };
  return {{"value", median(repeat(1, 3, once))}, {"config", "face in " + face}};
}

}  // namespace
}  // namespace weir_bench

int main(int count, char** values) {
  return weir_bench::run_program(count, values, weir_bench::measure);
}
