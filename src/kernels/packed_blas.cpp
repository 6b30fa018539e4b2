#include "kernels/packed_blas.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>

#include "kernels/unblocked.hpp"

namespace weir::kernels {

namespace {

// Chosen by measurement with OpenBLAS 0.3.21 (SkylakeX): small products of these shapes run at
// about 75 of 105 GFLOP/s in double and 150 of 210 in single precision.
constexpr int kBlock = 32;    ///< order of the triangles on the diagonal
constexpr int kDepth = 96;    ///< longest inner product: longer ones fall out of the first cache
constexpr int kRows = 128;    ///< most rows of a product from the right
constexpr int kColumns = 96;  ///< most columns of a product from the left
constexpr int kLeaf = 8;      ///< triangles up to this order are inverted in plain loops

/// Above this condition number a triangle is solved by substitution. Inverting loses about as many
/// digits as it has; the factors of most matrices stay far below.
constexpr double kWorstCondition = 1e3;

constexpr int round_up(int value, int unit) { return (value + unit - 1) / unit * unit; }

/// Stride that keeps columns of one line apart in the cache, also when there are 2^n rows.
template <class T>
constexpr int packed_stride(int rows) {
  constexpr int kLine = 64 / sizeof(T);
  return round_up(rows, kLine) + kLine;
}

/// Packed operands of one thread.
template <class T>
struct Workspace {
  alignas(64) std::array<T, packed_stride<T>(kPackedOrder) * kPackedOrder> operand;
  alignas(64) std::array<T, packed_stride<T>(kRows) * kPackedOrder> solved;
  alignas(64) std::array<T, packed_stride<T>(kPackedOrder) * kBlock> strip;
  alignas(64) std::array<T, kPackedOrder * kBlock> inverses;

