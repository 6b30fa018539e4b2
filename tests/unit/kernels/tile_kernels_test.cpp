// The kernels over BLAS and LAPACK against plain loops.
#include <algorithm>
#include <cstdint>

#include "kernel_fixture.hpp"

namespace weir::kernels {
namespace {

template <class T>
class TileKernels : public KernelTest {
 protected:
  static std::string blas(const char* routine) { return blas_name<T>("blas", routine); }
  static std::string lapack(const char* routine) { return blas_name<T>("lapack", routine); }
};

using Elements = testing::Types<float, double>;
TYPED_TEST_SUITE(TileKernels, Elements);

constexpr int kSizes[] = {1, 7, 33, 100, 257};

template <class T>
T element(const Guarded<T>& a, char trans, int i, int j) {
  return trans == 'N' ? a(i, j) : a(j, i);
}

/// Expects c = alpha op(A) op(B) + beta before, within the error of an inner product, where `in`
/// says and the canary or the old value everywhere else.
template <class T, class In>
void expect_product(const Guarded<T>& c, const Guarded<T>& before, char trans_a, char trans_b,
                    double alpha, const Guarded<T>& a, const Guarded<T>& b, double beta,
                    const In& in) {
  const int depth = trans_a == 'N' ? a.columns() : a.rows();
  int wrong = 0;
  for (int j = 0; j < c.columns(); ++j) {
    for (int i = 0; i < c.rows(); ++i) {
      if (!in(i, j)) {
        wrong += c(i, j) != before(i, j);
        continue;
      }
      Precise<T> sum = 0, size = 0;
      for (int k = 0; k < depth; ++k) {
        const Precise<T> term =
            static_cast<Precise<T>>(element(a, trans_a, i, k)) * element(b, trans_b, k, j);
        sum += term;
        size += std::abs(term);
      }
      const Precise<T> old = beta == 0 ? 0 : static_cast<Precise<T>>(beta) * before(i, j);
      const Precise<T> expected = static_cast<Precise<T>>(alpha) * sum + old;
      const auto limit = static_cast<Precise<T>>((depth + 4) * epsilon<T>()) *
                         (std::abs(static_cast<Precise<T>>(alpha)) * size + std::abs(old));
      wrong += !(std::abs(c(i, j) - expected) <= limit);
    }
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_TRUE(c.padding_is_intact());
}

const auto kEverywhere = [](int, int) { return true; };

auto triangle(char uplo) {
  return [=](int i, int j) { return uplo == 'L' ? i >= j : i <= j; };
}

TYPED_TEST(TileKernels, GemmOfAllSizesAndOptions_MatchesPlainLoops) {
  using T = TypeParam;
  for (const int size : kSizes) {
    const int m = size, n = size / 2 + 1, k = size / 3 + 2;
    for (const char trans_a : {'N', 'T'}) {
      for (const char trans_b : {'N', 'T'}) {
        for (const double alpha : {0., 1., -1., 0.5}) {
          for (const double beta : {0., 1., -1.}) {
            if (size > 33 && alpha != -1) continue;
            Guarded<T> a(trans_a == 'N' ? m : k, trans_a == 'N' ? k : m, 3);
            Guarded<T> b(trans_b == 'N' ? k : n, trans_b == 'N' ? n : k, 1);
            Guarded<T> c(m, n, 5);
            a.randomize(1), b.randomize(2), c.randomize(3);
            if (beta == 0) c.fill(std::numeric_limits<T>::quiet_NaN());
            const Guarded<T> before = c;
            this->succeed(this->blas("gemm"),
                          {letter(trans_a), letter(trans_b), real(alpha), real(beta)},
                          {reads(a), reads(b), writes(c)});
            SCOPED_TRACE(testing::Message() << size << trans_a << trans_b << alpha << ' ' << beta);
            expect_product(c, before, trans_a, trans_b, alpha, a, b, beta, kEverywhere);
          }
        }
      }
    }
  }
}

TYPED_TEST(TileKernels, SyrkOfAllSizesAndOptions_MatchesPlainLoops) {
  using T = TypeParam;
  for (const int n : kSizes) {
    for (const int k : {n, 70}) {
      for (const char uplo : {'L', 'U'}) {
        for (const char trans : {'N', 'T'}) {
          for (const double alpha : {0., 1., -1.}) {
            for (const double beta : {0., 1., -1.}) {
              if (n > 100 && alpha * beta != -1) continue;
              Guarded<T> a(trans == 'N' ? n : k, trans == 'N' ? k : n, 2), c(n, n, 3);
              a.randomize(1), c.randomize(2);
              const Guarded<T> before = c;
              this->succeed(this->blas("syrk"),
                            {letter(uplo), letter(trans), real(alpha), real(beta)},
                            {reads(a), writes(c)});
              SCOPED_TRACE(testing::Message() << n << ' ' << k << uplo << trans << alpha << beta);
              expect_product(c, before, trans, trans == 'N' ? 'T' : 'N', alpha, a, a, beta,
                             triangle(uplo));
            }
          }
        }
      }
    }
  }
}

TYPED_TEST(TileKernels, SyrkWithBetaZero_OverwritesItsTriangleOnly) {
  using T = TypeParam;
  Guarded<T> a(100, 100), c(100, 100);
  a.randomize(1);
  c.fill([](int i, int j) { return i >= j ? std::numeric_limits<double>::quiet_NaN() : 3.; });
  const Guarded<T> before = c;
  this->succeed(this->blas("syrk"), {letter('L'), letter('N'), real(1), real(0)},
                {reads(a), writes(c)});
  expect_product(c, before, 'N', 'T', 1, a, a, 0, triangle('L'));
}

/// A triangle with poison in the other one; on the diagonal too if it is not to be read.
template <class T>
Guarded<T> make_triangle(int order, char uplo, char diag, unsigned seed, int padding) {
  Guarded<T> a(order, order, padding);
  a.randomize(seed);
  const auto in = triangle(uplo);
  for (int j = 0; j < order; ++j) {
    for (int i = 0; i < order; ++i) {
      a(i, j) *= T(0.5) / std::sqrt(static_cast<T>(order));
      if (i == j) a(i, j) = diag == 'U' ? T(1e30) : T(1.5) + a(i, j);
      if (!in(i, j)) a(i, j) = std::numeric_limits<T>::quiet_NaN();
    }
  }
  return a;
}

/// Expects op(A) X = alpha B or X op(A) = alpha B.
template <class T>
void expect_solution(const Guarded<T>& x, const Guarded<T>& b, char side, char uplo, char trans,
                     char diag, double alpha, const Guarded<T>& a) {
  const bool left = side == 'L';
  const int order = a.rows(), others = left ? x.columns() : x.rows();
  // Rows of op(A) and columns of X, or the other way round: each in one piece.
  Guarded<T> lines(order, order), solved(order, others);
  lines.fill([&](int k, int line) {
    if (k == line && diag == 'U') return T(1);
    return left ? element(a, trans, line, k) : element(a, trans, k, line);
  });
  solved.fill([&](int k, int other) { return left ? x(k, other) : x(other, k); });
  const bool ends = ((uplo == 'L') == (trans == 'N')) == left;  // or begins at the diagonal
  int wrong = 0;
  for (int other = 0; other < others; ++other) {
    const T* const solution = solved.data() + std::ptrdiff_t{other} * order;
    for (int line = 0; line < order; ++line) {
      const T* const factors = lines.data() + std::ptrdiff_t{line} * order;
      Precise<T> sum = 0, size = 0;
      for (int k = ends ? 0 : line; k < (ends ? line + 1 : order); ++k) {
        const Precise<T> term = static_cast<Precise<T>>(factors[k]) * solution[k];
        sum += term;
        size += std::abs(term);
      }
      const T right = left ? b(line, other) : b(other, line);
      const Precise<T> expected = static_cast<Precise<T>>(alpha) * right;
      const auto limit =
          static_cast<Precise<T>>(4 * (order + 4) * epsilon<T>()) * (size + std::abs(expected));
      wrong += !(std::abs(sum - expected) <= limit);
    }
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_TRUE(x.padding_is_intact());
}

TYPED_TEST(TileKernels, TrsmOfAllSizesAndOptions_SolvesTheSystem) {
  using T = TypeParam;
  for (const int order : {1, 7, 33, 100, 257, 300}) {
    for (const int others : {1, 40, 131}) {
      for (const char side : {'L', 'R'}) {
        for (const char uplo : {'L', 'U'}) {
          for (const char trans : {'N', 'T', 'C'}) {
            for (const char diag : {'N', 'U'}) {
              for (const double alpha : {1., -1., 0.}) {
                if (order > 100 && (alpha == 1 || trans == 'C' || others == 40)) continue;
                Guarded<T> a = make_triangle<T>(order, uplo, diag, 1, 2);
                Guarded<T> x(side == 'L' ? order : others, side == 'L' ? others : order, 3);
                const Guarded<T> b = x.randomize(2);
                this->succeed(
                    this->blas("trsm"),
                    {letter(side), letter(uplo), letter(trans), letter(diag), real(alpha)},
                    {reads(a), writes(x)});
                SCOPED_TRACE(testing::Message()
                             << order << ' ' << others << side << uplo << trans << diag << alpha);
                expect_solution(x, b, side, uplo, trans, diag, alpha, a);
              }
            }
          }
        }
      }
    }
  }
}

TYPED_TEST(TileKernels, WithAlphaZeroTheInputsAreNotRead) {
  using T = TypeParam;
  constexpr int kOrder = 70;
  const T none = std::numeric_limits<T>::quiet_NaN();
  Guarded<T> poison(kOrder, kOrder, 1), start(kOrder, kOrder, 3);
  poison.fill(none), start.randomize(1);
  Guarded<T> more = poison;
  const auto expect = [&](const Guarded<T>& c, double factor, const auto& in) {
    int wrong = 0;
    for (int j = 0; j < kOrder; ++j) {
      for (int i = 0; i < kOrder; ++i) {
        wrong += c(i, j) != (in(i, j) ? static_cast<T>(factor) * start(i, j) : start(i, j));
      }
    }
    EXPECT_EQ(wrong, 0);
    EXPECT_TRUE(c.padding_is_intact());
  };
  for (const double beta : {0., 2.}) {
    Guarded<T> c = start;
    this->succeed(this->blas("gemm"), {letter('N'), letter('T'), real(0), real(beta)},
                  {reads(poison), reads(more), writes(c)});
    expect(c, beta, kEverywhere);
    c = start;
    this->succeed(this->blas("syrk"), {letter('L'), letter('N'), real(0), real(beta)},
                  {reads(poison), writes(c)});
    expect(c, beta, triangle('L'));
  }
  for (const char side : {'L', 'R'}) {
    Guarded<T> x = start;
    x(0, 0) = none;
    this->succeed(this->blas("trsm"),
                  {letter(side), letter('L'), letter('N'), letter('N'), real(0)},
                  {reads(poison), writes(x)});
    expect(x, 0, kEverywhere);
  }
}

/// A symmetric positive definite matrix, with poison outside its triangle.
template <class T>
Guarded<T> make_definite(int order, char uplo, int padding) {
  Guarded<T> a(order, order, padding);
  const auto in = triangle(uplo);
  a.fill([&](int i, int j) {
    if (!in(i, j)) return std::numeric_limits<double>::quiet_NaN();
    return i == j ? 2.0 : ((i + j) % 3 - 1) / (1.0 + (i - j) * (i - j));
  });
  return a;
}

/// Returns ||A - L L^T|| / (n eps ||A||) in the Frobenius norm, of the triangles.
template <class T>
double cholesky_residual(const Guarded<T>& a, const Guarded<T>& factor, char uplo) {
  const int order = a.rows();
  const auto lower = [&](const Guarded<T>& m, int i, int j) {
    return uplo == 'L' ? m(i, j) : m(j, i);
  };
  Precise<T> error = 0, size = 0;
  for (int j = 0; j < order; ++j) {
    for (int i = j; i < order; ++i) {
      Precise<T> rest = lower(a, i, j);
      size += rest * rest;
      for (int k = 0; k <= j; ++k) {
        rest -= static_cast<Precise<T>>(lower(factor, i, k)) * lower(factor, j, k);
      }
      error += rest * rest;
    }
  }
  return std::sqrt(static_cast<double>(error / size)) / (order * epsilon<T>());
}

TYPED_TEST(TileKernels, PotrfOfAllSizes_HasASmallResidual) {
  using T = TypeParam;
  for (const int order : {1, 7, 32, 33, 64, 100, 257, 300}) {
    for (const char uplo : {'L', 'U'}) {
      Guarded<T> factor = make_definite<T>(order, uplo, 3);
      const Guarded<T> a = factor;
      this->succeed(this->lapack("potrf"), {letter(uplo), weir_scalar_i64(0)}, {writes(factor)});
      SCOPED_TRACE(testing::Message() << order << uplo);
      EXPECT_LT(cholesky_residual(a, factor, uplo), 10);
      EXPECT_TRUE(factor.padding_is_intact());
      const auto in = triangle(uplo);
      for (int j = 0; j < order; ++j) {
        for (int i = 0; i < order; ++i) ASSERT_EQ(in(i, j), !std::isnan(factor(i, j)));
      }
    }
  }
}

TYPED_TEST(TileKernels, PotrfNamesTheMinorOfTheWholeMatrix) {
  using T = TypeParam;
  for (const int bad : {1, 5, 40, 99, 280}) {
    for (const char uplo : {'L', 'U'}) {
      Guarded<T> a = make_definite<T>(300, uplo, 0);
      a(bad - 1, bad - 1) = T(-1);
      const Ending ending =
          this->call(this->lapack("potrf"), {letter(uplo), weir_scalar_i64(1024)}, {writes(a)});
      EXPECT_EQ(ending.status, WEIR_STATUS_KERNEL_ERROR);
      const std::string expected =
          "the leading minor of order " + std::to_string(1024 + bad) + " is not positive definite";
      EXPECT_NE(ending.message.find(expected), std::string::npos) << ending.message;
    }
  }
}

/// Expects P A = L U with |L| <= 1.
template <class T>
void expect_lu(const Guarded<T>& a, const Guarded<T>& lu, const Guarded<std::int32_t>& pivots) {
  const int order = std::min(a.rows(), a.columns());
  std::vector<int> row(static_cast<std::size_t>(a.rows()));
  for (int i = 0; i < a.rows(); ++i) row[static_cast<std::size_t>(i)] = i;
  for (int i = 0; i < order; ++i) {
    ASSERT_GE(pivots(i, 0), i + 1);
    ASSERT_LE(pivots(i, 0), a.rows());
    std::swap(row[static_cast<std::size_t>(i)], row[static_cast<std::size_t>(pivots(i, 0) - 1)]);
  }
  int wrong = 0;
  for (int j = 0; j < a.columns(); ++j) {
    for (int i = 0; i < a.rows(); ++i) {
      Precise<T> sum = 0, size = 0;
      for (int k = 0; k <= std::min({i, j, order - 1}); ++k) {
        const Precise<T> term = (k == i ? Precise<T>(1) : Precise<T>(lu(i, k))) * lu(k, j);
        sum += term;
        size += std::abs(term);
      }
      const auto limit = static_cast<Precise<T>>(4 * (order + 4) * epsilon<T>()) * size;
      wrong += !(std::abs(sum - a(row[static_cast<std::size_t>(i)], j)) <= limit);
      wrong += i > j && !(std::abs(lu(i, j)) <= 1);
    }
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_TRUE(lu.padding_is_intact());
}

TYPED_TEST(TileKernels, GetrfOfAllSizes_HasASmallResidual) {
  using T = TypeParam;
  for (const int rows : {1, 7, 33, 100, 257}) {
    for (const int columns : {1, 7, 33, 100, 257}) {
      Guarded<T> lu(rows, columns, 3);
      const Guarded<T> a = lu.randomize(static_cast<unsigned>(rows + columns));
      Guarded<std::int32_t> pivots(std::min(rows, columns), 1);
      this->succeed(this->lapack("getrf"), {}, {writes(lu), writes(pivots)});
      SCOPED_TRACE(testing::Message() << rows << " x " << columns);
      expect_lu(a, lu, pivots);
    }
  }
}

TYPED_TEST(TileKernels, GetrfNamesTheZeroPivot) {
  using T = TypeParam;
  for (const int zero : {1, 20, 50, 100}) {
    Guarded<T> a(100, 100);
    a.fill([&](int i, int j) { return i == j && i != zero - 1 ? 2. : 0.; });
    Guarded<std::int32_t> pivots(100, 1);
    const Ending ending = this->call(this->lapack("getrf"), {}, {writes(a), writes(pivots)});
    EXPECT_EQ(ending.status, WEIR_STATUS_KERNEL_ERROR);
    const std::string expected = "pivot " + std::to_string(zero) + " of its factor U is zero";
    EXPECT_NE(ending.message.find(expected), std::string::npos) << ending.message;
  }
}

TYPED_TEST(TileKernels, TeamVariants_MatchTheSerialKernels) {
  using T = TypeParam;
  constexpr int kOrder = 300;
  Guarded<T> a(kOrder, kOrder, 4), b(kOrder, kOrder, 2), start(kOrder, kOrder, 1);
  Guarded<T> lower = make_triangle<T>(kOrder, 'L', 'N', 1, 0);
  Guarded<std::int32_t> pivots(kOrder, 1);
  a.randomize(1), b.randomize(2), start.randomize(3);
  const auto compare = [&](const std::string& name, const std::vector<weir_scalar>& scalars,
                           const std::vector<Argument>& inputs,
                           const std::vector<Argument>& more = {}) {
    Guarded<T> one = start, many = start;
    const auto arguments = [&](Guarded<T>& target) {
      std::vector<Argument> all = inputs;
      all.push_back(writes(target));
      all.insert(all.end(), more.begin(), more.end());
      return all;
    };
    this->succeed(name, scalars, arguments(one));
    this->succeed(name + ".team", scalars, arguments(many));
    int different = 0;
    for (int j = 0; j < kOrder; ++j) {
      for (int i = 0; i < kOrder; ++i) {
        const double size = 10 + std::abs(static_cast<double>(one(i, j)));
        const double error =
            std::abs(static_cast<double>(one(i, j)) - static_cast<double>(many(i, j)));
        different += !(error <= kOrder * epsilon<T>() * size);
      }
    }
    EXPECT_EQ(different, 0) << name;
    EXPECT_TRUE(many.padding_is_intact());
  };
  compare(this->blas("gemm"), {letter('N'), letter('T'), real(-1), real(1)}, {reads(a), reads(b)});
  compare(this->blas("syrk"), {letter('L'), letter('N'), real(-1), real(1)}, {reads(a)});
  compare(this->blas("syrk"), {letter('U'), letter('T'), real(-1), real(1)}, {reads(a)});
  for (const char side : {'L', 'R'}) {
    compare(this->blas("trsm"), {letter(side), letter('L'), letter('T'), letter('N'), real(-1)},
            {reads(lower)});
  }
  for (int i = 0; i < kOrder; ++i) start(kOrder - 1 - i, i) += T(20);
  // Only the host has getrf.
  if (!this->has_own_memory_) compare(this->lapack("getrf"), {}, {}, {writes(pivots)});
  start = make_definite<T>(kOrder, 'L', 1);
  for (int j = 0; j < kOrder; ++j) {
    for (int i = 0; i < j; ++i) start(i, j) = 0;
  }
  compare(this->lapack("potrf"), {letter('L'), weir_scalar_i64(0)}, {});
}

}  // namespace
}  // namespace weir::kernels
