// Empty tasks of a Taskflow graph that is built before and run again. It infers nothing: the edges
// are given to it.
#include <optional>
#include <thread>

#include <taskflow/taskflow.hpp>

#include "common/task_shapes.hpp"

namespace weir_bench {
namespace {

class TaskflowTasks final : public TaskShapes {
 public:
  double independent(long tasks) override {
    return timed([&](tf::Taskflow& graph) {
      for (long task = 0; task < tasks; ++task) graph.emplace(empty_task);
    });
  }

  double chain(long tasks) override {
    return timed([&](tf::Taskflow& graph) {
      tf::Task last;
      for (long task = 0; task < tasks; ++task) last = add_after(graph, last);
    });
  }

  double cross(long tasks) override {
    return timed([&](tf::Taskflow& graph) {
      tf::Task last[2];
      for (long task = 0; task < tasks; ++task) {
        const long link = task / 2;
        tf::Task& mine = last[task & 1];
        mine = add_after(graph, mine);
        if (link > 0 && link % cross_every == 0) last[1 - (task & 1)].precede(mine);
      }
    });
  }

  double cholesky(int tiles) override {
    return timed([&](tf::Taskflow& graph) {
      std::vector<tf::Task> writer(static_cast<std::size_t>(packed_tiles(tiles)));
      visit_cholesky(tiles, [&](const TileTask& task) {
        tf::Task& target = writer[static_cast<std::size_t>(target_of(task))];
        target = add_after(graph, target);
        const TileReads reads = reads_of(task);
        for (std::size_t i = 0; i < reads.count; ++i)
          writer[static_cast<std::size_t>(reads.tile[i])].precede(target);
      });
    });
  }

  std::string config() const override {
    return "a static graph that is run again, " + std::to_string(executor_.num_workers()) +
           " workers";
  }

 private:
  static tf::Task add_after(tf::Taskflow& graph, tf::Task before) {
    tf::Task task = graph.emplace(empty_task);
    if (!before.empty()) before.precede(task);
    return task;
  }

  /// The first call builds the graph: what is measured are runs.
  template <class Build>
  double timed(Build&& build) {
    if (!graph_) build(graph_.emplace());
    return time_of([this] { executor_.run(*graph_).wait(); });
  }

  tf::Executor executor_{std::thread::hardware_concurrency()};
  std::optional<tf::Taskflow> graph_;
};

}  // namespace
}  // namespace weir_bench

int main(int argc, char** argv) {
  using namespace weir_bench;
  return run_program(argc, argv, [](const Arguments& arguments) {
    TaskflowTasks tasks;
    return measure_shape(tasks, arguments);
  });
}
