#include "kernels/team_blas.hpp"

#include <algorithm>

#include "kernels/unblocked.hpp"

namespace weir::kernels {

namespace {

constexpr int kLargestPart = 512;
constexpr int kLeastPart = 64;
constexpr int kLeastVectors = 128;  ///< each part of a solve prepares the triangle again
constexpr int kPotrfBlock = 256;
constexpr int kGetrfBlock = 64;

int parts_of(int total, int part) { return (total + part - 1) / part; }

}  // namespace

/// Runs body(index) for all indices below count on the team.
template <class T>
template <class Body>
void TeamBlas<T>::for_each(int count, const Body& body) const {
  struct Work {
    const BlasLibrary& library;
    const Body& body;
  } work{library_, body};
  const auto run = [](std::size_t begin, std::size_t end, std::size_t, void* payload) {
    const Work& shared = *static_cast<const Work*>(payload);
    const OneThread one_thread(shared.library);
    for (std::size_t index = begin; index < end; ++index) shared.body(static_cast<int>(index));
  };
  weir_team_for(team_, static_cast<std::size_t>(count), 1, run, &work);
}

/// Returns the edge of square parts, of which there are at least two for each thread if they need
/// not be smaller than `least`.
template <class T>
int TeamBlas<T>::part_of(int rows, int columns, int least) const noexcept {
  const auto wanted = static_cast<std::int64_t>(2 * weir_team_size(team_));
  int part = kLargestPart;
  while (part > least && std::int64_t{parts_of(rows, part)} * parts_of(columns, part) < wanted) {
    part /= 2;
  }
  return part;
}

template <class T>
void TeamBlas<T>::gemm(Trans trans_a, Trans trans_b, T alpha, Matrix<const T> a, Matrix<const T> b,
                       T beta, Matrix<T> c) const {
  if (has_one_thread()) return tile_.gemm(trans_a, trans_b, alpha, a, b, beta, c);
  const int part = part_of(c.rows, c.columns, kLeastPart), down = parts_of(c.rows, part);
  const int depth = trans_a == Trans::no ? a.columns : a.rows;
  for_each(down * parts_of(c.columns, part), [&](int index) {
    const int i = index % down * part, j = index / down * part;
    const int rows = std::min(part, c.rows - i), columns = std::min(part, c.columns - j);
    tile_.gemm(trans_a, trans_b, alpha,
               trans_a == Trans::no ? a.block(i, 0, rows, depth) : a.block(0, i, depth, rows),
               trans_b == Trans::no ? b.block(0, j, depth, columns) : b.block(j, 0, columns, depth),
               beta, c.block(i, j, rows, columns));
  });
}

template <class T>
void TeamBlas<T>::syrk(Uplo uplo, Trans trans, T alpha, Matrix<const T> a, T beta,
                       Matrix<T> c) const {
  if (has_one_thread()) return tile_.syrk(uplo, trans, alpha, a, beta, c);
  const int order = c.rows, depth = trans == Trans::no ? a.columns : a.rows;
  const int part = part_of(order, order, kLeastPart), count = parts_of(order, part);
  const auto rows_of_a = [&](int first, int size) {
    return trans == Trans::no ? a.block(first, 0, size, depth) : a.block(0, first, depth, size);
  };
  for_each(count * count, [&](int index) {
    const int i = index % count * part, j = index / count * part;
    const int rows = std::min(part, order - i), columns = std::min(part, order - j);
    const Matrix<T> target = c.block(i, j, rows, columns);
    if (i == j) {
      tile_.syrk(uplo, trans, alpha, rows_of_a(i, rows), beta, target);
    } else if ((i > j) == (uplo == Uplo::lower)) {
      tile_.gemm(trans, trans == Trans::no ? Trans::yes : Trans::no, alpha, rows_of_a(i, rows),
                 rows_of_a(j, columns), beta, target);
    }
  });
}

template <class T>
void TeamBlas<T>::trsm(Side side, Uplo uplo, Trans trans, Diag diag, T alpha, Matrix<const T> a,
                       Matrix<T> b) const {
  if (has_one_thread()) return tile_.trsm(side, uplo, trans, diag, alpha, a, b);
  const bool left = side == Side::left;
  const int total = left ? b.columns : b.rows, part = part_of(total, 1, kLeastVectors);
  for_each(parts_of(total, part), [&](int index) {
    const int first = index * part, count = std::min(part, total - first);
    tile_.trsm(side, uplo, trans, diag, alpha, a,
               left ? b.block(0, first, b.rows, count) : b.block(first, 0, count, b.columns));
  });
}

template <class T>
int TeamBlas<T>::potrf(Uplo uplo, Matrix<T> a) const {
  if (has_one_thread()) return tile_.potrf(uplo, a);
  const int order = a.rows;
  for (int first = 0; first < order; first += kPotrfBlock) {
    const int size = std::min(kPotrfBlock, order - first);
    const int next = first + size, rest = order - next;
    const Matrix<T> diagonal = a.block(first, first, size, size);
    if (const int failed = tile_.potrf(uplo, diagonal); failed > 0) return first + failed;
    if (rest == 0) break;
    const bool lower = uplo == Uplo::lower;
    const Matrix<T> panel =
        lower ? a.block(next, first, rest, size) : a.block(first, next, size, rest);
    trsm(lower ? Side::right : Side::left, uplo, Trans::yes, Diag::non_unit, T{1}, diagonal, panel);
    syrk(uplo, lower ? Trans::no : Trans::yes, T{-1}, panel, T{1}, a.block(next, next, rest, rest));
  }
  return 0;
}

/// Applies the factored block column at `first` to the columns on both sides of it.
template <class T>
void TeamBlas<T>::update_columns(Matrix<T> a, int first, int size,
                                 const std::int32_t* pivots) const {
  const int next = first + size, below = a.rows - next;
  const Matrix<const T> diagonal = a.block(first, first, size, size);
  const int part = part_of(a.columns, 1, kLeastPart);
  const int left = parts_of(first, part), right = parts_of(a.columns - next, part);
  for_each(left + right, [&](int index) {
    const bool is_left = index < left;
    const int column = is_left ? index * part : next + (index - left) * part;
    const int columns = std::min(part, (is_left ? first : a.columns) - column);
    exchange_rows(a.block(first, column, a.rows - first, columns), pivots, size);
    if (is_left) return;
    const Matrix<T> top = a.block(first, column, size, columns);
    tile_.trsm(Side::left, Uplo::lower, Trans::no, Diag::unit, T{1}, diagonal, top);
    if (below == 0) return;
    tile_.gemm(Trans::no, Trans::no, T{-1}, a.block(next, first, below, size), top, T{1},
               a.block(next, column, below, columns));
  });
}

template <class T>
int TeamBlas<T>::getrf(Matrix<T> a, std::int32_t* pivots) const {
  if (has_one_thread()) return tile_.getrf(a, pivots);
  const int order = std::min(a.rows, a.columns);
  int first_zero = 0;
  for (int first = 0; first < order; first += kGetrfBlock) {
    const int size = std::min(kGetrfBlock, order - first);
    const int zero = tile_.getrf(a.block(first, first, a.rows - first, size), pivots + first);
    if (zero > 0 && first_zero == 0) first_zero = first + zero;
    update_columns(a, first, size, pivots + first);
    for (int i = first; i < first + size; ++i) pivots[i] += first;
  }
  return first_zero;
}

template class TeamBlas<float>;
template class TeamBlas<double>;

}  // namespace weir::kernels
