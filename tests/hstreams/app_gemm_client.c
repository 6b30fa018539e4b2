/* The app API: products of matrices in four types, memset and memcpy. */
#include <hStreams_app_api.h>

#include "check.h"

enum { M = 5, N = 4, K = 3, MOST = 5 * 5 * 2 };

static double a[MOST], b[MOST], c[MOST], before[MOST];

/* Element (row, column) of op(X). */
static size_t at(CBLAS_ORDER order, CBLAS_TRANSPOSE trans, int row, int column, int ld) {
  const int swap = (trans != CblasNoTrans) != (order == CblasColMajor);
  return (size_t)(swap ? column * ld + row : row * ld + column);
}

static double value(const double* x, int single, size_t index) {
  return single ? (double)((const float*)(const void*)x)[index] : x[index];
}

static void fill(double* x, int single, double scale) {
  for (int i = 0; i < MOST; ++i) {
    const double v = scale * (double)(i % 7 - 3);
    if (single) {
      ((float*)(void*)x)[i] = (float)v;
    } else {
      x[i] = v;
    }
  }
}

static void send(void) {
  OK(hStreams_app_xfer_memory(0, a, a, sizeof a, HSTR_SRC_TO_SINK, NULL));
  OK(hStreams_app_xfer_memory(0, b, b, sizeof b, HSTR_SRC_TO_SINK, NULL));
  OK(hStreams_app_xfer_memory(0, c, c, sizeof c, HSTR_SRC_TO_SINK, NULL));
}

static void fetch(void) {
  OK(hStreams_app_xfer_memory(0, c, c, sizeof c, HSTR_SINK_TO_SRC, NULL));
  OK(hStreams_app_thread_sync());
}

static void prepare(int single) {
  fill(a, single, 1);
  fill(b, single, 0.5);
  fill(c, single, 0.25);
  memcpy(before, c, sizeof c);
  send();
}

static void check_real(int single, CBLAS_ORDER order, CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb) {
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      const size_t index = at(order, CblasNoTrans, i, j, 5);
      double sum = 0;
      for (int k = 0; k < K; ++k) {
        sum += value(a, single, at(order, ta, i, k, 5)) * value(b, single, at(order, tb, k, j, 5));
      }
      CHECK(value(c, single, index) == 2 * sum - value(before, single, index));
    }
  }
}

static void real_products(CBLAS_ORDER order, CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb) {
  prepare(0);
  OK(hStreams_app_dgemm(0, order, ta, tb, M, N, K, 2, a, 5, b, 5, -1, c, 5, NULL));
  fetch();
  check_real(0, order, ta, tb);
  prepare(1);
  OK(hStreams_app_sgemm(0, order, ta, tb, M, N, K, 2, (float*)(void*)a, 5, (float*)(void*)b, 5, -1,
                        (float*)(void*)c, 5, NULL));
  fetch();
  check_real(1, order, ta, tb);
}

/* alpha = 1 + 2i, beta = i, with A, B and C of pairs of numbers. */
static void complex_products(int single) {
  const double alpha[2] = {1, 2}, beta[2] = {0, 1};
  const float alpha_c[2] = {1, 2}, beta_c[2] = {0, 1};
  prepare(single);
  if (single) {
    OK(hStreams_app_cgemm(0, CblasRowMajor, CblasNoTrans, CblasNoTrans, M, N, K, alpha_c, a, 5, b,
                          5, beta_c, c, 5, NULL));
  } else {
    OK(hStreams_app_zgemm(0, CblasRowMajor, CblasNoTrans, CblasNoTrans, M, N, K, alpha, a, 5, b, 5,
                          beta, c, 5, NULL));
  }
  fetch();
  for (size_t i = 0; i < M; ++i) {
    for (size_t j = 0; j < N; ++j) {
      double re = 0, im = 0;
      const size_t index = 2 * (i * 5 + j);
      for (size_t k = 0; k < K; ++k) {
        const double ar = value(a, single, 2 * (i * 5 + k)), br = value(b, single, 2 * (k * 5 + j));
        const double ai = value(a, single, 2 * (i * 5 + k) + 1);
        const double bi = value(b, single, 2 * (k * 5 + j) + 1);
        re += ar * br - ai * bi;
        im += ar * bi + ai * br;
      }
      CHECK(value(c, single, index) == re - 2 * im - value(before, single, index + 1));
      CHECK(value(c, single, index + 1) == im + 2 * re + value(before, single, index));
    }
  }
}

static void set_and_copy(void) {
  HSTR_EVENT event;
  OK(hStreams_app_memset(0, a, 0x11, sizeof a, NULL));
  OK(hStreams_app_memset(0, b, 0x122, sizeof b, NULL)); /* the lowest byte */
  OK(hStreams_app_memcpy(0, b, a, sizeof a / 2, NULL)); /* from the second argument */
  OK(hStreams_app_xfer_memory(0, a, a, sizeof a, HSTR_SINK_TO_SRC, &event));
  OK(hStreams_app_event_wait(1, &event));
  CHECK(((char*)a)[0] == 0x22 && ((char*)a)[sizeof a / 2 - 1] == 0x22);
  CHECK(((char*)a)[sizeof a / 2] == 0x11);
}

int main(void) {
  OK(hStreams_app_init(1, 1));
  OK(hStreams_app_create_buf(a, sizeof a));
  OK(hStreams_app_create_buf(b, sizeof b));
  OK(hStreams_app_create_buf(c, sizeof c));
  real_products(CblasRowMajor, CblasNoTrans, CblasNoTrans);
  real_products(CblasColMajor, CblasNoTrans, CblasNoTrans);
  real_products(CblasRowMajor, CblasTrans, CblasNoTrans);
  real_products(CblasColMajor, CblasNoTrans, CblasTrans);
  complex_products(0);
  complex_products(1);
  set_and_copy();
  OK(hStreams_app_fini());
  return 0;
}
