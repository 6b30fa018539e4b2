#include "tasks/policy.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "thrown.hpp"

namespace weir::rt {
namespace {

/// Made-up candidates. Their places are never looked into.
class Policies : public testing::Test {
 protected:
  weir_candidate candidate(std::size_t index) {
    weir_candidate made{};
    made.place = reinterpret_cast<weir_place*>(&places_[index]);
    made.cores = 1;
    made.weight = 1;
    return made;
  }
  std::vector<weir_candidate> candidates(std::size_t count) {
    std::vector<weir_candidate> made;
    for (std::size_t i = 0; i < count; ++i) made.push_back(candidate(i));
    return made;
  }
  /// `outlooks` of the first candidates; those of the others are as they are by default.
  static std::size_t choose(Policy& policy, const std::vector<weir_candidate>& from,
                            const char* task = "task",
                            std::vector<CandidateEstimate> outlooks = {}) {
    outlooks.resize(from.size());
    return policy.choose(task, from, outlooks);
  }
  /// What a policy chooses when it is asked again and again.
  static std::string choices(Policy& policy, const std::vector<weir_candidate>& from, int count) {
    std::string chosen;
    for (int i = 0; i < count; ++i) {
      const std::size_t choice = choose(policy, from);
      chosen +=
          choice < from.size() && from[choice].full ? std::string("-") : std::to_string(choice);
    }
    return chosen;
  }
  std::unique_ptr<Policy> policy(const char* name) const { return table_.make(name); }

  PolicyTable table_;

