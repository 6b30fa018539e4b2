/* The kernels of all forms in the C that C++, CUDA and OpenCL C share: the work of one item each,
   so that every form divides a tile as its devices like. Tiles are n x n and column-major. */
#ifndef FORMS_KERNELS_H
#define FORMS_KERNELS_H

#ifndef FORMS_FUNCTION
#define FORMS_FUNCTION static inline
#endif
#ifndef FORMS_GLOBAL
#define FORMS_GLOBAL
#endif

/* x[i] := its square root, by Newton's method. */
FORMS_FUNCTION void root_item(FORMS_GLOBAL double* x, int i) {
  const double number = x[i];
  double root = number;
  for (int step = 0; step < 20; ++step) root = 0.5 * (root + number / root);
  x[i] = root;
}

/* Factors a tile: one item. */
FORMS_FUNCTION void potrf_item(int n, FORMS_GLOBAL double* a) {
  for (int k = 0; k < n; ++k) {
    a[k + k * n] = sqrt(a[k + k * n]);
    for (int row = k + 1; row < n; ++row) a[row + k * n] /= a[k + k * n];
    for (int column = k + 1; column < n; ++column) {
      for (int row = column; row < n; ++row) {
        a[row + column * n] -= a[row + k * n] * a[column + k * n];
      }
    }
  }
}

/* Solves X L^T = X for one row of X. */
FORMS_FUNCTION void trsm_item(int n, const FORMS_GLOBAL double* l, FORMS_GLOBAL double* x,
                              int row) {
  for (int column = 0; column < n; ++column) {
    double value = x[row + column * n];
    for (int k = 0; k < column; ++k) value -= x[row + k * n] * l[column + k * n];
    x[row + column * n] = value / l[column + column * n];
  }
}

/* C -= A B^T for one of the n * n elements of C. */
FORMS_FUNCTION void gemm_item(int n, const FORMS_GLOBAL double* a, const FORMS_GLOBAL double* b,
                              FORMS_GLOBAL double* c, int item) {
  const int row = item % n, column = item / n;
  double sum = 0;
  for (int k = 0; k < n; ++k) sum += a[row + k * n] * b[column + k * n];
  c[item] -= sum;
}

/* The lower triangle of C -= A A^T, as gemm_item(). */
FORMS_FUNCTION void syrk_item(int n, const FORMS_GLOBAL double* a, FORMS_GLOBAL double* c,
                              int item) {
  if (item % n >= item / n) gemm_item(n, a, a, c, item);
}

#endif
