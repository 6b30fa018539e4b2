#include "hstreams/blas.hpp"

#include <cstdlib>
#include <string_view>

#include <dlfcn.h>

namespace weir::hs {

namespace {

struct Candidate {
  std::string_view word;  // of WEIR_BLAS
  const char* library;
};
constexpr Candidate kCandidates[] = {
    {"mkl", "libmkl_rt.so.2"}, {"mkl", "libmkl_rt.so"},        {"openblas", "libopenblas.so.0"},
    {"blis", "libblis.so.4"},  {"reference", "libcblas.so.3"}, {"reference", "libblas.so.3"},
};

Blas blas_in(void* library) {
  Blas found;
  const auto find = [library](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
  };
  find(found.sgemm, "cblas_sgemm");
  find(found.dgemm, "cblas_dgemm");
  find(found.cgemm, "cblas_cgemm");
  find(found.zgemm, "cblas_zgemm");
  return found;
}

Blas open(const char* path) {
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  return library != nullptr ? blas_in(library) : Blas{};
}

Blas find_blas() {
  if (const Blas linked = blas_in(RTLD_DEFAULT)) return linked;
  const char* const wanted = secure_getenv("WEIR_BLAS");
  if (wanted != nullptr && std::string_view(wanted).find('/') != std::string_view::npos) {
    return open(wanted);
  }
  for (const auto& [word, library] : kCandidates) {
    if (wanted != nullptr && *wanted != '\0' && word != wanted) continue;
    if (const Blas found = open(library)) return found;
  }
  return {};
}

}  // namespace

const Blas& Blas::get() {
  static const Blas found = find_blas();
  return found;
}

}  // namespace weir::hs
