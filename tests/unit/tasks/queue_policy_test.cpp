// How well policies of task queues divide work over modelled machines, in virtual time.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "modelled_machines.hpp"
#include "surroundings.hpp"

namespace weir_study {
namespace {

/// A cache folder of the test's own.
class QueuePolicies : public testing::Test {
  const weir::CacheFolder folder_;
};

/// Virtual time without what was learned at first, and without the first places that are tried
/// again.
template <class Problem>
double seconds(const Machine& machine, const Problem& problem, const char* policy) {
  const Study study(machine.domains(), policy);
  study.run(problem);
  study.run(problem);
  return study.run(problem);
}

/// How much faster the best other policy may be. With the links of Hopper, results take most of the
/// time on their way back, which no estimate counts: docs/measurements/policies.md.
double allowed(const Machine& machine, const Problem& problem) {
  const bool returns = machine.name == "Grace + Hopper" && !problem.cholesky && problem.tile == 128;
  return returns ? 1.07 : 1.03;
}

#ifdef WEIR_SANITIZED
constexpr std::size_t kMachineStep = 8;  // virtual times are the same, and take minutes to compute
#else
constexpr std::size_t kMachineStep = 1;
#endif

TEST_F(QueuePolicies, ModelledMachines_FinishIsWithin7PercentOfTheBestPolicy) {
  const Problem problems[] = {
      {false, 4096, 128}, {false, 4096, 512}, {true, 4096, 256}, {true, 4096, 512}};
  const std::vector<Machine> all = machines();
  for (std::size_t at = 0; at < all.size(); at += kMachineStep) {
    const Machine& machine = all[at];
    for (const Problem& problem : problems) {
      double best = seconds(machine, problem, "round-robin");
      for (const char* other : {"steal", "locality", "static"}) {
        best = std::min(best, seconds(machine, problem, other));
      }
      EXPECT_LE(seconds(machine, problem, "finish"), allowed(machine, problem) * best)
          << problem.name() << " on " << machine.name;
    }
  }
}

/// The weight of copies kept strips on one place, whose neighbour was idle in each step.
TEST_F(QueuePolicies, IterativeStencil_FinishIsWithin10PercentOfTheBestPolicy) {
  const Machine machines[] = {{"1 + 1, slow link", {{1, 1}, {1, 1, 1}}},
                              {"1 + 1, faster link", {{1, 1}, {1, 1, 4}}},
                              {"1 + 1:4, slow link", {{1, 1}, {1, 4, 1}}}};
  for (const Machine& machine : machines) {
    const weir_study::Stencil stencil{2048, 8, 50};
    double best = seconds(machine, stencil, "round-robin");
    for (const char* other : {"steal", "locality", "static"}) {
      best = std::min(best, seconds(machine, stencil, other));
    }
    EXPECT_LE(seconds(machine, stencil, "finish"), 1.1 * best) << machine.name;
  }
}

TEST_F(QueuePolicies, TwoRunsTakeTheSameVirtualTime) {
  for (const Machine& machine : machines()) {
    const Problem problem{true, 2048, 256};
    EXPECT_EQ(seconds(machine, problem, "finish"), seconds(machine, problem, "finish"))
        << machine.name;
  }
}

/// Tasks of the first place, of a hundred.
double share_of_first(const weir::Queue& queue) {
  const auto shares = queue.shares();
  double all = 0;
  for (const weir_queue_share& share : shares) all += static_cast<double>(share.tasks);
  return 100 * static_cast<double>(shares.front().tasks) / all;
}

constexpr Problem kProduct{false, 4096, 128};

TEST_F(QueuePolicies, PlaceSlowInAnEarlierRun_GetsTasksFromFinishAgain) {
  const std::string first = Processor{8, 20}.domain(), second = Processor{8, 21}.domain();
  Study(first, "finish", true).run(Problem{false, 4096, 128, 44});
  Study(second, "finish", true).run(kProduct);
  const Study study(first + "," + second, "finish", true);
  study.run(kProduct);
  EXPECT_GT(share_of_first(study.queue()), 25) << "of two places that are about equally fast";
}

TEST_F(QueuePolicies, PlaceMeasuredAtOtherSizesOnly_StillGetsTasksFromFinish) {
  const Processor host{28, 32.2}, card{60, 16.5, 6.5, 15, "half"};
  Study study(card.domain() + "," + host.domain(), "finish", true);
  study.run(Problem{false, 4096, 256});
  {
    Study alone(host.domain(), "finish", true);  // whose times of the smaller size are known then
    alone.run(kProduct);
  }
  study.open("finish", true);
  study.run(kProduct);
  EXPECT_GT(share_of_first(study.queue()), 30) << "half of the speed";
}

TEST_F(QueuePolicies, FarSlowerSecondPlace_CostsAtMost4Percent) {
  const Machine alone{"", {{8, 20}}}, both{"", {{8, 20}, {1, 0.02}}};
  EXPECT_LE(seconds(both, kProduct, "finish"), 1.04 * seconds(alone, kProduct, "finish"));
}

/// Virtual time of independent tasks, each of which takes all cores of one of four equal places.
double seconds_of_teams(const char* policy) {
  const weir::Runtime runtime("sim:clock=virtual,cores=64,gflops=1,kernels=skip");
  weir_implementation code = {"host", [](const weir_call*) { return WEIR_STATUS_OK; }, nullptr};
  weir_kernel_options kernel = WEIR_KERNEL_OPTIONS_INIT;
  kernel.name = "team";
  kernel.shape = WEIR_KERNEL_SHAPE_PARALLEL;
  kernel.implementations = &code;
  kernel.implementation_count = 1;
  kernel.cost = [](const weir_call*) { return weir_cost{1.6e8, 0}; };
  weir::check(weir_kernel_register(runtime.handle(), &kernel, nullptr));
  const std::vector<weir::Place> places = runtime.domain(0).partition(4);
  std::vector<weir_place*> handles;
  for (const weir::Place& place : places) handles.push_back(place.handle());
  weir_queue_options options = WEIR_QUEUE_OPTIONS_INIT;
  options.places = handles.data();
  options.place_count = handles.size();
  options.policy = policy;
  options.no_models = true;
  const weir::Queue queue = runtime.queue(options);
  constexpr std::size_t kTasks = 40, kBytes = 64;
  const weir::Buffer buffer = runtime.buffer(kTasks * kBytes);
  auto start = runtime.now();
  for (int pass = 0; pass < 2; ++pass) {  // the first one measures the kernel
    start = runtime.now();
    for (std::size_t i = 0; i < kTasks; ++i) {
      queue.submit(runtime.kernel("team"), {weir::write(buffer.range(i * kBytes, kBytes))}, {});
    }
    queue.synchronize();
  }
  return std::chrono::duration<double>(runtime.now() - start).count();
}

TEST_F(QueuePolicies, ParallelTasks_AreSpreadOverAllPlacesByEachPolicy) {
  const double round_robin = seconds_of_teams("round-robin");
  for (const char* policy : {"finish", "steal", "locality", "static"}) {
    EXPECT_LE(seconds_of_teams(policy), 1.1 * round_robin) << policy;
  }
}

TEST_F(QueuePolicies, PlaceWithoutTasks_QueueInfoGivesTheReason) {
  const Study study(
      "sim:clock=virtual,gflops=1,kernels=skip,sim:clock=virtual,gflops=1,kernels=skip", "static");
  EXPECT_EQ(study.queue().info().remarks, nullptr) << "there was no task";
  const weir::Buffer buffer = study.runtime().buffer(64);
  study.queue().submit(study.runtime().kernel("gemm"), {weir::readwrite(buffer.all())}, {1.0},
                       {.domains = 1});
  study.queue().synchronize();
  ASSERT_NE(study.queue().info().remarks, nullptr);
  EXPECT_NE(std::string(study.queue().info().remarks).find("has got no task: none may run there"),
            std::string::npos);
  study.queue().submit(study.runtime().kernel("gemm"), {weir::readwrite(buffer.all())}, {1.0},
                       {.domains = 2});
  study.queue().synchronize();
  EXPECT_EQ(study.queue().info().remarks, nullptr);
}

TEST_F(QueuePolicies, PlaceAvoidedByTimesOfEarlierQueue_QueueInfoNamesThem) {
  const Machine machine{"", {{1, 1}, {1, 0.0001}}};
  {
    const Study measured(machine.domains(), "round-robin", true);
    measured.run(Problem{false, 256, 128});
  }
  const Study study(machine.domains(), "finish", true);
  study.run(Problem{false, 256, 128});
  const char* const remarks = study.queue().info().remarks;
  ASSERT_NE(remarks, nullptr);
  for (const char* part :
       {"has got no task", "'gemm' would take", "by times of an earlier queue"}) {
    EXPECT_NE(std::string(remarks).find(part), std::string::npos) << remarks;
  }
}

}  // namespace
}  // namespace weir_study
