// Task Bench's patterns in a task queue of weir, which finds the dependences.
//
//   metg_weir_queue PATTERNS [--domains LIST] [--places N] [--policy NAME] ...   N places a domain
#include "metg/weir_outputs.hpp"

namespace weir_bench::metg {
namespace {

class WeirQueueDriver final : public Driver {
 public:
  explicit WeirQueueDriver(const Arguments& arguments)
      : domains_(arguments.text("--domains", "host")),
        runtime_(domains_),
        kernel_(task_kernel(runtime_, &problem_)),
        places_(places_of(runtime_, static_cast<std::size_t>(arguments.number("--places", 1)))),
        queue_(make_queue(arguments.text("--policy", "finish"))) {}

  void prepare(const Problem& problem) override {
    problem_ = &problem;
    outputs_.emplace(runtime_, problem);
  }

  double run() override {
    queue_.acquire(outputs_->buffer().all(), WEIR_ACCESS_WRITE);
    outputs_->clear();
    const double seconds = time_of([&] {
      problem_->for_each_task([&](const TaskId& id) { submit(id); });
      queue_.synchronize();
    });
    problem_->verify_end([&](std::size_t number) { return outputs_->at(number); });
    return seconds;
  }

  void finish() override { outputs_.reset(); }

  std::string config() const override {
    const std::string policy = queue_.info().policy;
    return domains_ + ": a queue over " + std::to_string(places_.size()) + " place(s), " + policy;
  }

 private:
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

  const Problem* problem_ = nullptr;
  std::string domains_;
  weir::Runtime runtime_;
  weir::Kernel kernel_;
  std::vector<weir::Place> places_;
  weir::Queue queue_;
  std::optional<WeirOutputs> outputs_;
  std::vector<weir_operand> operands_;
};

}  // namespace
}  // namespace weir_bench::metg

int main(int argc, char** argv) {
  return weir_bench::metg::driver_main<weir_bench::metg::WeirQueueDriver>(argc, argv);
}
