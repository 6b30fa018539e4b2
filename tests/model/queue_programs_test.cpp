// Random programs of tasks against their sequential execution.
//
//   WEIR_TEST_PROGRAMS, WEIR_TEST_SEED: as for random_programs
#include <gtest/gtest.h>

#include <cstdint>
#include <iostream>
#include <string>

#include "hang_guard.hpp"
#include "queue_trial.hpp"
#include "settings.hpp"

namespace weir::queue_model {
namespace {

#ifdef __SANITIZE_THREAD__
constexpr std::uint64_t kPrograms = 1000;
#else
constexpr std::uint64_t kPrograms = 3000;
#endif

TEST(QueuePrograms, EqualTheirSequentialExecution) {
  const std::uint64_t programs = model::setting("WEIR_TEST_PROGRAMS", kPrograms);
  const std::uint64_t first = model::setting("WEIR_TEST_SEED", 1);
  for (std::uint64_t seed = first; seed < first + programs; ++seed) {
    const Plan plan = plan_of(seed);
    const std::string replay =
        "WEIR_TEST_SEED=" + std::to_string(seed) + " WEIR_TEST_PROGRAMS=1 queue_programs";
    const model::HangGuard guard(replay);
    ASSERT_EQ(Trial(plan).run(), "") << "replay: " << replay;
  }
  std::cout << "proof: " << model::grouped(programs) << " programs\n";
}

}  // namespace
}  // namespace weir::queue_model
