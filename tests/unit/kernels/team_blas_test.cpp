// The division of the routines over a team, with a mock team.
#include "kernels/team_blas.hpp"

#include <algorithm>

#include "backend/team.hpp"
#include "kernel_fixture.hpp"

namespace weir::kernels {
namespace {

/// A team of five that runs everything on the calling thread, last part first.
class MockTeam final : public weir_team {
 public:
  std::size_t size() const noexcept override { return 5; }
  void for_each(std::size_t count, std::size_t, weir_team_body body, void* payload) override {
    parts_ = std::max(parts_, count);
    for (std::size_t i = count; i > 0; --i) body(i - 1, i, i % 5, payload);
  }
  void run(weir_team_function, void*) override { FAIL() << "the parts do not know their team"; }
  void barrier() override {}

  std::size_t most_parts() const { return parts_; }

 private:
  std::size_t parts_ = 0;
};

template <class T>
class TeamBlasTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!blas_info().available) GTEST_SKIP() << blas_info().problem;
  }

  static Matrix<T> view(Guarded<T>& a) { return {a.data(), a.rows(), a.columns(), a.stride()}; }

  /// Runs a routine alone and with the team, each on a copy of `start`.
  template <class Routine>
  void compare(const Guarded<T>& start, const Routine& routine) {
    const BlasLibrary& library = BlasLibrary::instance();
    MockTeam team;
    Guarded<T> one = start, many = start;
    routine(TeamBlas<T>(library, nullptr), view(one));
    routine(TeamBlas<T>(library, &team), view(many));
    EXPECT_GT(team.most_parts(), 1u);
    int different = 0;
    for (int j = 0; j < start.columns(); ++j) {
      for (int i = 0; i < start.rows(); ++i) {
        const double x = static_cast<double>(one(i, j)), y = static_cast<double>(many(i, j));
        const double limit = 4 * start.rows() * epsilon<T>() * (10 + std::abs(x));
        different += !(std::abs(x - y) <= limit) && !(std::isnan(x) && std::isnan(y));
      }
    }
    EXPECT_EQ(different, 0);
    EXPECT_TRUE(many.padding_is_intact());
  }
};

using Elements = testing::Types<float, double>;
TYPED_TEST_SUITE(TeamBlasTest, Elements);

TYPED_TEST(TeamBlasTest, GemmOnATeam_MatchesOneThread) {
  using T = TypeParam;
  Guarded<T> a(190, 301, 1), b(190, 411, 2), c(301, 411, 3);
  a.randomize(1), b.randomize(2), c.randomize(3);
  this->compare(c, [&](const TeamBlas<T>& blas, Matrix<T> target) {
    blas.gemm(Trans::yes, Trans::no, T(0.5), this->view(a), this->view(b), T(-1), target);
  });
}

TYPED_TEST(TeamBlasTest, SyrkOnATeam_MatchesOneThread) {
  using T = TypeParam;
  Guarded<T> a(333, 90, 1), c(333, 333, 3);
  a.randomize(1), c.randomize(3);
  for (const Uplo uplo : {Uplo::lower, Uplo::upper}) {
    this->compare(c, [&](const TeamBlas<T>& blas, Matrix<T> target) {
      blas.syrk(uplo, Trans::no, T(-1), this->view(a), T(1), target);
    });
  }
}

TYPED_TEST(TeamBlasTest, TrsmOnATeam_MatchesOneThread) {
  using T = TypeParam;
  Guarded<T> a(300, 300, 1), b(300, 300, 3);
  a.randomize(1), b.randomize(2);
  for (int i = 0; i < 300; ++i) a(i, i) = T(20);
  for (const Side side : {Side::left, Side::right}) {
    this->compare(b, [&](const TeamBlas<T>& blas, Matrix<T> target) {
      blas.trsm(side, Uplo::upper, Trans::yes, Diag::non_unit, T(2), this->view(a), target);
    });
  }
}

TYPED_TEST(TeamBlasTest, PotrfOnATeam_MatchesOneThreadAndFindsTheSameMinor) {
  using T = TypeParam;
  Guarded<T> a(700, 700, 3);
  for (const Uplo uplo : {Uplo::lower, Uplo::upper}) {
    a.fill([](int i, int j) { return i == j ? 3. : 1. / (1 + std::abs(i - j)); });
    this->compare(a, [&](const TeamBlas<T>& blas, Matrix<T> target) {
      EXPECT_EQ(blas.potrf(uplo, target), 0);
    });
    a(599, 599) = T(-1);
    this->compare(a, [&](const TeamBlas<T>& blas, Matrix<T> target) {
      EXPECT_EQ(blas.potrf(uplo, target), 600);
      std::fill_n(target.data, 700 * target.stride, Guarded<T>::kCanary);
    });
  }
}

TYPED_TEST(TeamBlasTest, GetrfOnATeam_MatchesOneThread) {
  using T = TypeParam;
  for (const auto& [rows, columns] : {std::pair{300, 300}, {190, 400}, {400, 190}}) {
    Guarded<T> a(rows, columns, 3);
    a.randomize(5);
    for (int i = 0; i < std::min(rows, columns); ++i) a(rows - 1 - i, i) += T(8);
    std::vector<std::vector<std::int32_t>> pivots;
    this->compare(a, [&](const TeamBlas<T>& blas, Matrix<T> target) {
      pivots.emplace_back(static_cast<std::size_t>(std::min(rows, columns)));
      EXPECT_EQ(blas.getrf(target, pivots.back().data()), 0);
    });
    EXPECT_EQ(pivots[0], pivots[1]);
  }
}

TYPED_TEST(TeamBlasTest, GetrfFindsTheFirstZeroPivot) {
  using T = TypeParam;
  Guarded<T> a(200, 200);
  a.fill([](int i, int j) { return i == j && i != 149 && i != 170 ? 2. : 0.; });
  this->compare(a, [&](const TeamBlas<T>& blas, Matrix<T> target) {
    std::vector<std::int32_t> pivots(200);
    EXPECT_EQ(blas.getrf(target, pivots.data()), 150);
  });
}

}  // namespace
}  // namespace weir::kernels
