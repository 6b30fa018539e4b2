// Programs of empty tasks, the same for every runtime that is measured.
#pragma once

#include <string>

#include "common/program.hpp"
#include "common/tiled_cholesky.hpp"

namespace weir_bench {

/// A task does nothing, and the compiler cannot know.
inline void empty_task() { asm volatile("" ::: "memory"); }

/// Between two crossings each chain of TaskShapes::cross() has this many tasks.
inline constexpr long cross_every = 10;

/// A runtime under test. Each function submits a program, waits for its end and returns the seconds
/// this took: what is made before and destroyed afterwards does not count.
class TaskShapes {
 public:
  virtual ~TaskShapes() = default;

  /// Tasks without data.
  virtual double independent(long tasks) = 0;
  /// Tasks with a datum each of their own, which the runtime has to find out.
  virtual double operands(long) { throw std::invalid_argument("no dependences are inferred"); }
  /// Every task reads and writes the same datum.
  virtual double chain(long tasks) = 0;
  /// Two chains, submitted in turn; every cross_every tasks each waits for the other.
  virtual double cross(long tasks) = 0;
  /// A Cholesky factorisation of tiles x tiles tiles.
  virtual double cholesky(int tiles) = 0;
  /// The configuration in words, for the report.
  virtual std::string config() const = 0;
};

/// Measures one shape of a runtime: `SHAPE [--actions N] [--tiles T] [--repeats R]`.
inline nlohmann::json measure_shape(TaskShapes& shapes, const Arguments& arguments) {
  const std::string& shape = arguments.verb();
  const long tiles = arguments.number("--tiles", 64);
  const bool factor = shape == "cholesky";
  const long tasks = factor ? cholesky_tasks(tiles) : arguments.number("--actions", 200'000);
  const auto run = [&] {
    if (factor) return shapes.cholesky(static_cast<int>(tiles));
    if (shape == "independent") return shapes.independent(tasks);
    if (shape == "operands") return shapes.operands(tasks);
    if (shape == "chain") return shapes.chain(tasks);
    if (shape == "cross") return shapes.cross(tasks);
    throw std::invalid_argument("unknown shape '" + shape + "'");
  };
  const auto seconds = repeat(1, arguments.number("--repeats", 3), run);
  return {{"value", median(seconds) / static_cast<double>(tasks) * 1e9},
          {"unit", "ns/action"},
          {"actions", tasks},
          {"config", shapes.config()}};
}

}  // namespace weir_bench
