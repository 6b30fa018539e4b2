#include "hstreams/builtin_sink.hpp"

#include <bit>
#include <cstring>

#include <hstreams/hStreams_app_api_sink.h>

#include "hstreams/blas.hpp"

using namespace weir::hs;

namespace {

float float_of(uint64_t word) { return std::bit_cast<float>(static_cast<uint32_t>(word)); }

template <class T>
T* matrix(uint64_t word) {
  return reinterpret_cast<T*>(word);
}

}  // namespace

extern "C" {

void hStreams_memcpy_sink(uint64_t bytes, uint64_t* source, uint64_t* target) {
  std::memmove(target, source, bytes);
}

void hStreams_memset_sink(uint64_t bytes, uint64_t value, uint64_t* target) {
  std::memset(target, static_cast<int>(value & 0xff), bytes);
}

void hStreams_null_func_1heap_arg(uint64_t) {}

void hStreams_sgemm_sink(uint64_t order, uint64_t trans_a, uint64_t trans_b, uint64_t m, uint64_t n,
                         uint64_t k, uint64_t alpha, uint64_t ld_a, uint64_t ld_b, uint64_t beta,
                         uint64_t ld_c, uint64_t a, uint64_t b, uint64_t c) {
  Blas::get().sgemm(order, trans_a, trans_b, m, n, k, float_of(alpha), matrix<float>(a), ld_a,
                    matrix<float>(b), ld_b, float_of(beta), matrix<float>(c), ld_c);
}

void hStreams_dgemm_sink(uint64_t order, uint64_t trans_a, uint64_t trans_b, uint64_t m, uint64_t n,
                         uint64_t k, uint64_t alpha, uint64_t ld_a, uint64_t ld_b, uint64_t beta,
                         uint64_t ld_c, uint64_t a, uint64_t b, uint64_t c) {
  Blas::get().dgemm(order, trans_a, trans_b, m, n, k, std::bit_cast<double>(alpha),
                    matrix<double>(a), ld_a, matrix<double>(b), ld_b, std::bit_cast<double>(beta),
                    matrix<double>(c), ld_c);
}

void hStreams_cgemm_sink(uint64_t order, uint64_t trans_a, uint64_t trans_b, uint64_t m, uint64_t n,
                         uint64_t k, uint64_t alpha, uint64_t ld_a, uint64_t ld_b, uint64_t beta,
                         uint64_t ld_c, uint64_t a, uint64_t b, uint64_t c) {
  Blas::get().cgemm(order, trans_a, trans_b, m, n, k, &alpha, matrix<void>(a), ld_a,
                    matrix<void>(b), ld_b, &beta, matrix<void>(c), ld_c);
}

void hStreams_zgemm_sink(uint64_t order, uint64_t trans_a, uint64_t trans_b, uint64_t m, uint64_t n,
                         uint64_t k, uint64_t alpha_real, uint64_t alpha_imag, uint64_t ld_a,
                         uint64_t ld_b, uint64_t beta_real, uint64_t beta_imag, uint64_t ld_c,
                         uint64_t a, uint64_t b, uint64_t c) {
  const uint64_t alpha[] = {alpha_real, alpha_imag}, beta[] = {beta_real, beta_imag};
  Blas::get().zgemm(order, trans_a, trans_b, m, n, k, alpha, matrix<void>(a), ld_a, matrix<void>(b),
                    ld_b, beta, matrix<void>(c), ld_c);
}
}

namespace weir::hs {

namespace {

struct Builtin {
  std::string_view name;
  void* function;
  bool needs_blas;
};

template <class Function>
Builtin builtin(std::string_view name, Function* function, bool needs_blas) {
  return {name, reinterpret_cast<void*>(function), needs_blas};
}

const Builtin* find(auto matches) {
  static const Builtin kTable[] = {
      builtin("hStreams_memcpy_sink", hStreams_memcpy_sink, false),
      builtin("hStreams_memset_sink", hStreams_memset_sink, false),
      builtin("hStreams_null_func_1heap_arg", hStreams_null_func_1heap_arg, false),
      builtin("hStreams_sgemm_sink", hStreams_sgemm_sink, true),
      builtin("hStreams_dgemm_sink", hStreams_dgemm_sink, true),
      builtin("hStreams_cgemm_sink", hStreams_cgemm_sink, true),
      builtin("hStreams_zgemm_sink", hStreams_zgemm_sink, true),
  };
  for (const Builtin& each : kTable) {
    if (matches(each)) return &each;
  }
  return nullptr;
}

}  // namespace

void* find_builtin(std::string_view name, bool with_blas) {
  const Builtin* const found = find([&](const Builtin& each) { return each.name == name; });
  const bool usable = found != nullptr && (!found->needs_blas || (with_blas && Blas::get()));
  return usable ? found->function : nullptr;
}

bool is_builtin(const void* function) {
  return find([&](const Builtin& each) { return each.function == function; }) != nullptr;
}

}  // namespace weir::hs
