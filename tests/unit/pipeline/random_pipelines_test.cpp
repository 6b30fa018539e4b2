// Random pipelines on real threads: what each stage gets is what a sequential run gives it.
#include <gtest/gtest.h>

#include <cstdlib>

#include "random_pipeline.hpp"

namespace weir::rt::random_pipeline {
namespace {

TEST(RandomPipelines, EqualTheirSequentialExecution) {
  const char* const wanted = std::getenv("WEIR_TEST_PROGRAMS");
  const char* const seed = std::getenv("WEIR_TEST_SEED");
  const std::uint64_t count = wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 2'000;
  const std::uint64_t first = seed != nullptr ? std::strtoull(seed, nullptr, 10) : 1;
  for (std::uint64_t at = first; at < first + count; ++at) {
    const Plan plan = plan_of(at);
    Trial trial(plan);
    ASSERT_EQ(trial.run(), "") << "replay: WEIR_TEST_PROGRAMS=1 WEIR_TEST_SEED=" << at;
  }
}

TEST(RandomPipelines, KeepTheOrder) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    ASSERT_EQ(OrderTrial(seed).run(), "") << "seed " << seed;
  }
}

}  // namespace
}  // namespace weir::rt::random_pipeline
