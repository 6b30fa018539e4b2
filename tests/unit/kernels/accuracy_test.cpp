// Tiled Cholesky factorizations of ill-conditioned matrices, made of the kernels, against LAPACK.
#include <algorithm>
#include <functional>

#include "kernel_fixture.hpp"
#include "kernels/tile_blas.hpp"

namespace weir::kernels {
namespace {

constexpr int kOrder = 512;

template <class T>
Matrix<T> view(Guarded<T>& a) {
  return {a.data(), a.rows(), a.columns(), a.stride()};
}

/// Factors the lower triangle tile by tile. Returns 0 or the minor that failed.
template <class T>
int factor_tiles(Matrix<T> a, int tile) {
  const TileBlas<T> blas(BlasLibrary::instance());
  for (int k = 0; k < a.rows; k += tile) {
    const Matrix<T> diagonal = a.block(k, k, tile, tile);
    if (const int failed = blas.potrf(Uplo::lower, diagonal); failed > 0) return k + failed;
    for (int i = k + tile; i < a.rows; i += tile) {
      blas.trsm(Side::right, Uplo::lower, Trans::yes, Diag::non_unit, T{1}, diagonal,
                a.block(i, k, tile, tile));
    }
    for (int j = k + tile; j < a.rows; j += tile) {
      const Matrix<T> right = a.block(j, k, tile, tile);
      blas.syrk(Uplo::lower, Trans::no, T{-1}, right, T{1}, a.block(j, j, tile, tile));
      for (int i = j + tile; i < a.rows; i += tile) {
        blas.gemm(Trans::no, Trans::yes, T{-1}, a.block(i, k, tile, tile), right, T{1},
                  a.block(i, j, tile, tile));
      }
    }
  }
  return 0;
}

/// Returns ||A - L L^T|| / (n eps ||A||) in the Frobenius norm.
template <class T>
double residual(const Guarded<T>& a, const Guarded<T>& l) {
  Precise<T> error = 0, size = 0;
  Guarded<T> rows(kOrder, kOrder);  // of L, each in one piece
  rows.fill([&](int i, int j) { return l(j, i); });
  for (int j = 0; j < kOrder; ++j) {
    for (int i = j; i < kOrder; ++i) {
      Precise<T> rest = a(i, j);
      size += rest * rest;
      for (int k = 0; k <= j; ++k) rest -= static_cast<Precise<T>>(rows(k, i)) * rows(k, j);
      error += rest * rest;
    }
  }
  return std::sqrt(static_cast<double>(error / size)) / (kOrder * epsilon<T>());
}

/// Factors of its bidiagonal-like L make 32 x 32 triangles with condition numbers up to 1e6.
double steep(int i, int j) {
  double sum = 0;
  for (int k = 0; k <= std::min(i, j); ++k) {
    const auto entry = [&](int row) {
      return row == k ? 1. : row - k < 8 && row / 32 == k / 32 ? -0.9 : 0.;
    };
    sum += entry(i) * entry(j);
  }
  return sum;
}

struct Problem {
  const char* name;
  std::function<double(int i, int j, double epsilon)> element;
};

const Problem kProblems[] = {
    {"well-conditioned",
     [](int i, int j, double) { return i == j ? 2. : 1. / (2 + std::abs(i - j)); }},
    {"smallest index", [](int i, int j, double) { return std::min(i, j) + 1.; }},
    {"Hilbert, shifted",
     [](int i, int j, double e) { return 1. / (i + j + 1) + (i == j ? 2 * kOrder * e : 0); }},
    {"narrow Gaussian kernel",
     [](int i, int j, double e) {
       return std::exp(-(i - j) * (i - j) / 8.) + (i == j ? 2 * kOrder * e : 0);
     }},
    {"Gaussian kernel",
     [](int i, int j, double e) {
       return std::exp(-(i - j) * (i - j) / 200.) + (i == j ? 2 * kOrder * e : 0);
     }},
    {"wide Gaussian kernel",
     [](int i, int j, double e) {
       return std::exp(-(i - j) * (i - j) / 5000.) + (i == j ? 2 * kOrder * e : 0);
     }},
    {"graded",
     [](int i, int j, double) {
       return (i == j ? 1. : 1e-4 * std::cos(i * j)) * std::pow(10., -(i + j) / 60.);
     }},
    {"steep triangles", [](int i, int j, double) { return steep(i, j); }},
};

template <class T>
class Accuracy : public testing::Test {
 protected:
  void SetUp() override {
    if (!blas_info().available) GTEST_SKIP() << blas_info().problem;
  }
};

using Elements = testing::Types<float, double>;
TYPED_TEST_SUITE(Accuracy, Elements);

TYPED_TEST(Accuracy, TiledCholesky_IsAsAccurateAsLapack) {
  using T = TypeParam;
  const Blas<T>& library = BlasLibrary::instance().functions<T>();
  for (const Problem& problem : kProblems) {
    Guarded<T> a(kOrder, kOrder, 8);
    a.fill([&](int i, int j) { return problem.element(i, j, epsilon<T>()); });
    double reference = 3;
    if (library.potrf != nullptr) {
      Guarded<T> l = a;
      int info = 0;
      const int order = kOrder, stride = l.stride();
      library.potrf("L", &order, l.data(), &stride, &info, 1);
      ASSERT_EQ(info, 0) << problem.name;
      reference = residual(a, l);
    }
    for (const int tile : {128, 256, kOrder}) {
      Guarded<T> l = a;
      ASSERT_EQ(factor_tiles(view(l), tile), 0) << problem.name;
      const double ours = residual(a, l);
      EXPECT_LT(ours, 10) << problem.name << ' ' << tile;
      EXPECT_LE(ours, 3 * reference + 1e-3) << problem.name << ' ' << tile;
      if (tile == 256) std::printf("%s: LAPACK %.4f, tiles %.4f\n", problem.name, reference, ours);
    }
  }
}

/// A triangle whose inverse overflows or loses every digit must be solved by substitution.
TYPED_TEST(Accuracy, TrsmWithAnIllConditionedTriangle_HasASmallBackwardError) {
  using T = TypeParam;
  Guarded<T> a(64, 64), b(64, 64);
  a.fill([](int i, int j) { return i == j ? 1. : i > j && i - j < 6 ? -0.8 : 0.; });
  Guarded<T> x = b.fill([](int i, int j) { return (i * 7 + j * 3) % 5 - 2; });
  TileBlas<T>(BlasLibrary::instance())
      .trsm(Side::left, Uplo::lower, Trans::no, Diag::non_unit, T{1}, view(a), view(x));
  for (int j = 0; j < 64; ++j) {
    for (int i = 0; i < 64; ++i) {
      Precise<T> sum = 0, size = 0;
      for (int k = 0; k <= i; ++k) {
        sum += static_cast<Precise<T>>(a(i, k)) * x(k, j);
        size += std::abs(static_cast<Precise<T>>(a(i, k)) * x(k, j));
      }
      ASSERT_LE(static_cast<double>(std::abs(sum - b(i, j))),
                64 * epsilon<T>() * static_cast<double>(size));
    }
  }
}

}  // namespace
}  // namespace weir::kernels
