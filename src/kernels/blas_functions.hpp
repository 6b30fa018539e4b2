// What the kernels call of a BLAS.
#pragma once

#include <cstddef>

namespace weir::kernels {

// The options of the BLAS standard, with the values of its C interface.
enum class Order : int { column_major = 102 };
enum class Side : int { left = 141, right = 142 };
enum class Uplo : int { upper = 121, lower = 122 };
enum class Trans : int { no = 111, yes = 112 };
enum class Diag : int { non_unit = 131, unit = 132 };

/// Functions of the library for one type of element. The last two are null when it has no LAPACK.
template <class T>
struct Blas {
  void (*gemm)(Order, Trans, Trans, int m, int n, int k, T alpha, const T* a, int lda, const T* b,
               int ldb, T beta, T* c, int ldc);
  void (*syrk)(Order, Uplo, Trans, int n, int k, T alpha, const T* a, int lda, T beta, T* c,
               int ldc);
  void (*trsm)(Order, Side, Uplo, Trans, Diag, int m, int n, T alpha, const T* a, int lda, T* b,
               int ldb);
  void (*potrf)(const char* uplo, const int* n, T* a, const int* lda, int* info,
                std::size_t uplo_length);
  void (*getrf)(const int* m, const int* n, T* a, const int* lda, int* pivots, int* info);
};

}  // namespace weir::kernels
