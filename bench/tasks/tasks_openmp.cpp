// Empty OpenMP tasks with depend clauses.
#include <omp.h>

#include "common/task_shapes.hpp"

namespace weir_bench {
namespace {

class OpenmpTasks final : public TaskShapes {
 public:
  double independent(long tasks) override {
    return timed([&] {
      for (long task = 0; task < tasks; ++task) {
#pragma omp task
        empty_task();
      }
    });
  }

  double operands(long tasks) override {
    std::vector<char> cells(static_cast<std::size_t>(tasks));
    return timed([&] {
      for (char& cell : cells) submit(cell);
    });
  }

  double chain(long tasks) override {
    char cell = 0;
    return timed([&] {
      for (long task = 0; task < tasks; ++task) submit(cell);
    });
  }

  double cross(long tasks) override {
    char cells[2] = {};
    return timed([&] {
      for (long task = 0; task < tasks; ++task) {
        const long link = task / 2;
        char& mine = cells[task & 1];
        if (link > 0 && link % cross_every == 0) {
          submit(cells[1 - (task & 1)], mine);
        } else {
          submit(mine);
        }
      }
    });
  }

  double cholesky(int tiles) override {
    std::vector<char> cells(static_cast<std::size_t>(packed_tiles(tiles)));
    const auto cell = [&](int tile) -> char& { return cells[static_cast<std::size_t>(tile)]; };
    return timed([&] {
      visit_cholesky(tiles, [&](const TileTask& task) {
        const TileReads reads = reads_of(task);
        char& target = cell(target_of(task));
        switch (reads.count) {
          case 0: return submit(target);
          case 1: return submit(cell(reads.tile[0]), target);
          default: return submit(cell(reads.tile[0]), cell(reads.tile[1]), target);
        }
      });
    });
  }

  std::string config() const override {
    return "GCC's libgomp, " + std::to_string(omp_get_max_threads()) + " threads";
  }

 private:
  static void submit([[maybe_unused]] char& target) {
#pragma omp task depend(inout : target)
    empty_task();
  }
  static void submit([[maybe_unused]] char& first, [[maybe_unused]] char& target) {
#pragma omp task depend(in : first) depend(inout : target)
    empty_task();
  }
  static void submit([[maybe_unused]] char& first, [[maybe_unused]] char& second,
                     [[maybe_unused]] char& target) {
#pragma omp task depend(in : first, second) depend(inout : target)
    empty_task();
  }

  /// The thread that submits works too, once all is submitted.
  template <class Submit>
  static double timed(Submit&& submit_all) {
    return time_of([&] {
#pragma omp parallel
#pragma omp single
      submit_all();
    });
  }
};

}  // namespace
}  // namespace weir_bench

int main(int argc, char** argv) {
  using namespace weir_bench;
  return run_program(argc, argv, [](const Arguments& arguments) {
    OpenmpTasks tasks;
    return measure_shape(tasks, arguments);
  });
}