 private:
  std::array<double, 8> places_{};
};

TEST_F(Policies, Finish_ChoosesTheEarliestPredictedCompletion) {
  auto from = candidates(3);
  from[0].run_ns = 100, from[0].free_ns = 50;
  from[1].run_ns = 20, from[1].free_ns = 100;
  from[2].run_ns = 10, from[2].ready_ns = 60, from[2].transfer_ns = 60;
  EXPECT_EQ(choose(*policy("finish"), from), 1u);  // 120 before 130 and 150
  from[1].free_ns = 111;
  EXPECT_EQ(choose(*policy("finish"), from), 2u);
  from[2].free_ns = 122;
  EXPECT_EQ(choose(*policy("finish"), from), 1u);  // copies do not hold up what waits for a core
}

TEST_F(Policies, Finish_WeighsCopyTimeMoreThanRunTime) {
  auto from = candidates(2);
  from[0].run_ns = 20, from[1].run_ns = 10;
  EXPECT_EQ(choose(*policy("finish"), from, "t", {{}, {.copying_ns = 2}}), 1u);
  EXPECT_EQ(choose(*policy("finish"), from, "t", {{}, {.copying_ns = 3}}), 0u);
}

TEST_F(Policies, FullPlaceCompletesEarliest_FinishDefersTheTask) {
  auto from = candidates(2);
  from[0].run_ns = 10, from[1].run_ns = 100;
  from[0].full = true;
  EXPECT_EQ(choose(*policy("finish"), from), 0u);
  from[0].free_ns = 91;  // with those that were left for it
  EXPECT_EQ(choose(*policy("finish"), from), 1u);
}

TEST_F(Policies, UnmeasuredPlaces_FinishTriesTheLeastLoaded) {
  auto from = candidates(3);
  for (weir_candidate& each : from) each.run_ns = -1;
  from[0].run_ns = 1;
  from[0].tasks = 1, from[1].tasks = 3, from[2].tasks = 5;
  EXPECT_EQ(choose(*policy("finish"), from), 1u);
  from[2].cores = 2;
  EXPECT_EQ(choose(*policy("finish"), from), 2u);  // the load is that of a core
  EXPECT_EQ(choose(*policy("finish"), from, "t", {{}, {}, {.unmeasured = 2}}), 1u);
  from[1].full = true;
  EXPECT_EQ(choose(*policy("finish"), from, "t", {{}, {}, {.unmeasured = 2}}), 0u);
  from[0].run_ns = -1;
  EXPECT_EQ(choose(*policy("finish"), from, "t", {{.unmeasured = 1}, {}, {.unmeasured = 2}}),
            WEIR_POLICY_LATER);
}

/// How many of `count` tasks go to the first place until it gets one. The second one is better.
int tasks_until_tried(Policy& policy, const std::vector<weir_candidate>& from,
                      PerformanceModel::Source source, int count) {
  for (int i = 0; i < count; ++i) {
    const CandidateEstimate avoided = {.tasks_since = static_cast<std::uint64_t>(i),
                                       .source = source};
    if (policy.choose("t", from, std::vector<CandidateEstimate>{avoided, {}}) == 0) return i;
  }
  return count;
}

TEST_F(Policies, AvoidedPlace_FinishRetriesItWhenWorthItsCost) {
  using Source = PerformanceModel::Source;
  auto from = candidates(2);
  from[1].run_ns = 64'000;
  from[0].run_ns = 128'000;  // costs 64 more: saved at 1 of each task on two cores
  EXPECT_EQ(tasks_until_tried(*policy("finish"), from, Source::measured, 1000), 64);
  from[0].run_ns = 264'000;
  EXPECT_EQ(tasks_until_tried(*policy("finish"), from, Source::measured, 1000), 199);
  EXPECT_EQ(tasks_until_tried(*policy("finish"), from, Source::guess, 1000), 32);
  EXPECT_EQ(tasks_until_tried(*policy("finish"), from, Source::earlier, 1000), 32);
  from[0].run_ns = 64'000'000;
  EXPECT_EQ(tasks_until_tried(*policy("finish"), from, Source::measured, 1000), 1000)
      << "what costs more than is ever saved";
  from[0].run_ns = 100'000;
  from[0].tasks = 1;
  EXPECT_EQ(tasks_until_tried(*policy("finish"), from, Source::measured, 1000), 1000)
      << "a place that is busy";
}

TEST_F(Policies, Steal_PrefersRoomThenLocalDataThenLowLoad) {
  auto from = candidates(3);
  from[0].missing_bytes = 8, from[1].missing_bytes = 4, from[2].missing_bytes = 4;
  from[1].cores = from[2].cores = 2;
  from[1].tasks = 1;
  EXPECT_EQ(choose(*policy("steal"), from, "t"), 2u);
  from[2].tasks = 2;
  EXPECT_EQ(choose(*policy("steal"), from, "t"), 1u);  // a free core before an equal load
  from[1].full = true, from[2].full = true;
  EXPECT_EQ(choose(*policy("steal"), from, "t"), 0u);
  from[0].full = true;
  EXPECT_TRUE(from[choose(*policy("steal"), from, "t")].full);
}

TEST_F(Policies, Locality_ChoosesTheOwnerOfTheDataEvenWhenFull) {
  auto from = candidates(3);
  from[0].tasks = 2, from[1].tasks = 1, from[2].tasks = 3;
  EXPECT_EQ(choose(*policy("locality"), from, "t"), 1u);  // no place owns it: least load
  from[0].owned_bytes = 4, from[2].owned_bytes = 8;
  EXPECT_EQ(choose(*policy("locality"), from, "t"), 2u);
  from[2].full = true;
  EXPECT_EQ(choose(*policy("locality"), from, "t"), 2u);  // it waits for the owner
}

TEST_F(Policies, Static_DistributesByWeightAndReservesForFullPlaces) {
  auto from = candidates(2);
  from[0].weight = 3;
  const auto shares = policy("static");
  EXPECT_EQ(choices(*shares, from, 8), "00010001");
  from[1].full = true;
  EXPECT_EQ(choices(*shares, from, 4), "000-");  // the share of a full place is kept for it
  from[1].full = false;
  EXPECT_EQ(choices(*shares, from, 1), "1");
}

TEST_F(Policies, Static_CountsTasksPerPlaceNotPerCandidateIndex) {
  const auto shares = policy("static");
  const auto all = candidates(2);
  EXPECT_EQ(choices(*shares, {all[1]}, 2), "00");
  EXPECT_EQ(choices(*shares, all, 3), "000");  // place 1 has had its share
}

TEST_F(Policies, RoundRobin_CyclesAndWaitsForAFullPlace) {
  auto from = candidates(3);
  const auto turns = policy("round-robin");
  EXPECT_EQ(choices(*turns, from, 4), "0120");
  from[1].full = true;
  EXPECT_EQ(choices(*turns, from, 2), "--");
  from[1].full = false;
  EXPECT_EQ(choices(*turns, from, 2), "12");
}

TEST_F(Policies, EveryPolicyTakesTheOnlyCandidate) {
  for (const PolicyEntry& entry : table_.entries()) {
    EXPECT_EQ(choose(*table_.make(entry.name), candidates(1)), 0u) << entry.name;
  }
}

TEST_F(Policies, TwoInstancesOfOnePolicy_ShareNoState) {
  EXPECT_EQ(choices(*policy("round-robin"), candidates(2), 1), "0");
  EXPECT_EQ(choices(*policy("round-robin"), candidates(2), 1), "0");
}

TEST_F(Policies, RegisteredPolicy_GetsTaskCandidateCountAndPayload) {
  struct Seen {
    std::string task;
    std::size_t count = 0;
  } seen;
  weir_policy_options options = WEIR_POLICY_OPTIONS_INIT;
  options.name = "last";
  options.payload = &seen;
  options.choose = [](const char* task, const weir_candidate*, std::size_t count, void* payload) {
    *static_cast<Seen*>(payload) = {task, count};
    return count - 1;
  };
  table_.add(options);
  EXPECT_EQ(choose(*policy("last"), candidates(4), "gemm"), 3u);
  EXPECT_EQ(seen.task, "gemm");
  EXPECT_EQ(seen.count, 4u);
  EXPECT_EQ(table_.entries().back().name, "last");
  EXPECT_EQ(table_.entries().back().summary, "");
}

// ---- Names -------------------------------------------------------------------------------------

TEST_F(Policies, UnknownName_ErrorSuggestsTheNearest) {
  EXPECT_EQ(thrown_by<Error>([&] { policy("localty"); }, WEIR_STATUS_NOT_FOUND),
            "no policy 'localty' (did you mean 'locality'?); there is: finish, steal, locality, "
            "static, round-robin");
  EXPECT_EQ(thrown_by<Error>([&] { policy("heft, please"); }, WEIR_STATUS_NOT_FOUND),
            "no policy 'heft, please'; there is: finish, steal, locality, static, round-robin");
}

TEST_F(Policies, RegistrationWithoutNameOrFunctionOrTwice_IsRefused) {
  weir_policy_options options = WEIR_POLICY_OPTIONS_INIT;
  const auto refusal = [&] {
    return thrown_by<Error>([&] { table_.add(options); }, WEIR_STATUS_INVALID_ARGUMENT);
  };
  EXPECT_EQ(refusal(), "weir_policy_options::name is NULL or empty");
  options.name = "";
  EXPECT_EQ(refusal(), "weir_policy_options::name is NULL or empty");
  options.name = "steal";
  EXPECT_EQ(refusal(), "policy 'steal' has no function");
  options.choose = [](const char*, const weir_candidate*, std::size_t, void*) -> std::size_t {
    return 0;
  };
  EXPECT_EQ(refusal(), "policy 'steal' is registered already: choose another name");
  EXPECT_EQ(table_.entries().size(), 5u);
}

}  // namespace
}  // namespace weir::rt
