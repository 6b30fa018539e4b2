#include "common/dense.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "common/workload.hpp"

namespace weir::apps {
namespace {

TEST(Norm, SquaresOverflowOrUnderflow_NormIsExact) {
  for (const double size : {1e-300, 1e-160, 1.0, 1e160, 1e300}) {
    Matrix<double> matrix(1, 2);
    matrix(0, 0) = 3 * size;
    matrix(0, 1) = -4 * size;
    EXPECT_DOUBLE_EQ(static_cast<double>(norm(matrix)), 5 * size);
    EXPECT_DOUBLE_EQ(relative(norm(matrix), norm(matrix) * norm(matrix)), 1 / (5 * size));
  }
}

TEST(Norm, NonzeroOverZeroOrNan_RelativeErrorIsInfiniteOrNan) {
  EXPECT_EQ(relative(0, 0), 0);
  EXPECT_EQ(relative(1, 0), std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(relative(std::nanl(""), 1)));
}

TEST(Worse, ReturnsTheLargerErrorOrNanIfEitherIsNan) {
  const double nan = std::nan("");
  EXPECT_EQ(worse(1, 2), 2);
  EXPECT_EQ(worse(2, 1), 2);
  EXPECT_TRUE(std::isnan(worse(nan, 1)));
  EXPECT_TRUE(std::isnan(worse(1, nan)));
  EXPECT_FALSE((Verification{"", worse(worse(0, nan), 1e-16), 1}.passed()));
}

}  // namespace
}  // namespace weir::apps
