// Any stream program equals its sequential execution.
//
// WEIR_TEST_PROGRAMS=N runs N programs on each platform, WEIR_TEST_SEED=S starts at seed S.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "executor.hpp"

namespace weir::model {
namespace {

std::uint64_t setting(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

struct Case {
  const char* name;
  Platform platform;
  std::uint64_t programs;
};

class RandomPrograms : public testing::TestWithParam<Case> {};

TEST_P(RandomPrograms, EqualTheirSequentialExecution) {
  const Platform& platform = GetParam().platform;
  const std::uint64_t first = setting("WEIR_TEST_SEED", 1);
  const std::uint64_t count = setting("WEIR_TEST_PROGRAMS", GetParam().programs);
  Executor executor(platform);
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const Program program = plan_program(seed, platform);
    const Outcome expected = run_sequentially(program);
    const std::string wrong = executor.run(program, expected);
    if (wrong.empty()) continue;
    std::string listing;
    for (std::size_t i = 0; i < program.steps.size(); ++i) {
      listing +=
          program.describe(i, platform) + " -> " + weir_status_name(expected.status[i]) + "\n";
    }
    FAIL() << wrong << "replay: WEIR_TEST_SEED=" << seed
           << " WEIR_TEST_PROGRAMS=1 random_programs --gtest_filter='*" << GetParam().name << "'\n"
           << listing;
  }
}

const Case kCases[] = {
    {"host_one_core", {"host:cores=1", {0}, {1}, {true}}, 4000},
    {"host_two_places", {"host", {0, 0}, {1, 1}, {true}}, 5000},
    {"host_team", {"host", {0}, {2}, {true}}, 4000},
    {"host_crowded", {"host", {0, 0, 0}, {2, 1, 1}, {true}}, 2000},
    {"sim", {"sim:cores=1,gbps=1000,latency_us=0", {0, 0}, {1, 1}, {false}}, 4000},
    {"sim_small_memory", {"sim:gbps=1000,latency_us=0,memory=1536B", {0}, {1}, {false}}, 2000},
    {"host_and_two_sims",
     {"host:cores=1,sim:gbps=1000,latency_us=0,duplex=half,sim:gbps=1000,latency_us=0",
      {0, 1, 2},
      {1, 1, 1},
      {true, false, false}},
     4000},
    {"virtual_time",
     {"sim:cores=3,clock=virtual,gbps=6,sim:cores=2,clock=virtual,duplex=half",
      {0, 0, 1},
      {2, 1, 2},
      {false, false}},
     3000},
};

INSTANTIATE_TEST_SUITE_P(Platforms, RandomPrograms, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace weir::model
