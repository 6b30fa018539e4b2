// Empty StarPU tasks with data handles: sequential data flow.
#include <starpu.h>

#include "common/starpu_session.hpp"
#include "common/task_shapes.hpp"

namespace weir_bench {
namespace {

void empty_codelet(void**, void*) { empty_task(); }

/// Handles on bytes of its own, for the time of one measurement.
class Cells {
 public:
  explicit Cells(std::size_t count) : bytes_(count), handles_(count) {
    for (std::size_t index = 0; index < count; ++index) {
      starpu_variable_data_register(&handles_[index], STARPU_MAIN_RAM,
                                    reinterpret_cast<uintptr_t>(&bytes_[index]), 1);
    }
  }
  ~Cells() {
    for (starpu_data_handle_t handle : handles_) starpu_data_unregister(handle);
  }
  Cells(const Cells&) = delete;
  Cells& operator=(const Cells&) = delete;
  starpu_data_handle_t operator[](std::size_t index) const { return handles_[index]; }

 private:
  std::vector<char> bytes_;
  std::vector<starpu_data_handle_t> handles_;
};

class StarpuTasks final : public TaskShapes {
 public:
  StarpuTasks() {
    for (int reads = 0; reads < 3; ++reads) {
      prepare_codelet(codelets_[reads], "empty", empty_codelet, reads);
    }
    starpu_codelet_init(&no_data_);
    no_data_.cpu_funcs[0] = empty_codelet;
    no_data_.name = "empty";
  }

  double independent(long tasks) override {
    return timed([&] {
      for (long task = 0; task < tasks; ++task) check_starpu(starpu_task_insert(&no_data_, 0));
    });
  }

  double operands(long tasks) override {
    const Cells cells(static_cast<std::size_t>(tasks));
    return timed([&] {
      for (long task = 0; task < tasks; ++task) submit(cells[static_cast<std::size_t>(task)]);
    });
  }

  double chain(long tasks) override {
    const Cells cells(1);
    return timed([&] {
      for (long task = 0; task < tasks; ++task) submit(cells[0]);
    });
  }

  double cross(long tasks) override {
    const Cells cells(2);
    return timed([&] {
      for (long task = 0; task < tasks; ++task) {
        const long link = task / 2;
        const std::size_t mine = static_cast<std::size_t>(task & 1);
        if (link > 0 && link % cross_every == 0) {
          submit(cells[1 - mine], cells[mine]);
        } else {
          submit(cells[mine]);
        }
      }
    });
  }

  double cholesky(int tiles) override {
    const Cells cells(static_cast<std::size_t>(packed_tiles(tiles)));
    const auto cell = [&](int tile) { return cells[static_cast<std::size_t>(tile)]; };
    return timed([&] {
      visit_cholesky(tiles, [&](const TileTask& task) {
        const TileReads reads = reads_of(task);
        const starpu_data_handle_t target = cell(target_of(task));
        switch (reads.count) {
          case 0: return submit(target);
          case 1: return submit(cell(reads.tile[0]), target);
          default: return submit(cell(reads.tile[0]), cell(reads.tile[1]), target);
        }
      });
    });
  }

  std::string config() const override { return session_.describe(); }

 private:
  void submit(starpu_data_handle_t target) {
    check_starpu(starpu_task_insert(&codelets_[0], STARPU_RW, target, 0));
  }
  void submit(starpu_data_handle_t first, starpu_data_handle_t target) {
    check_starpu(starpu_task_insert(&codelets_[1], STARPU_R, first, STARPU_RW, target, 0));
  }
  void submit(starpu_data_handle_t first, starpu_data_handle_t second,
              starpu_data_handle_t target) {
    check_starpu(
        starpu_task_insert(&codelets_[2], STARPU_R, first, STARPU_R, second, STARPU_RW, target, 0));
  }

  template <class Submit>
  static double timed(Submit&& submit_all) {
    return time_of([&] {
      submit_all();
      check_starpu(starpu_task_wait_for_all());
    });
  }

  StarpuSession session_;
  starpu_codelet codelets_[3];
  starpu_codelet no_data_;
};

}  // namespace
}  // namespace weir_bench

int main(int argc, char** argv) {
  using namespace weir_bench;
  return run_program(argc, argv, [](const Arguments& arguments) {
    StarpuTasks tasks;
    return measure_shape(tasks, arguments);
  });
}
