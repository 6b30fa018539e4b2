// Random graphs: as their calls one after the other, in every order of the threads.
#include <cstdint>
#include <random>
#include <string>

#include "random_graphs.hpp"
#include "random_trials.hpp"

namespace weir {
namespace {

struct Plan {
  std::uint64_t seed;

  std::string describe() const { return "random graph " + std::to_string(seed); }
};

std::string trial(const Plan& plan) {
  std::mt19937 random(static_cast<unsigned>(plan.seed));
  const Runtime runtime(("host:cores=" + std::to_string(1 + plan.seed % 4)).c_str());
  const Queue queue = runtime.queue();
  RandomProgram program(runtime, random);
  return run_random_graph(
      program, random, queue,
      [&](const Kernel& kernel, const auto& operands, const auto& scalars) {
        queue.submit(kernel, operands, scalars);
      },
      [&] { queue.synchronize(); });
}

TEST(ScheduledGraphs, EqualTheirSequentialExecution) {
  schedule::run_trials(
      "scheduled_graphs", "graphs", 2'000, [](std::uint64_t seed) { return Plan{seed}; }, trial);
}

}  // namespace
}  // namespace weir
