// Task Bench's patterns in streams of weir: neighbouring points share a stream, whose operands
// order them, and events order tasks of different streams. Before its tasks of a step, a stream
// waits once for all that they need from others: what they read, and the readers of what they
// overwrite.
//
//   metg_weir_streams PATTERNS [--places N] [--streams N] ...   streams: 4 for each core, or a
//   point
#include "metg/weir_outputs.hpp"

namespace weir_bench::metg {
namespace {

/// What the tasks of a stream in a step wait for.
struct Wait {
  std::vector<TaskId> tasks;    ///< of other streams
  std::vector<TaskId> outputs;  ///< that these tasks access, by their writers
};

class WeirStreamsDriver final : public Driver {
 public:
  explicit WeirStreamsDriver(const Arguments& arguments)
      : kernel_(task_kernel(runtime_, &problem_)),
        places_(places_of(runtime_, static_cast<std::size_t>(arguments.number("--places", 1)))) {
    const long streams = arguments.number("--streams", 4 * static_cast<long>(cores()));
    if (streams < 1) throw std::invalid_argument("--streams has to be at least 1");
    for (std::size_t index = 0; index < static_cast<std::size_t>(streams); ++index) {
      streams_.push_back(places_[index % places_.size()].stream());
    }
  }

  void prepare(const Problem& problem) override {
    problem_ = &problem;
    outputs_.emplace(runtime_, problem);
    used_ = std::min<std::size_t>(streams_.size(), problem.width());
    waits_.assign(std::size_t{problem.steps()} * used_, Wait{});
    awaited_.assign(std::size_t{problem.steps()} * problem.width(), false);
    problem.graph().for_each_task(
        [&](std::uint32_t step, std::uint32_t point) { plan(step, point); });
    events_.assign(std::size_t{problem.settings().graphs} * awaited_.size(), WEIR_EVENT_INIT);
  }

  double run() override {
    outputs_->clear();
    const double seconds = time_of([&] {
      for (std::uint32_t step = 0; step < problem_->steps(); ++step) submit_step(step);
      runtime_.synchronize();
    });
    problem_->verify_end([&](std::size_t number) { return outputs_->at(number); });
    return seconds;
  }

  void finish() override { outputs_.reset(); }

  std::string config() const override {
    return "host: " + std::to_string(places_.size()) + " place(s), up to " +
           std::to_string(streams_.size()) + " streams, events";
  }

 private:
  std::size_t stream_of(std::uint32_t point) const { return point * used_ / problem_->width(); }
  std::size_t task_index(std::uint32_t step, std::uint32_t point) const {
    return std::size_t{step} * problem_->width() + point;
  }
  weir_event& event_of(const TaskId& id) {
    return events_[id.graph * awaited_.size() + task_index(id.step, id.point)];
  }

  /// Adds what a task needs from other streams to the wait of its stream in that step.
  void plan(std::uint32_t step, std::uint32_t point) {
    const std::uint32_t fields = problem_->settings().fields;
    Wait& wait = waits_[step * used_ + stream_of(point)];
    for (const TaskId& before : problem_->graph().must_precede(step, point, fields)) {
      if (stream_of(before.point) == stream_of(point)) continue;
      awaited_[task_index(before.step, before.point)] = true;
      add(wait.tasks, before);
      const auto reads = problem_->graph().predecessors(step, point);
      const bool is_read = before.step + 1 == step &&
                           std::find(reads.begin(), reads.end(), before.point) != reads.end();
      if (is_read) add(wait.outputs, before);
      if (!is_read || fields == 2) add(wait.outputs, {0, step, point});
    }
  }

  static void add(std::vector<TaskId>& tasks, const TaskId& task) {
    if (std::find(tasks.begin(), tasks.end(), task) == tasks.end()) tasks.push_back(task);
  }

  void submit_step(std::uint32_t step) {
    const Points here = problem_->graph().points(step);
    for (std::uint32_t graph = 0; graph < problem_->settings().graphs; ++graph) {
      for (std::size_t stream = 0; stream < used_; ++stream) await(graph, step, stream);
      for (std::uint32_t point = here.first; point < here.first + here.count; ++point) {
        enqueue({graph, step, point});
      }
    }
  }

  void await(std::uint32_t graph, std::uint32_t step, std::size_t stream) {
    const Wait& wait = waits_[step * used_ + stream];
    if (wait.tasks.empty()) return;
    awaited_events_.clear();
    operands_.clear();
    for (const TaskId& task : wait.tasks) {
      awaited_events_.push_back(event_of({graph, task.step, task.point}));
    }
    for (const TaskId& output : wait.outputs) {
      operands_.push_back(
          outputs_->operand({graph, output.step, output.point}, WEIR_ACCESS_READ_WRITE));
    }
    weir_sync sync = WEIR_SYNC_INIT;
    sync.events = awaited_events_.data();
    sync.event_count = awaited_events_.size();
    sync.operands = operands_.data();
    sync.operand_count = operands_.size();
    sync.scope = WEIR_SYNC_SCOPE_OPERANDS;
    weir::check(weir_stream_sync(streams_[stream].handle(), &sync, nullptr));
  }

  void enqueue(const TaskId& id) {
    outputs_->operands_of(id, operands_);
    const weir_scalar scalar = weir_scalar_u64(pack(id));
    weir_compute compute = WEIR_COMPUTE_INIT;
    compute.kernel = kernel_.handle();
    compute.operands = operands_.data();
    compute.operand_count = operands_.size();
    compute.scalars = &scalar;
    compute.scalar_count = 1;
    weir_event* const event = awaited_[task_index(id.step, id.point)] ? &event_of(id) : nullptr;
    weir::check(weir_stream_compute(streams_[stream_of(id.point)].handle(), &compute, event));
  }

  const Problem* problem_ = nullptr;
  weir::Runtime runtime_{"host"};
  weir::Kernel kernel_;
  std::vector<weir::Place> places_;
  std::vector<weir::Stream> streams_;
  std::optional<WeirOutputs> outputs_;
  std::size_t used_ = 1;            ///< streams: no more than points
  std::vector<Wait> waits_;         ///< by step and stream; the same for all graphs
  std::vector<bool> awaited_;       ///< by step and point: a task of another stream waits for it
  std::vector<weir_event> events_;  ///< by graph, step and point
  std::vector<weir_event> awaited_events_;
  std::vector<weir_operand> operands_;
};

}  // namespace
}  // namespace weir_bench::metg

int main(int argc, char** argv) {
  return weir_bench::metg::driver_main<weir_bench::metg::WeirStreamsDriver>(argc, argv);
}
