// Task Bench's patterns in a task queue of weir, which finds the dependences.
//
//   metg_weir_queue PATTERNS [--domains LIST] [--places N] [--policy NAME] ...   N places a domain
//   metg_weir_queue PATTERNS --replay 1 ...   launches of graphs that are recorded before
//   metg_weir_queue PATTERNS --ranks 2 ...   two processes, each on half of the cores
#include <weir/fabric.hpp>
#include <weir/graph.hpp>

#include "common/halves.hpp"
#include "common/launch.hpp"
#include "metg/weir_outputs.hpp"

namespace weir_bench::metg {
namespace {

/// Domains that the program opens, with the fabric of its ranks if there are any.
weir_runtime_options options_of(const std::string& domains, weir_fabric* fabric) {
  weir_runtime_options options = WEIR_RUNTIME_OPTIONS_INIT;
  options.domains = domains.c_str();
  options.fabric = fabric;
  return options;
}

class WeirQueueDriver final : public Driver {
 public:
  /// Without a fabric: nullptr. `cores`: of all processes.
  WeirQueueDriver(const Arguments& arguments, std::size_t cores, weir_fabric* fabric)
      : cores_(cores),
        domains_(arguments.text("--domains", fabric != nullptr ? halves(cores) : "host")),
        runtime_(options_of(domains_, fabric)),
        kernel_(task_kernel(runtime_, &problem_)),
        receive_(runtime_.kernel("receive problem",
                                 [this](weir::Call& call) {
                                   received_.emplace(call.span<Settings>(0)[0]);
                                   problem_ = &*received_;
                                 })),
        served_(fabric != nullptr && runtime_.serve()),
        replay_(arguments.number("--replay", 0) != 0) {
    if (served_) return;
    places_ = places_of(runtime_, static_cast<std::size_t>(arguments.number("--places", 1)));
    queue_ = make_queue(arguments.text("--policy", "finish"));
    if (fabric != nullptr) settings_ = runtime_.buffer(sizeof(Settings));
  }

  /// Whether this process was another rank, and has run what rank 0 sent.
  bool served() const { return served_; }

  std::size_t cores() const override { return cores_; }

  void prepare(const Problem& problem) override {
    problem_ = &problem;
    outputs_.emplace(runtime_, problem);
    if (settings_.handle() != nullptr) send(problem.settings());
    if (!replay_) return;
    graph_ = weir::record(queue_, [this] { submit_all(); }, {.record_only = true});
  }

  double run() override {
    queue_.acquire(outputs_->buffer().all(), WEIR_ACCESS_WRITE);
    outputs_->clear();
    const double seconds = time_of([&] {
      if (replay_) {
        graph_.launch();
      } else {
        submit_all();
      }
      queue_.synchronize();
    });
    problem_->verify_end([&](std::size_t number) { return outputs_->at(number); });
    return seconds;
  }

  void finish() override {
    graph_ = {};
    outputs_.reset();
  }

  std::string config() const override {
    const std::string policy = queue_.info().policy;
    const std::string what = replay_ ? ": launches of a graph, queue over " : ": a queue over ";
    return domains_ + what + std::to_string(places_.size()) + " place(s), " + policy;
  }

 private:
  static std::string halves(std::size_t cores) {
    const std::string half = std::to_string(std::max<std::size_t>(cores / 2, 1));
    return "host:cores=" + half + ",rank:1/host:cores=" + half;
  }

  static_assert(std::is_trivially_copyable_v<Settings>);

  /// Sends the problem to rank 1, the last place, as an operand.
  void send(const Settings& settings) const {
    queue_.acquire(settings_.all(), WEIR_ACCESS_WRITE);
    std::memcpy(settings_.data(), &settings, sizeof settings);
    weir::TaskOptions there;
    there.place = places_.back().handle();
    queue_.submit(receive_, {weir::read(settings_.all())}, {}, there);
    queue_.synchronize();
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

  void submit_all() {
    problem_->for_each_task([this](const TaskId& id) { submit(id); });
  }

  void submit(const TaskId& id) {
    outputs_->operands_of(id, operands_);
    const weir_scalar scalar = weir_scalar_u64(pack(id));
    weir_task task = WEIR_TASK_INIT;
    task.kernel = kernel_.handle();
    task.operands = operands_.data();
    task.operand_count = operands_.size();
    task.scalars = &scalar;
    task.scalar_count = 1;
    weir::check(weir_queue_submit(queue_.handle(), &task, nullptr));
  }

  std::size_t cores_;
  const Problem* problem_ = nullptr;
  std::optional<Problem> received_;  ///< in another rank than 0
  std::string domains_;
  weir::Runtime runtime_;
  weir::Kernel kernel_, receive_;
  bool served_, replay_;
  std::vector<weir::Place> places_;
  weir::Buffer settings_;
  weir::Queue queue_;
  std::optional<WeirOutputs> outputs_;
  weir::Graph graph_;
  std::vector<weir_operand> operands_;
};

/// One of two processes: rank 0 measures, and sends tasks to the other.
int run_rank(int count, char** values) {
  if (std::getenv("WEIR_RANK") == nullptr) return launch(2, count, values);
  const std::size_t cores = allowed_cores().size();
  take_half();
  const weir::Fabric fabric;
  const Arguments arguments(count, values);
  WeirQueueDriver driver(arguments, cores, fabric.handle());
  if (driver.served()) return 0;
  return run_program(count, values,
                     [&](const Arguments&) { return measure_driver(driver, arguments); });
}

int run(int count, char** values) {
  const long ranks = Arguments(count, values).number("--ranks", 1);
  if (ranks == 2) return run_rank(count, values);
  if (ranks != 1) throw std::invalid_argument("--ranks is 1 or 2");
  return run_program(count, values, [](const Arguments& arguments) {
    WeirQueueDriver driver(arguments, allowed_cores().size(), nullptr);
    return measure_driver(driver, arguments);
  });
}

}  // namespace
}  // namespace weir_bench::metg

int main(int argc, char** argv) {
  try {
    return weir_bench::metg::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
