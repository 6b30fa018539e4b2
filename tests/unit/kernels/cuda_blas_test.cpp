// What the kernels for CUDA do otherwise than those for the host; unit_kernels_cuda runs the tests
// of these on a GPU, too.
#include <cstdlib>
#include <optional>
#include <string>

#include <weir/weir.hpp>

#include "fake_cublas.h"
#include "fake_cuda.h"
#include "kernel_fixture.hpp"
#include "thrown.hpp"

namespace weir::kernels {
namespace {

/// A runtime on the GPU for tests.
class CudaBlasTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    setenv("WEIR_CUDA_DRIVER", WEIR_TEST_FAKE_CUDA, 1);
    setenv("WEIR_CUBLAS", WEIR_TEST_FAKE_CUBLAS, 1);
    setenv("WEIR_CUSOLVER", WEIR_TEST_FAKE_CUBLAS, 1);
  }
  void SetUp() override {
    if (!blas_info().available) GTEST_SKIP() << blas_info().problem;  // kernels are found with it
    fake_cuda_reset();
    runtime_.emplace("cuda:0");
    place_ = runtime_->domain(0).place();
    stream_ = place_.stream();
    matrix_ = runtime_->buffer(kOrder * kOrder * sizeof(double));
  }
  void TearDown() override {
    matrix_ = {}, stream_ = {}, place_ = {};
    runtime_.reset();
    EXPECT_EQ(fake_cuda_misuses(), 0u);
    EXPECT_EQ(fake_cuda_objects(), 0u);
    EXPECT_EQ(fake_cublas_handles(), 0u);
  }

  /// Uploads the unit matrix with one other element on the diagonal.
  void fill(std::size_t at, double value) {
    for (std::size_t i = 0; i < kOrder * kOrder; ++i) {
      matrix_.data<double>()[i] = i % (kOrder + 1) == 0 ? 1 : 0;
    }
    matrix_.data<double>()[at * (kOrder + 1)] = value;
    stream_.upload(matrix_.all());
  }
  Operand tile() const { return readwrite(matrix_.tile<double>(0, 0, kOrder, kOrder, kOrder)); }
  void factor(const char* name) {
    stream_.compute(runtime_->kernel("lapack.dpotrf"), {tile()}, {'L', std::int64_t{100}}, name);
  }
  void solve() {
    const Buffer other = runtime_->buffer(matrix_.bytes());
    stream_.upload(other.all());
    stream_.compute(runtime_->kernel("blas.dtrsm"),
                    {read(matrix_.tile<double>(0, 0, kOrder, kOrder, kOrder)),
                     readwrite(other.tile<double>(0, 0, kOrder, kOrder, kOrder))},
                    {'L', 'L', 'N', 'N', 1.0});
    stream_.synchronize();
  }

  static constexpr std::size_t kOrder = 8;
  std::optional<Runtime> runtime_;
  Place place_;
  Stream stream_;
  Buffer matrix_;
};

TEST_F(CudaBlasTest, PotrfOfAnIndefiniteMatrix_FailsTheNextCallOnce) {
  fill(4, -1);
  factor("potrf 3,3");
  stream_.synchronize();
  EXPECT_NE(thrown_by([&] { solve(); })
                .find("'potrf 3,3', an earlier action of this place: the leading minor of order "
                      "105 is not positive definite"),
            std::string::npos);
  stream_ = place_.stream();
  fill(4, 1);
  factor("potrf 4,4");
  EXPECT_EQ(thrown_by([&] { solve(); }), "");
}

TEST_F(CudaBlasTest, ManyFactorisationsInFlight_ReportNoFailure) {
  fill(0, 1);
  for (int i = 0; i < 3000; ++i) factor("potrf");
  EXPECT_EQ(thrown_by([&] { solve(); }), "");
}

TEST_F(CudaBlasTest, LaterCallsInAStream_ReuseHandlesAndWorkspace) {
  fill(0, 1);
  factor("potrf");
  solve();
  const unsigned long handles = fake_cublas_handles();
  const unsigned long allocations = fake_cuda_calls("cuMemAllocAsync");
  for (int i = 0; i < 40; ++i) factor("potrf");
  solve();
  EXPECT_EQ(fake_cublas_handles(), handles);
  EXPECT_EQ(fake_cuda_calls("cuEventElapsedTime"), 0u) << "no caller wants times";
  EXPECT_EQ(fake_cuda_calls("cuMemAllocAsync"), allocations);
}

TEST_F(CudaBlasTest, CublasCallFails_ActionReportsItsStatus) {
  fill(0, 1);
  factor("potrf");
  stream_.synchronize();
  fake_cublas_fail(13);
  EXPECT_NE(thrown_by([&] { solve(); }).find("cuBLAS: trsm fails with status 13"),
            std::string::npos);
}

TEST_F(CudaBlasTest, WorkspaceAllocationFails_ActionReportsTheDriverError) {
  fill(0, 1);
  stream_.synchronize();
  fake_cuda_fail("cuMemAllocAsync", 1, 2);
  factor("potrf");
  const std::string message = thrown_by([&] { stream_.synchronize(); });
  EXPECT_NE(message.find("the workspace of a factorisation: CUDA_ERROR_OUT_OF_MEMORY (2)"),
            std::string::npos)
      << message;
}

TEST_F(CudaBlasTest, LostDevice_OtherDomainsContinue) {
  const Runtime both("cuda:1,host:cores=1");
  const Place card = both.domain(0).place(), desk = both.domain(1).place();
  const Stream breaks = card.stream(), goes_on = desk.stream();
  const Buffer x = both.buffer(64, "x");
  breaks.upload(x.all());
  breaks.synchronize();
  fake_cuda_fail("cuMemcpyHtoDAsync", 1, 700);
  const auto upload = [&] {
    breaks.upload(x.all());
    breaks.synchronize();
  };
  for (int round = 0; round < 2; ++round) {
    EXPECT_NE(thrown_by(upload).find("' is lost: CUDA_ERROR_ILLEGAL_ADDRESS"), std::string::npos);
  }
  goes_on.compute(both.kernel("mem.set"), {write(x.all())}, {7});
  goes_on.synchronize();
  EXPECT_EQ(x.data<char>()[63], 7);
  fill(0, 1);
  factor("potrf");
  stream_.synchronize();
}

/// In a process of its own: the libraries are opened once.
TEST_F(CudaBlasTest, MissingCublasOrCusolver_NamesThePackageToInstall) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto run = [&](const char* variable, const char* library) {
    setenv(variable, library, 1);
    fill(0, 1);
    const std::string message = thrown_by([&] {
      factor("potrf");
      stream_.synchronize();
      solve();
    });
    std::fprintf(stderr, "%s\n", message.c_str());
    std::_Exit(message.empty() ? 0 : 3);
  };
  EXPECT_EXIT(run("WEIR_CUBLAS", "/nowhere/libcublas.so"), testing::ExitedWithCode(3),
              "there is no cuBLAS for the tile kernels: .*/nowhere/libcublas.so.*; install the "
              "package nvidia-cublas from PyPI or the CUDA toolkit, or set WEIR_CUBLAS");
  EXPECT_EXIT(run("WEIR_CUSOLVER", "/nowhere/libcusolver.so"), testing::ExitedWithCode(3),
              "there is no cuSOLVER for the tile kernels: .*; install the package nvidia-cusolver");
  EXPECT_EXIT(run("WEIR_CUBLAS", "libm.so.6"), testing::ExitedWithCode(3),
              "cuBLAS has no cublasCreate_v2: that of CUDA 12 or newer is needed");
}

}  // namespace
}  // namespace weir::kernels