  static Workspace& of_this_thread() {
    thread_local const std::unique_ptr<Workspace> workspace(new Workspace);
    return *workspace;
  }
};
static_assert(packed_stride<float>(kPackedOrder) * kColumns <=
              packed_stride<float>(kRows) * kPackedOrder);

template <class T, std::size_t kSize>
Matrix<T> packed(std::array<T, kSize>& memory, int rows, int columns) {
  return {memory.data(), rows, columns, packed_stride<T>(rows)};
}

/// Calls function(first, count) for nearly equal parts of at most `most`, multiples of `unit`.
template <class Function>
void for_parts(int total, int most, int unit, const Function& function) {
  const int parts = (total + most - 1) / most;
  const int size = round_up((total + parts - 1) / parts, unit);
  for (int first = 0; first < total; first += size) function(first, std::min(size, total - first));
}

template <class T>
void copy(Input<T> from, Matrix<T> to) {
  for (int j = 0; j < to.columns; ++j) {
    std::memcpy(to.column(j), from.column(j), static_cast<std::size_t>(to.rows) * sizeof(T));
  }
}

template <class T>
void copy_scaled(Scalar<T> alpha, Input<T> from, Matrix<T> to) {
  if (alpha == T{1}) return copy(from, to);
  for (int j = 0; j < to.columns; ++j) {
    const T* const source = from.column(j);
    T* const target = to.column(j);
    if (alpha == T{0}) {
      std::fill_n(target, to.rows, T{0});
    } else {
      std::transform(source, source + to.rows, target, [=](T x) { return alpha * x; });
    }
  }
}

/// to(i, j) = from(j, i), by columns of `from` that share their lines in `to`.
template <class T>
void copy_transposed(Input<T> from, Matrix<T> to) {
  for_parts(to.rows, 8, 8, [&](int first, int count) {
    for (int j = 0; j < to.columns; ++j) {
      for (int i = first; i < first + count; ++i) to(i, j) = from(j, i);
    }
  });
}

template <class T>
void multiply(const Blas<T>& blas, Trans trans_a, Trans trans_b, Scalar<T> alpha, Input<T> a,
              Input<T> b, Scalar<T> beta, Matrix<T> c) {
  blas.gemm(Order::column_major, trans_a, trans_b, c.rows, c.columns,
            trans_a == Trans::no ? a.columns : a.rows, alpha, a.data, a.stride, b.data, b.stride,
            beta, c.data, c.stride);
}

/// Adds alpha A B^T to C in parts that fit the first cache.
template <class T>
void add_product(const Blas<T>& blas, Scalar<T> alpha, Input<T> a, Input<T> b, Matrix<T> c) {
  for_parts(c.rows, kRows, 8, [&](int i, int rows) {
    for_parts(a.columns, kDepth, 8, [&](int k, int depth) {
      multiply(blas, Trans::no, Trans::yes, alpha, a.block(i, k, rows, depth),
               b.block(0, k, b.rows, depth), T{1}, c.block(i, 0, rows, c.columns));
    });
  });
}

/// Inverts a lower triangle in plain loops; with exchanged strides an upper one.
template <class T>
void invert_leaf(int order, const T* a, T* x, std::ptrdiff_t down_a, std::ptrdiff_t right_a,
                 std::ptrdiff_t down_x, std::ptrdiff_t right_x) {
  std::array<T, kLeaf> reciprocal;
  for (int i = 0; i < order; ++i) {
    reciprocal[static_cast<std::size_t>(i)] = T{1} / a[i * (down_a + right_a)];
  }
  for (int j = 0; j < order; ++j) {
    T* const column = x + j * right_x;
    column[j * down_x] = reciprocal[static_cast<std::size_t>(j)];
    for (int i = j + 1; i < order; ++i) {
      T sum{0};
      for (int k = j; k < i; ++k) sum -= a[i * down_a + k * right_a] * column[k * down_x];
      column[i * down_x] = sum * reciprocal[static_cast<std::size_t>(i)];
    }
  }
}

/// Writes the inverse of a triangle to the same triangle of x, by halves.
template <class T>
void invert(const Blas<T>& blas, Uplo uplo, Input<T> a, Matrix<T> x) {
  const int order = a.rows;
  const bool lower = uplo == Uplo::lower;
  if (order <= kLeaf) {
    return lower ? invert_leaf<T>(order, a.data, x.data, 1, a.stride, 1, x.stride)
                 : invert_leaf<T>(order, a.data, x.data, a.stride, 1, x.stride, 1);
  }
  const int half = order / 2, rest = order - half;
  invert(blas, uplo, a.block(0, 0, half, half), x.block(0, 0, half, half));
  invert(blas, uplo, a.block(half, half, rest, rest), x.block(half, half, rest, rest));
  const int row = lower ? half : 0, column = lower ? 0 : half;
  const int rows = lower ? rest : half, columns = order - rows;
  std::array<T, kBlock * kBlock> memory;
  const Matrix<T> product{memory.data(), rows, columns, kBlock};
  multiply(blas, Trans::no, Trans::no, T{1}, a.block(row, column, rows, columns),
           x.block(column, column, columns, columns), T{0}, product);
  multiply(blas, Trans::no, Trans::no, T{-1}, x.block(row, row, rows, rows), product, T{0},
           x.block(row, column, rows, columns));
}

/// Returns the largest row sum of a triangle.
template <class T>
T row_sum_norm(Uplo uplo, Input<T> a) {
  std::array<T, kBlock> sums{};
  for (int j = 0; j < a.columns; ++j) {
    const T* const column = a.column(j);
    const int end = uplo == Uplo::lower ? a.rows : j + 1;
    for (int i = uplo == Uplo::lower ? j : 0; i < end; ++i) {
      sums[static_cast<std::size_t>(i)] += std::abs(column[i]);
    }
  }
  return *std::max_element(sums.begin(), sums.end());
}

/// A triangle on the diagonal, ready to be solved with.
template <class T>
class DiagonalBlock {
 public:
  DiagonalBlock() = default;
  DiagonalBlock(const Blas<T>& blas, Uplo uplo, Input<T> a, T* memory)
      : uplo_(uplo), triangle_(a), inverse_{memory, a.rows, a.rows, kBlock} {
    for (int j = 0; j < a.columns; ++j) std::fill_n(memory + j * kBlock, a.rows, T{0});
    invert(blas, uplo, a, inverse_);
    inverted_ = static_cast<double>(row_sum_norm<T>(uplo, a)) *
                    static_cast<double>(row_sum_norm<T>(uplo, inverse_)) <
                kWorstCondition;
  }

  /// Solves L X = B, or X L^T = B, for X.
  void solve(const Blas<T>& blas, Side side, Input<T> b, Matrix<T> x) const {
    if (!inverted_) {
      copy(b, x);
      blas.trsm(Order::column_major, side, uplo_, side == Side::left ? Trans::no : Trans::yes,
                Diag::non_unit, x.rows, x.columns, T{1}, triangle_.data, triangle_.stride, x.data,
                x.stride);
    } else if (side == Side::left) {
      multiply(blas, Trans::no, Trans::no, T{1}, inverse_, b, T{0}, x);
    } else {
      multiply(blas, Trans::no, Trans::yes, T{1}, b, inverse_, T{0}, x);
    }
  }

