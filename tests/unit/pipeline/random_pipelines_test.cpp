// Random pipelines on real threads: what each stage gets is what a sequential run gives it.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>

#include "random_pipeline.hpp"

namespace weir::rt::random_pipeline {
namespace {

std::uint64_t setting(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

/// Calls run(seed), which returns what went wrong, for as many seeds as are asked for.
template <class Run>
void run_seeds(std::uint64_t usual, Run&& run) {
  const std::uint64_t first = setting("WEIR_TEST_SEED", 1);
  const std::uint64_t count = setting("WEIR_TEST_PROGRAMS", usual);
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    ASSERT_EQ(run(seed), "") << "replay: WEIR_TEST_PROGRAMS=1 WEIR_TEST_SEED=" << seed
                             << " unit_pipeline --gtest_filter='RandomPipelines.*'";
  }
}

TEST(RandomPipelines, EqualTheirSequentialExecution) {
  run_seeds(2'000, [](std::uint64_t seed) {
    const Plan plan = plan_of(seed);
    return Trial(plan).run();
  });
}

TEST(RandomPipelines, OrderedStage_KeepsTheOrderOfItems) {
  run_seeds(500, [](std::uint64_t seed) { return OrderTrial(seed).run(); });
}

}  // namespace
}  // namespace weir::rt::random_pipeline
