// Empty tasks in a task queue of weir; with --replay, launches of a graph of them.
#include <weir/graph.hpp>
#include <weir/weir.hpp>

#include "common/task_shapes.hpp"
#include "common/weir_cells.hpp"

namespace weir_bench {
namespace {

class WeirQueueTasks final : public TaskShapes {
 public:
  explicit WeirQueueTasks(const Arguments& arguments)
      : domains_(arguments.text("--domains", "host")),
        runtime_(domains_),
        kernel_(runtime_.kernel("empty", [](weir::Call&) { empty_task(); })),
        places_(make_places(static_cast<std::size_t>(arguments.number("--places", 1)))),
        queue_(make_queue(arguments.text("--policy", "finish"))),
        replay_(arguments.number("--replay", 0) != 0) {}

  double independent(long tasks) override {
    return timed([&] {
      for (long task = 0; task < tasks; ++task) submit(nullptr, 0);
    });
  }

  double operands(long tasks) override {
    const weir::Buffer& cells = cells_.of(runtime_, static_cast<std::size_t>(tasks));
    weir_operand operand = WeirCells::cell(cells, 0, WEIR_ACCESS_READ_WRITE);
    return timed([&] {
      for (long task = 0; task < tasks; ++task, operand.region.offset += WeirCells::bytes) {
        submit(&operand, 1);
      }
    });
  }

  double chain(long tasks) override {
    const weir_operand operand = WeirCells::cell(cells_.of(runtime_, 1), 0, WEIR_ACCESS_READ_WRITE);
    return timed([&] {
      for (long task = 0; task < tasks; ++task) submit(&operand, 1);
    });
  }

  /// Two chains that the queue may run where it likes; a task that crosses reads the other's datum.
  double cross(long tasks) override {
    const weir::Buffer& cells = cells_.of(runtime_, 2);
    return timed([&] {
      for (long task = 0; task < tasks; ++task) {
        const auto mine = static_cast<std::size_t>(task & 1);
        const long link = task / 2;
        const weir_operand operands[2] = {WeirCells::cell(cells, mine, WEIR_ACCESS_READ_WRITE),
                                          WeirCells::cell(cells, 1 - mine, WEIR_ACCESS_READ)};
        submit(operands, link > 0 && link % cross_every == 0 ? 2 : 1);
      }
    });
  }

  double cholesky(int tiles) override {
    const weir::Buffer& matrix = cells_.of(runtime_, static_cast<std::size_t>(packed_tiles(tiles)));
    return timed([&] {
      visit_cholesky(tiles, [&](const TileTask& task) {
        const TileReads reads = reads_of(task);
        weir_operand operands[3];
        for (std::size_t index = 0; index < reads.count; ++index) {
          operands[index] = WeirCells::cell(matrix, static_cast<std::size_t>(reads.tile[index]),
                                            WEIR_ACCESS_READ);
        }
        operands[reads.count] = WeirCells::cell(matrix, static_cast<std::size_t>(target_of(task)),
                                                WEIR_ACCESS_READ_WRITE);
        submit(operands, reads.count + 1);
      });
    });
  }

  std::string config() const override {
    const std::string policy = queue_.info().policy;
    const std::string what = replay_ ? ": launches of a graph, queue over " : ": a queue over ";
    return domains_ + what + std::to_string(places_.size()) + " place(s), " + policy;
  }

 private:
  std::vector<weir::Place> make_places(std::size_t count) const {
    std::vector<weir::Place> places;
    for (std::size_t index = 0; index < runtime_.domain_count(); ++index) {
      for (weir::Place& place : runtime_.domain(index).partition(count)) {
        places.push_back(std::move(place));
      }
    }
    return places;
  }

  weir::Queue make_queue(const std::string& policy) const {
    std::vector<weir_place*> handles;
    for (const weir::Place& place : places_) handles.push_back(place.handle());
    weir_queue_options options = WEIR_QUEUE_OPTIONS_INIT;
    options.places = handles.data();
    options.place_count = handles.size();
    options.policy = policy.c_str();
    options.no_models = true;
    return runtime_.queue(options);
  }

  void submit(const weir_operand* operands, std::size_t count) const {
    weir_task task = WEIR_TASK_INIT;
    task.kernel = kernel_.handle();
    task.operands = operands;
    task.operand_count = count;
    weir::check(weir_queue_submit(queue_.handle(), &task, nullptr));
  }

  /// The first call records the graph: what is measured are launches.
  template <class Submit>
  double timed(Submit&& submit) {
    if (replay_) {
      if (graph_.handle() == nullptr) graph_ = weir::record(queue_, submit, {.record_only = true});
      return time_of([&] {
        graph_.launch();
        queue_.synchronize();
      });
    }
    return time_of([&] {
      submit();
      queue_.synchronize();
    });
  }

  std::string domains_;
  weir::Runtime runtime_;
  weir::Kernel kernel_;
  std::vector<weir::Place> places_;
  WeirCells cells_;
  weir::Queue queue_;
  const bool replay_;
  weir::Graph graph_;
};

}  // namespace
}  // namespace weir_bench

int main(int argc, char** argv) {
  using namespace weir_bench;
  return run_program(argc, argv, [](const Arguments& arguments) {
    WeirQueueTasks tasks(arguments);
    return measure_shape(tasks, arguments);
  });
}
