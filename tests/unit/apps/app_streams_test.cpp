#include "common/app_streams.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace weir::apps {
namespace {

TEST(AppStreams, EqualParts_AreDealtRoundRobinInProportionToCores) {
  const weir::Runtime runtime("sim:clock=virtual,cores=2,sim:clock=virtual,cores=1");
  const AppStreams app_streams(runtime, {.places = 1, .streams = 1});
  EXPECT_EQ(app_streams.deal(6), (std::vector<std::size_t>{0, 0, 1, 0, 0, 1}));
}

TEST(AppStreams, UnequalParts_AreDealtForEqualLoads) {
  const weir::Runtime runtime("sim:clock=virtual,cores=1,sim:clock=virtual,cores=1");
  const AppStreams app_streams(runtime, {.places = 1, .streams = 1});
  std::vector<double> work;
  for (int i = 0; i < 8; ++i) work.push_back(2 * i + 1);  // as the rows of a triangle
  double loads[2] = {};
  const std::vector<std::size_t> owners = app_streams.deal(work);
  ASSERT_EQ(owners.size(), work.size());
  for (std::size_t i = 0; i < owners.size(); ++i) loads[owners[i]] += work[i];
  EXPECT_EQ(loads[0], 32);
  EXPECT_EQ(loads[1], 32);
}

TEST(AppStreams, PlaceThatMustCopy_GetsFewerParts) {
  const weir::Runtime runtime("host:cores=1,sim:cores=1");
  const AppStreams app_streams(runtime, {.places = 1, .streams = 1});
  const std::vector<double> work(12, 1);
  EXPECT_EQ(app_streams.deal(work), (std::vector<std::size_t>{0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1}));
  EXPECT_EQ(app_streams.deal(work, std::vector<double>(12, 0.5)),
            (std::vector<std::size_t>{0, 1, 0, 0, 1, 0, 1, 0, 0, 1, 0, 1}));
}

}  // namespace
}  // namespace weir::apps
