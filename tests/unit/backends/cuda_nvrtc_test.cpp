// The real compiler, which needs no GPU. In a process of its own: it is opened once.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "backends/cuda/nvrtc_library.hpp"

namespace weir::rt {
namespace {

/// Compiles and ends the process: 0 with code of the device, 4 with that for the driver, which it
/// writes.
[[noreturn]] void compile(const char* library, const std::string& text, unsigned architecture) {
  setenv("WEIR_NVRTC", library, 1);
  try {
    const std::string code = compile_for_cuda(text, "kernel.cu", architecture);
    const bool native = code.starts_with(
        "\x7f"
        "ELF");
    if (!native) std::fputs(code.c_str(), stderr);
    std::exit(native ? 0 : 4);
  } catch (const Error& error) {
    std::fprintf(stderr, "%s: %s\n", status_name(error.status()), error.what());
    std::exit(3);
  }
}

constexpr char kGood[] =
    "extern \"C\" __global__ void add(long long* x, long long value) {\n"
    "  x[blockIdx.x * blockDim.x + threadIdx.x] += value;\n"
    "}\n";
constexpr char kWrong[] =
    "extern \"C\" __global__ void add(long long* x) {\n"
    "  x[0] = nowhere;\n"
    "}\n";
constexpr char kLarge[] =
    "extern \"C\" __global__ void add(float* x) {\n"
    "  __shared__ float all[16777216];\n"
    "  all[threadIdx.x] = x[0];\n"
    "  __syncthreads();\n"
    "  x[0] = all[63 - threadIdx.x];\n"
    "}\n";

class NvrtcTest : public testing::Test {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "the compiler is not made for sanitizers";
#endif
    if (std::string(WEIR_TEST_NVRTC).ends_with("-NOTFOUND")) {
      GTEST_SKIP() << "there is no NVRTC: scripts/setup.sh test gets it from PyPI";
    }
  }
};

TEST_F(NvrtcTest, KnownArchitecture_CompilesToCubin) {
  EXPECT_EXIT(compile(WEIR_TEST_NVRTC, kGood, 90), testing::ExitedWithCode(0), "");
}

TEST_F(NvrtcTest, UnknownNewerArchitecture_CompilesToPtx) {
  EXPECT_EXIT(compile(WEIR_TEST_NVRTC, kGood, 999), testing::ExitedWithCode(4), "");
}

TEST_F(NvrtcTest, ArchitectureBetweenTwoKnown_CompilesToPtxOfTheLower) {
  EXPECT_EXIT(compile(WEIR_TEST_NVRTC, kGood, 76), testing::ExitedWithCode(4), "\\.target sm_75");
}

TEST_F(NvrtcTest, ArchitectureTooOldForNvrtc_IsUnsupported) {
  EXPECT_EXIT(compile(WEIR_TEST_NVRTC, kGood, 20), testing::ExitedWithCode(3),
              "unsupported: NVRTC .* and the device has 2\\.0: install an older one");
}

TEST_F(NvrtcTest, SourceError_NamesFileAndLine) {
  EXPECT_EXIT(compile(WEIR_TEST_NVRTC, kWrong, 90), testing::ExitedWithCode(3),
              "kernel_error: kernel.cu does not compile for CUDA: kernel.cu\\(2\\): error: "
              "identifier \"nowhere\" is undefined");
}

TEST_F(NvrtcTest, TooMuchSharedMemory_ErrorNamesSizeAndLimit) {
  EXPECT_EXIT(compile(WEIR_TEST_NVRTC, kLarge, 90), testing::ExitedWithCode(3),
              "kernel_error: kernel.cu does not compile for CUDA: .*'add' uses too much shared "
              "data \\(67108864 bytes, 49152 max\\)");
}

TEST(Nvrtc, MissingLibrary_ErrorSaysToInstallNvrtc) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(compile("/nowhere/libnvrtc.so", kGood, 90), testing::ExitedWithCode(3),
              "unavailable: there is no compiler for CUDA kernels: .*; install NVRTC");
}

}  // namespace
}  // namespace weir::rt
