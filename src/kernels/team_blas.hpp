// BLAS and LAPACK on one tile, on the threads of a place.
#pragma once

#include <cstddef>
#include <cstdint>

#include <weir/kernel.h>

#include "kernels/blas_library.hpp"
#include "kernels/matrix.hpp"
#include "kernels/tile_blas.hpp"

namespace weir::kernels {

/// Divides each routine into parts that the members of a team run with TileBlas; on the calling
/// thread alone when there is no team. Contracts as in TileBlas.
template <class T>
class TeamBlas {
 public:
  TeamBlas(const BlasLibrary& library, weir_team* team)
      : library_(library), team_(team), tile_(library) {}

  void gemm(Trans trans_a, Trans trans_b, T alpha, Matrix<const T> a, Matrix<const T> b, T beta,
            Matrix<T> c) const;
  void syrk(Uplo uplo, Trans trans, T alpha, Matrix<const T> a, T beta, Matrix<T> c) const;
  void trsm(Side side, Uplo uplo, Trans trans, Diag diag, T alpha, Matrix<const T> a,
            Matrix<T> b) const;
  int potrf(Uplo uplo, Matrix<T> a) const;
  int getrf(Matrix<T> a, std::int32_t* pivots) const;

 private:
  bool has_one_thread() const noexcept { return weir_team_size(team_) == 1; }
  int part_of(int rows, int columns, int least) const noexcept;
  template <class Body>
  void for_each(int count, const Body& body) const;
  void update_columns(Matrix<T> a, int first, int size, const std::int32_t* pivots) const;

  const BlasLibrary& library_;
  weir_team* team_;
  TileBlas<T> tile_;
};

}  // namespace weir::kernels
