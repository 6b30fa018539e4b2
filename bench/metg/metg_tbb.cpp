// Task Bench's patterns as a oneTBB flow graph. It infers nothing: the edges are given to it, those
// to the readers of an output that is overwritten, too.
//
//   metg_tbb PATTERNS [--build timed|before] ...   "before": the graph is made before the clock
//   starts
#include <deque>

#include <tbb/flow_graph.h>
#include <tbb/info.h>
#include <tbb/version.h>

#include "metg/driver.hpp"

namespace weir_bench::metg {
namespace {

using Nothing = tbb::flow::continue_msg;
using Node = tbb::flow::continue_node<Nothing>;

struct FlowGraph {
  tbb::flow::graph graph;
  std::deque<Node> nodes;
  std::vector<Node*> roots;
};

class TbbDriver final : public PlainDriver {
 public:
  explicit TbbDriver(const Arguments& arguments)
      : built_before_(arguments.text("--build", "timed") == "before") {}

  void prepare(const Problem& problem) override {
    PlainDriver::prepare(problem);
    if (built_before_) build();
  }

  double run() override {
    if (!built_before_) flow_.reset();  // destroying it does not count
    return PlainDriver::run();
  }

  void finish() override {
    flow_.reset();
    PlainDriver::finish();
  }

  std::string config() const override {
    return "oneTBB " + std::to_string(TBB_VERSION_MAJOR) + "." + std::to_string(TBB_VERSION_MINOR) +
           " flow graph, " + (built_before_ ? "made once and run again" : "made and run once") +
           ", " + std::to_string(tbb::info::default_concurrency()) + " threads";
  }

 protected:
  void run_tasks() override {
    if (!built_before_) build();
    for (Node* root : flow_->roots) root->try_put(Nothing());
    flow_->graph.wait_for_all();
  }

 private:
  void build() {
    flow_ = std::make_unique<FlowGraph>();
    std::vector<Node*> nodes(problem().settings().graphs * problem().width() *
                             (std::size_t{problem().settings().fields} + 1));
    const std::uint32_t fields = problem().settings().fields;
    const auto node_of = [&](std::uint32_t graph, const TaskId& id) -> Node*& {
      const std::size_t row = std::size_t{graph} * (fields + 1) + id.step % (fields + 1);
      return nodes[row * problem().width() + id.point];
    };
    problem().for_each_task([&](const TaskId& id) {
      Node& node =
          flow_->nodes.emplace_back(flow_->graph, [this, id](const Nothing&) { execute(id); });
      const auto before = problem().graph().must_precede(id.step, id.point, fields);
      for (const TaskId& task : before) tbb::flow::make_edge(*node_of(id.graph, task), node);
      if (before.empty()) flow_->roots.push_back(&node);
      node_of(id.graph, id) = &node;
    });
  }

  bool built_before_;
  std::unique_ptr<FlowGraph> flow_;
};

}  // namespace
}  // namespace weir_bench::metg

int main(int argc, char** argv) {
  return weir_bench::metg::driver_main<weir_bench::metg::TbbDriver>(argc, argv);
}
