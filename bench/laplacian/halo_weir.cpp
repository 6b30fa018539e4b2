// Bandwidth of the exchange of one face between two ranks: one that is contiguous, or one with few
// cells on each line of the cache.
//
//   halo_weir [--face x|z] [--n N] [--width CELLS] [--network inproc|shm|hosts] [--steps N]
//                                                            MB of halo a second
//
// With hosts the program has been started by scripts/two_hosts.py.
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <weir/fabric.hpp>
#include <weir/grid.hpp>

#include "common/large_pages.hpp"
#include "common/launch.hpp"
#include "common/program.hpp"

namespace weir_bench {
namespace {

struct Task {
  explicit Task(const Arguments& arguments)
      : face(arguments.text("--face", "z")),
        network(arguments.text("--network", "inproc")),
        n(arguments.number("--n", 256)),
        width(arguments.number("--width", 1)),
        steps(arguments.number("--steps", 200)) {
    if (face != "x" && face != "z") throw std::invalid_argument("--face is x or z");
    if (network != "inproc" && network != "shm" && network != "hosts") {
      throw std::invalid_argument("--network is inproc, shm or hosts");
    }
  }
  std::size_t dimension() const { return face == "x" ? 0 : 2; }  ///< in which the grid is cut

  std::string face, network;
  long n, width, steps;
};

/// A block with its halo. Its first cell begins a line of the cache, and so do all rows when a line
/// holds `width`.
class Block {
 public:
  Block(const weir::GridRange& cells, const Task& task) {
    std::size_t extent[3];
    for (int d = 0; d < 3; ++d) extent[d] = static_cast<std::size_t>(cells.extent(d));
    const auto width = static_cast<std::size_t>(task.width);
    extent[task.dimension()] += 2 * width;
    row_ = extent[0];
    plane_ = row_ * extent[1];
    const std::size_t before = width * (task.dimension() == 0 ? 1 : plane_);
    memory_ = LargePages<double>(plane_ * extent[2] + 2 * kLine);
    void* first = memory_.data() + before;
    std::size_t room = 2 * kLine * sizeof(double);
    first_ = static_cast<double*>(std::align(kLine * sizeof(double), sizeof(double), first, room));
  }
  weir_grid_array array() const { return {first_, row_ * sizeof(double), plane_ * sizeof(double)}; }

 private:
  static constexpr std::size_t kLine = 8;
  std::size_t row_ = 0, plane_ = 0;
  LargePages<double> memory_;
  double* first_ = nullptr;
};

double megabytes_per_second(weir_fabric* fabric, const Task& task) {
  const auto n = static_cast<std::size_t>(task.n);
  weir::GridOptions options{.cells = {n, n, n}, .ranks = 2};
  options.blocks = {1, 1, 1};
  options.blocks[task.dimension()] = 2;
  const weir::Grid grid(options);
  const Block block(grid.blocks()[grid.blocks_of(weir_fabric_rank(fabric)).front()].cells, task);
  weir::HaloOptions wanted{.fields = {{sizeof(double), "double"}}, .arrays = {block.array()}};
  wanted.width = {0, 0, 0};
  wanted.width[task.dimension()] = static_cast<std::size_t>(task.width);
  const weir::Halo halo(fabric, grid, wanted);
  const auto step = [&] {
    halo.start();
    halo.finish();
  };
  for (int i = 0; i < 10; ++i) step();
  weir::check(weir_fabric_barrier(fabric, WEIR_FOREVER));
  const double seconds = time_of([&] {
    for (long i = 0; i < task.steps; ++i) step();
  });
  const auto bytes = static_cast<double>(halo.info().bytes_sent);
  return bytes * static_cast<double>(task.steps) / seconds * 1e-6;
}

void print(const Task& task, const std::vector<double>& values) {
  const nlohmann::json line = {
      {"value", median(values)},
      {"config", "face in " + task.face + ", " + std::to_string(task.width) +
                     (task.width == 1 ? " cell" : " cells") + " wide, " + task.network}};
  std::printf("%s\n", line.dump().c_str());
}

/// What the ranks of a process share.
struct Simulation {
  const Task& task;
  std::vector<double> values;
};

weir_status program(weir_fabric* fabric, void* payload) {
  try {
    auto& simulation = *static_cast<Simulation*>(payload);
    const double value = megabytes_per_second(fabric, simulation.task);
    if (weir_fabric_rank(fabric) == 0) simulation.values.push_back(value);
    return WEIR_STATUS_OK;
  } catch (const weir::Error& error) {
    return error.status();
  }
}

constexpr int kWarmups = 1, kRepeats = 3;

void simulate(const Task& task) {
  Simulation simulation{task, {}};
  for (int i = 0; i < kWarmups + kRepeats; ++i) {
    weir::check(weir_fabric_simulate(nullptr, 2, program, &simulation));
  }
  simulation.values.erase(simulation.values.begin(), simulation.values.begin() + kWarmups);
  print(task, simulation.values);
}

void work(const Task& task) {
  const weir::Fabric fabric;
  const auto values =
      repeat(kWarmups, kRepeats, [&] { return megabytes_per_second(fabric.handle(), task); });
  if (fabric.rank() == 0) print(task, values);
}

}  // namespace
}  // namespace weir_bench

int main(int count, char** values) {
  using namespace weir_bench;
  try {
    const Task task{Arguments(count, values)};
    if (task.network == "inproc") {
      simulate(task);
    } else if (task.network == "shm" && std::getenv("WEIR_RANK") == nullptr) {
      return launch(2, count, values);
    } else {
      work(task);
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
