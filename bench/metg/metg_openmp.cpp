// Task Bench's patterns as OpenMP tasks, whose depend clauses name a byte for each output.
#include <omp.h>

#include "metg/driver.hpp"

namespace weir_bench::metg {
namespace {

class OpenmpDriver final : public PlainDriver {
 public:
  explicit OpenmpDriver(const Arguments&) {}

  void prepare(const Problem& problem) override {
    PlainDriver::prepare(problem);
    tokens_.resize(problem.outputs());
  }

  std::string config() const override {
#ifdef __clang__
    const std::string name = "LLVM OpenMP";
#else
    const std::string name = "GCC's libgomp";
#endif
    return name + " tasks, " + std::to_string(omp_get_max_threads()) + " threads";
  }

 protected:
  void run_tasks() override {
#pragma omp parallel
#pragma omp single
    problem().for_each_task([&](const TaskId& id) { submit(id); });
  }

 private:
  void submit(const TaskId& id) {
    const auto reads = problem().graph().predecessors(id.step, id.point);
    const auto token = [&](std::size_t index) -> char& {
      return tokens_[problem().output_of({id.graph, id.step - 1, reads[index]})];
    };
    char& target = tokens_[problem().output_of(id)];
    switch (reads.size()) {
      case 0: return submit(id, target);
      case 1: return submit(id, token(0), target);
      case 2: return submit(id, token(0), token(1), target);
      case 3: return submit(id, token(0), token(1), token(2), target);
      default: return submit_many(id, reads.size(), token, target);
    }
  }

  void submit(TaskId id, [[maybe_unused]] char& target) const {
#pragma omp task depend(out : target)
    execute(id);
  }
  void submit(TaskId id, [[maybe_unused]] char& first, [[maybe_unused]] char& target) const {
#pragma omp task depend(in : first) depend(out : target)
    execute(id);
  }
  void submit(TaskId id, [[maybe_unused]] char& first, [[maybe_unused]] char& second,
              [[maybe_unused]] char& target) const {
#pragma omp task depend(in : first, second) depend(out : target)
    execute(id);
  }
  void submit(TaskId id, [[maybe_unused]] char& first, [[maybe_unused]] char& second,
              [[maybe_unused]] char& third, [[maybe_unused]] char& target) const {
#pragma omp task depend(in : first, second, third) depend(out : target)
    execute(id);
  }
  template <class Token>
  void submit_many(TaskId id, std::size_t count, const Token& token,
                   [[maybe_unused]] char& target) const {
    std::array<char*, most_reads> reads;
    if (count > reads.size()) throw std::invalid_argument("a task reads too many outputs");
    for (std::size_t index = 0; index < count; ++index) reads[index] = &token(index);
#pragma omp task depend(iterator(std::size_t index = 0 : count), in : *reads[index]) \
    depend(out : target)
    execute(id);
  }

  static constexpr std::size_t most_reads = 256;

  std::vector<char> tokens_;
};

}  // namespace
}  // namespace weir_bench::metg

int main(int argc, char** argv) {
  return weir_bench::metg::driver_main<weir_bench::metg::OpenmpDriver>(argc, argv);
}