 private:
  Uplo uplo_ = Uplo::lower;
  Matrix<const T> triangle_{};
  Matrix<T> inverse_{};
  bool inverted_ = false;
};

/// A packed triangle L that solves L X = B (from the left) or X L^T = B (from the right).
template <class T>
class TriangularSolver {
 public:
  /// L is op(A) from the left and its transpose from the right.
  TriangularSolver(const Blas<T>& blas, Side side, Uplo uplo, Trans trans, Diag diag, Input<T> a)
      : blas_(blas),
        space_(Workspace<T>::of_this_thread()),
        side_(side),
        triangle_(packed(space_.operand, a.rows, a.rows)) {
    const bool transposed = (side == Side::left) == (trans == Trans::yes);
    uplo_ = (uplo == Uplo::lower) != transposed ? Uplo::lower : Uplo::upper;
    for (int first = 0; first < order(); first += kBlock) {
      const int size = std::min(kBlock, order() - first);
      pack(first, size, transposed, a);
      const Matrix<T> block = triangle_.block(first, first, size, size);
      if (diag == Diag::unit) {
        for (int i = 0; i < size; ++i) block(i, i) = T{1};
      }
      diagonal_[index(first)] =
          DiagonalBlock<T>(blas, uplo_, block, space_.inverses.data() + first * kBlock);
    }
  }

  /// B has at most kColumns columns from the left, kRows rows from the right.
  void solve(Scalar<T> alpha, Matrix<T> b) const {
    const Matrix<T> solved = packed(space_.solved, b.rows, b.columns);
    const int last = (order() - 1) / kBlock * kBlock;
    for (int step = 0; step <= last; step += kBlock) {
      const int first = lower() ? step : last - step;
      const int size = std::min(kBlock, order() - first);
      const Matrix<T> x = part(solved, first, size), target = part(b, first, size);
      const Matrix<T> strip = packed(space_.strip, x.rows, x.columns);
      copy_scaled(alpha, target, strip);
      subtract_solved(first, size, solved, strip);
      diagonal_[index(first)].solve(blas_, side_, strip, x);
      copy(x, target);
    }
  }

 private:
  bool lower() const noexcept { return uplo_ == Uplo::lower; }
  int order() const noexcept { return triangle_.rows; }
  static std::size_t index(int first) { return static_cast<std::size_t>(first / kBlock); }

  /// The rows of X from the left, its columns from the right.
  Matrix<T> part(Matrix<T> x, int first, int count) const {
    return side_ == Side::left ? x.block(first, 0, count, x.columns)
                               : x.block(0, first, x.rows, count);
  }

  /// Packs a block column of the triangle, with all of its diagonal block.
  void pack(int first, int size, bool transposed, Input<T> a) const {
    const int row = lower() ? first : 0;
    const int rows = lower() ? order() - first : first + size;
    const Matrix<T> target = triangle_.block(row, first, rows, size);
    if (transposed) {
      copy_transposed(a.block(first, row, size, rows), target);
    } else {
      copy(a.block(row, first, rows, size), target);
    }
  }

  void subtract_solved(int first, int size, Matrix<T> solved, Matrix<T> strip) const {
    const int begin = lower() ? 0 : first + size;
    const int count = lower() ? first : order() - begin;
    if (count == 0) return;
    for_parts(count, kDepth, 8, [&](int k, int depth) {
      const Matrix<T> l = triangle_.block(first, begin + k, size, depth);
      const Matrix<T> x = part(solved, begin + k, depth);
      if (side_ == Side::left) {
        multiply(blas_, Trans::no, Trans::no, T{-1}, l, x, T{1}, strip);
      } else {
        multiply(blas_, Trans::no, Trans::yes, T{-1}, x, l, T{1}, strip);
      }
    });
  }

