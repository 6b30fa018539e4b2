// The tuner's words, on runs whose recordings are made by hand.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tuner/reasons.hpp"

namespace weir::cli::tuner {
namespace {

constexpr Space kCores{
    .cores = 8, .most_places = 8, .threads = 8, .most_tiles = 32, .noisy = false};

/// A run whose recording is as long as itself.
Evaluation run(const Point& point, std::size_t tiles, const Account& account) {
  return {.point = point, .tiles = tiles, .samples = {account.seconds()}, .account = account};
}

std::string reasons_for(const std::vector<Evaluation>& runs, const Space& space = kCores) {
  const Search search(space, runs, {});
  std::string text;
  for (const std::string& reason : reasons(search, space)) text += reason + "\n";
  return text;
}

/// The best division, into 8 tiles: kernels fill nine tenths of the time.
const Evaluation kBest = run({1, 2, 8}, 8, {.work_s = 0.9, .idle_s = 0.1, .kernels = 64});

/// The reasons when the default, of `tiles` tiles, is slower than the best one as an account says.
std::string against(const Account& account, std::size_t tiles = 2) {
  return reasons_for({run(kDefault, tiles, account), kBest});
}

TEST(TunerReasons, NameIdleCores_WhenCoresOfTheSlowerRunHadNoKernel) {
  const std::string said = against({.work_s = 0.9, .idle_s = 2.7, .kernels = 4});
  EXPECT_NE(said.find("2 take 260 % longer, as on average 6 of 8 cores are idle while kernels run, "
                      "0.8 with the chosen division"),
            std::string::npos)
      << said;
}

TEST(TunerReasons, NameTheWorkOfKernels_WhenStartingThemCostsTime) {
  const std::string said = against({.work_s = 1.35, .idle_s = 0.1, .kernels = 4096}, 32);
  EXPECT_NE(said.find("32 take 45 % longer, as the kernels take 50 % longer in all: 4096 of them, "
                      "64 with the chosen division"),
            std::string::npos)
      << said;
}

TEST(TunerReasons, ExposedCopies_AreNamedAsTheReason) {
  const std::string said = against({.work_s = 0.9, .idle_s = 0.1, .exposed_s = 1, .kernels = 4});
  EXPECT_NE(said.find("2 take 100 % longer, as copies that no kernel hides take 50 % of the time, "
                      "0 % with the chosen division"),
            std::string::npos)
      << said;
}

TEST(TunerReasons, TimeWithoutRunningActions_IsNamedAsTheReason) {
  const std::string said =
      against({.work_s = 0.9, .idle_s = 0.1, .nothing_s = 1, .kernels = 4096}, 32);
  EXPECT_NE(said.find("32 take 100 % longer, as nothing runs for 50 % of the time, "
                      "0 % with the chosen division"),
            std::string::npos)
      << said;
}

TEST(TunerReasons, NameNoCause_WhenNoPartExplainsTheDifference) {
  const std::string said =
      against({.work_s = 1.2, .idle_s = 0.35, .exposed_s = 0.25, .nothing_s = 0.2, .kernels = 4});
  EXPECT_NE(said.find("2 take 100 % longer\n"), std::string::npos) << said;
}

TEST(TunerReasons, NameNoCause_WhenTheRecordingContradictsTheTimes) {
  Evaluation slower = run(kDefault, 2, {.work_s = 0.5, .kernels = 4});
  slower.samples = {2};
  const std::string said = reasons_for({slower, kBest});
  EXPECT_NE(said.find("2 take 100 % longer\n"), std::string::npos) << said;
}

TEST(TunerReasons, NameNoCause_WithoutRecordings) {
  Evaluation usual = run(kDefault, 2, {}), best = kBest;
  usual.samples = {2};
  best.account = {};
  const std::string said = reasons_for({usual, best});
  EXPECT_NE(said.find("8 tiles; 2 take 100 % longer\n"), std::string::npos) << said;
  EXPECT_EQ(said.find("pace"), std::string::npos) << said;
}

TEST(TunerReasons, OnePlaceAndOneTile_AreWrittenInTheSingular) {
  const Evaluation one = run({1, 1, 1}, 1, {.work_s = 0.5, .kernels = 1});
  const std::string said = reasons_for({run(kDefault, 4, {.work_s = 1, .kernels = 16}), one});
  EXPECT_NE(said.find("1 place of each domain\n"), std::string::npos) << said;
  EXPECT_NE(said.find("1 tile; 4 take 100 % longer"), std::string::npos) << said;
}

TEST(TunerReasons, EachKindOfBottleneck_IsNamed) {
  struct Case {
    Account account;
    double link_s, critical_s;
    const char* words;
  };
  for (const Case& each : {Case{{.work_s = 0.9, .idle_s = 0.1}, 0, 0, "kernels set the pace"},
                           Case{{.work_s = 0.2, .idle_s = 0.8}, 0.95, 0, "the link sets the pace"},
                           Case{{.work_s = 0.2, .exposed_s = 0.8}, 0.4, 0, "copies set the pace"},
                           Case{{.work_s = 0.2, .idle_s = 0.8}, 0, 0.9, "longest chain"},
                           Case{{.work_s = 0.2, .idle_s = 0.8}, 0, 0.1, "idle cores set the pace"},
                           Case{{.work_s = 0.2, .nothing_s = 0.8}, 0, 0, "starting actions"}}) {
    Evaluation only = run(kDefault, 4, each.account);
    only.link_s = each.link_s;
    only.critical_s = each.critical_s;
    EXPECT_NE(reasons_for({only}).find(each.words), std::string::npos) << each.words;
  }
}

}  // namespace
}  // namespace weir::cli::tuner
