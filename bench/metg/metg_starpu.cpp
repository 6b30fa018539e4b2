// Task Bench's patterns as StarPU tasks on data handles: sequential data flow.
#include <starpu.h>

#include "common/starpu_session.hpp"
#include "metg/driver.hpp"

namespace weir_bench::metg {
namespace {

class StarpuDriver final : public PlainDriver {
 public:
  explicit StarpuDriver(const Arguments&) {
    starpu_codelet_init(&codelet_);
    codelet_.cpu_funcs[0] = [](void** buffers, void* argument) {
      const TaskId id = unpack(reinterpret_cast<std::uintptr_t>(argument));
      running_->execute_on(id, buffers);
    };
    codelet_.name = "task";
    codelet_.nbuffers = STARPU_VARIABLE_NBUFFERS;
    running_ = this;
  }

  void prepare(const Problem& problem) override {
    PlainDriver::prepare(problem);
    handles_.resize(problem.outputs());
    for (std::size_t number = 0; number < handles_.size(); ++number) {
      starpu_variable_data_register(&handles_[number], STARPU_MAIN_RAM,
                                    reinterpret_cast<std::uintptr_t>(outputs().at(number)),
                                    problem.settings().output_bytes);
    }
  }

  void finish() override {
    for (starpu_data_handle_t handle : handles_) starpu_data_unregister(handle);
    handles_.clear();
    PlainDriver::finish();
  }

  std::string config() const override { return session_.describe(); }

 protected:
  void run_tasks() override {
    problem().for_each_task([&](const TaskId& id) { submit(id); });
    check_starpu(starpu_task_wait_for_all());
  }

 private:
  void execute_on(const TaskId& id, void** buffers) const {
    const auto memory = [&](std::size_t index) {
      return reinterpret_cast<void*>(STARPU_VARIABLE_GET_PTR(buffers[index]));
    };
    const std::size_t reads = problem().graph().predecessors(id.step, id.point).size();
    problem().execute(id, memory, memory(reads));
  }

  void submit(const TaskId& id) {
    const auto reads = problem().graph().predecessors(id.step, id.point);
    starpu_task* const task = starpu_task_create();
    task->cl = &codelet_;
    task->cl_arg = reinterpret_cast<void*>(static_cast<std::uintptr_t>(pack(id)));
    task->nbuffers = static_cast<int>(reads.size()) + 1;
    starpu_data_handle_t* handles = task->handles;
    starpu_data_access_mode* modes = task->modes;
    if (reads.size() + 1 > STARPU_NMAXBUFS) {  // StarPU frees them with the task
      handles = task->dyn_handles = allocate<starpu_data_handle_t>(reads.size() + 1);
      modes = task->dyn_modes = allocate<starpu_data_access_mode>(reads.size() + 1);
    }
    for (std::size_t index = 0; index < reads.size(); ++index) {
      handles[index] = handles_[problem().output_of({id.graph, id.step - 1, reads[index]})];
      modes[index] = STARPU_R;
    }
    handles[reads.size()] = handles_[problem().output_of(id)];
    modes[reads.size()] = STARPU_W;
    check_starpu(starpu_task_submit(task));
  }

  template <class T>
  static T* allocate(std::size_t count) {
    void* const memory = std::malloc(count * sizeof(T));
    if (memory == nullptr) throw std::bad_alloc();
    return static_cast<T*>(memory);
  }

  static inline StarpuDriver* running_ = nullptr;

  StarpuSession session_;
  starpu_codelet codelet_;
  std::vector<starpu_data_handle_t> handles_;
};

}  // namespace
}  // namespace weir_bench::metg

int main(int argc, char** argv) {
  return weir_bench::metg::driver_main<weir_bench::metg::StarpuDriver>(argc, argv);
}