  const Blas<T>& blas_;
  Workspace<T>& space_;
  Side side_;
  Uplo uplo_;
  Matrix<T> triangle_;
  std::array<DiagonalBlock<T>, kPackedOrder / kBlock> diagonal_;
};

/// Copies the part of a strip that lies in its triangle; the strip is a block column of it.
template <class T>
void copy_triangle(Uplo uplo, Input<T> strip, Matrix<T> c) {
  const int above = c.rows - c.columns;
  for (int j = 0; j < c.columns; ++j) {
    const int first = uplo == Uplo::lower ? j : 0;
    const int count = uplo == Uplo::lower ? c.rows - j : above + j + 1;
    std::memcpy(c.column(j) + first, strip.column(j) + first,
                static_cast<std::size_t>(count) * sizeof(T));
  }
}

/// Copies the lower triangle of a strip to the upper triangle of a block row.
template <class T>
void copy_triangle_transposed(Input<T> strip, Matrix<T> c) {
  const int order = c.rows;
  for (int j = 0; j < order; ++j) {
    for (int i = 0; i <= j; ++i) c(i, j) = strip(j, i);
  }
  if (c.columns == order) return;
  copy_transposed(strip.block(order, 0, strip.rows - order, order),
                  c.block(0, order, order, c.columns - order));
}

template <class T>
int factor_block(const Blas<T>& blas, Matrix<T> a) {
  if (blas.potrf == nullptr) return unblocked_potrf(Uplo::lower, a);
  int info = 0;
  blas.potrf("L", &a.rows, a.data, &a.stride, &info, 1);
  return info;
}

}  // namespace

template <class T>
void packed_trsm(const Blas<T>& blas, Side side, Uplo uplo, Trans trans, Diag diag, Scalar<T> alpha,
                 Input<T> a, Matrix<T> b) {
  const TriangularSolver<T> solver(blas, side, uplo, trans, diag, a);
  if (side == Side::left) {
    for_parts(b.columns, kColumns, 8,
              [&](int first, int count) { solver.solve(alpha, b.block(0, first, b.rows, count)); });
  } else {
    for_parts(b.rows, kRows, 8, [&](int first, int count) {
      solver.solve(alpha, b.block(first, 0, count, b.columns));
    });
  }
}

template <class T>
void packed_syrk(const Blas<T>& blas, Uplo uplo, Scalar<T> alpha, Input<T> a, Scalar<T> beta,
                 Matrix<T> c) {
  Workspace<T>& space = Workspace<T>::of_this_thread();
  const int order = c.rows;
  for_parts(a.columns, kPackedOrder, kBlock, [&](int k, int depth) {
    const Matrix<T> factor = packed(space.operand, order, depth);
    copy(a.block(0, k, order, depth), factor);
    for_parts(order, kBlock, kBlock, [&](int first, int size) {
      const int row = uplo == Uplo::lower ? first : 0;
      const int rows = uplo == Uplo::lower ? order - first : first + size;
      const Matrix<T> target = c.block(row, first, rows, size);
      const Matrix<T> strip = packed(space.strip, rows, size);
      copy_scaled(k == 0 ? beta : T{1}, target, strip);
      add_product(blas, alpha, factor.block(row, 0, rows, depth),
                  factor.block(first, 0, size, depth), strip);
      copy_triangle(uplo, strip, target);
    });
  });
}

template <class T>
int packed_potrf(const Blas<T>& blas, Uplo uplo, Matrix<T> a) {
  Workspace<T>& space = Workspace<T>::of_this_thread();
  const int order = a.rows;
  const Matrix<T> factor = packed(space.operand, order, order);
  for (int first = 0; first < order; first += kBlock) {
    const int size = std::min(kBlock, order - first), rows = order - first, below = rows - size;
    const bool lower = uplo == Uplo::lower;
    const Matrix<T> target =
        lower ? a.block(first, first, rows, size) : a.block(first, first, size, rows);
    const Matrix<T> strip = packed(space.strip, rows, size);
    lower ? copy(target, strip) : copy_transposed(target, strip);
    if (first > 0) {
      add_product(blas, T{-1}, factor.block(first, 0, rows, first),
                  factor.block(first, 0, size, first), strip);
    }
    const Matrix<T> diagonal = strip.block(0, 0, size, size);
    const int failed = factor_block(blas, diagonal);
    if (failed > 0) return first + failed;
    const Matrix<T> panel = factor.block(first, first, rows, size);
    copy_triangle(Uplo::lower, diagonal, panel.block(0, 0, size, size));
    if (below > 0) {
      DiagonalBlock<T>(blas, Uplo::lower, diagonal, space.inverses.data())
          .solve(blas, Side::right, strip.block(size, 0, below, size),
                 panel.block(size, 0, below, size));
    }
    lower ? copy_triangle(Uplo::lower, panel, target) : copy_triangle_transposed(panel, target);
  }
  return 0;
}

template void packed_trsm(const Blas<float>&, Side, Uplo, Trans, Diag, float, Matrix<const float>,
                          Matrix<float>);
template void packed_trsm(const Blas<double>&, Side, Uplo, Trans, Diag, double,
                          Matrix<const double>, Matrix<double>);
template void packed_syrk(const Blas<float>&, Uplo, float, Matrix<const float>, float,
                          Matrix<float>);
template void packed_syrk(const Blas<double>&, Uplo, double, Matrix<const double>, double,
                          Matrix<double>);
template int packed_potrf(const Blas<float>&, Uplo, Matrix<float>);
template int packed_potrf(const Blas<double>&, Uplo, Matrix<double>);

}  // namespace weir::kernels
