#include "kernels/blas_library.hpp"

#include <gtest/gtest.h>

#include <string>

#include <weir/weir.h>

#include "base/error.hpp"
#include "kernels/builtin.hpp"
#include "thrown.hpp"

namespace weir::kernels {
namespace {

std::string refusal(const std::string& name) {
  return thrown_by<rt::Error>([&] { const BlasLibrary library(name); }, WEIR_STATUS_UNAVAILABLE);
}

TEST(BlasLibrary, MissingLibrary_NamesThePackageToInstall) {
  const std::string message = refusal("/nowhere/libblas.so");
  EXPECT_NE(message.find("cannot open BLAS '/nowhere/libblas.so'"), std::string::npos) << message;
  EXPECT_NE(message.find("apt install libopenblas0-pthread"), std::string::npos) << message;
}

TEST(BlasLibrary, LibraryWithoutBlasFunctions_IsRefused) {
  const std::string message = refusal("libm.so.6");
  EXPECT_NE(message.find("has no cblas_sgemm"), std::string::npos) << message;
}

TEST(BlasLibrary, UnknownName_IsRefusedWithASuggestion) {
  weir_runtime_options options = WEIR_RUNTIME_OPTIONS_INIT;
  options.domains = "host";
  options.blas = "opneblas";
  weir_runtime* runtime = nullptr;
  EXPECT_EQ(weir_runtime_create(&options, &runtime), WEIR_STATUS_INVALID_ARGUMENT);
  EXPECT_NE(
      std::string(weir_last_error()).find("unknown BLAS 'opneblas' (did you mean 'openblas'?)"),
      std::string::npos)
      << weir_last_error();
}

TEST(BlasLibrary, OpenBlasKernelsOlderThanTheCpu_SuggestsNewerOnes) {
  EXPECT_EQ(better_openblas_kernels("SkylakeX"), "");
  EXPECT_EQ(better_openblas_kernels("Cooperlake"), "");
  EXPECT_EQ(better_openblas_kernels("OfTheFuture"), "");
#if defined(__x86_64__)
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  EXPECT_EQ(better_openblas_kernels("Prescott").empty(), !avx2);
  EXPECT_EQ(better_openblas_kernels("Haswell").empty(), !__builtin_cpu_supports("avx512vl"));
#endif
}

TEST(BlasLibrary, DescribesTheOneInUse) {
  const BlasInfo info = blas_info();
  if (!info.available) {
    EXPECT_NE(info.problem.find("apt install"), std::string::npos);
    GTEST_SKIP() << info.problem;
  }
  EXPECT_FALSE(info.name.empty());
  EXPECT_FALSE(info.library.empty());
  EXPECT_EQ(&BlasLibrary::instance(), &BlasLibrary::instance());
}

TEST(BlasLibrary, BlasKernels_AreFoundOnlyWithABlas) {
  weir_runtime_options options = WEIR_RUNTIME_OPTIONS_INIT;
  options.domains = "host";
  weir_runtime* runtime = nullptr;
  ASSERT_EQ(weir_runtime_create(&options, &runtime), WEIR_STATUS_OK) << weir_last_error();
  for (const char* routine :
       {"blas.sgemm", "blas.dsyrk", "blas.strsm", "lapack.dpotrf", "lapack.sgetrf"}) {
    for (const char* suffix : {"", ".team"}) {
      weir_kernel* kernel = nullptr;
      const weir_status status =
          weir_kernel_find(runtime, (std::string(routine) + suffix).c_str(), &kernel);
      EXPECT_EQ(status, blas_info().available ? WEIR_STATUS_OK : WEIR_STATUS_UNAVAILABLE);
    }
  }
  weir_kernel* kernel = nullptr;
  EXPECT_EQ(weir_kernel_find(runtime, "mem.set", &kernel), WEIR_STATUS_OK);
  EXPECT_EQ(weir_kernel_find(runtime, "mem.copy.team", &kernel), WEIR_STATUS_OK);
  weir_runtime_destroy(runtime);
}

}  // namespace
}  // namespace weir::kernels
