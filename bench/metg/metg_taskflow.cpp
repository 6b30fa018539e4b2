// Task Bench's patterns as a static graph of Taskflow, made before the clock starts and run again
// for each sample. The edges are given to it, those to the readers of an output that is
// overwritten, too.
#include <thread>

#include <taskflow/taskflow.hpp>

#include "metg/driver.hpp"

namespace weir_bench::metg {
namespace {

class TaskflowDriver final : public PlainDriver {
 public:
  explicit TaskflowDriver(const Arguments&) : executor_(cores()) {}

  void prepare(const Problem& problem) override {
    PlainDriver::prepare(problem);
    flow_.clear();
    const Graph& graph = problem.graph();
    const std::uint32_t fields = problem.settings().fields, width = problem.width();
    std::vector<tf::Task> tasks(std::size_t{problem.settings().graphs} * problem.steps() * width);
    const auto task_of = [&](std::uint32_t number, const TaskId& id) -> tf::Task& {
      return tasks[(std::size_t{number} * problem.steps() + id.step) * width + id.point];
    };
    problem.for_each_task([&](const TaskId& id) {
      tf::Task& task = task_of(id.graph, id);
      task = flow_.emplace([this, id] { execute(id); });
      for (const TaskId& before : graph.must_precede(id.step, id.point, fields)) {
        task.succeed(task_of(id.graph, before));
      }
    });
  }

  std::string config() const override {
    return "Taskflow, a static graph that is run again, " + std::to_string(cores()) + " threads";
  }

 protected:
  void run_tasks() override { executor_.run(flow_).wait(); }

 private:
  tf::Executor executor_;
  tf::Taskflow flow_;
};

}  // namespace
}  // namespace weir_bench::metg

int main(int argc, char** argv) {
  return weir_bench::metg::driver_main<weir_bench::metg::TaskflowDriver>(argc, argv);
}
