// Empty nodes of a oneTBB flow graph, built and run. It infers nothing: the edges are given to it.
#include <deque>

#include <tbb/flow_graph.h>
#include <tbb/info.h>
#include <tbb/version.h>

#include "common/task_shapes.hpp"

namespace weir_bench {
namespace {

using Message = tbb::flow::continue_msg;
using Node = tbb::flow::continue_node<Message>;

/// A graph that is built, run once and destroyed.
class Graph {
 public:
  Node& add() {
    return nodes_.emplace_back(graph_, [](const Message&) { empty_task(); });
  }
  void add_root() { roots_.push_back(&add()); }
  Node& add_after(Node* before) {
    Node& node = add();
    if (before == nullptr) {
      roots_.push_back(&node);
    } else {
      tbb::flow::make_edge(*before, node);
    }
    return node;
  }
  void run() {
    for (Node* root : roots_) root->try_put(Message());
    graph_.wait_for_all();
  }

 private:
  tbb::flow::graph graph_;
  std::deque<Node> nodes_;
  std::vector<Node*> roots_;
};

class TbbTasks final : public TaskShapes {
 public:
  double independent(long tasks) override {
    return timed([&](Graph& graph) {
      for (long task = 0; task < tasks; ++task) graph.add_root();
    });
  }

  double chain(long tasks) override {
    return timed([&](Graph& graph) {
      Node* last = nullptr;
      for (long task = 0; task < tasks; ++task) last = &graph.add_after(last);
    });
  }

  double cross(long tasks) override {
    return timed([&](Graph& graph) {
      Node* last[2] = {};
      for (long task = 0; task < tasks; ++task) {
        const long link = task / 2;
        Node*& mine = last[task & 1];
        mine = &graph.add_after(mine);
        if (link > 0 && link % cross_every == 0) {
          tbb::flow::make_edge(*last[1 - (task & 1)], *mine);
        }
      }
    });
  }

  double cholesky(int tiles) override {
    std::vector<Node*> writer(static_cast<std::size_t>(packed_tiles(tiles)));
    return timed([&](Graph& graph) {
      visit_cholesky(tiles, [&](const TileTask& task) {
        Node*& target = writer[static_cast<std::size_t>(target_of(task))];
        const TileReads reads = reads_of(task);
        const bool root = target == nullptr && reads.count == 0;
        Node* const before = target;
        target = root ? &graph.add_after(nullptr) : &graph.add();
        if (before != nullptr) tbb::flow::make_edge(*before, *target);
        for (std::size_t index = 0; index < reads.count; ++index) {
          Node* const read = writer[static_cast<std::size_t>(reads.tile[index])];
          tbb::flow::make_edge(*read, *target);
        }
      });
    });
  }

  std::string config() const override {
    return "oneTBB " + std::to_string(TBB_VERSION_MAJOR) + "." + std::to_string(TBB_VERSION_MINOR) +
           " flow graph, edges given, " + std::to_string(tbb::info::default_concurrency()) +
           " threads";
  }

 private:
  template <class Build>
  static double timed(Build&& build) {
    Graph graph;
    return time_of([&] {
      build(graph);
      graph.run();
    });
  }
};

}  // namespace
}  // namespace weir_bench

int main(int argc, char** argv) {
  using namespace weir_bench;
  return run_program(argc, argv, [](const Arguments& arguments) {
    TbbTasks tasks;
    return measure_shape(tasks, arguments);
  });
}
