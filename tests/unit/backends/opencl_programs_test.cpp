#include "backends/opencl/opencl_programs.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <unistd.h>

#include "surroundings.hpp"

namespace weir::rt {
namespace {

namespace fs = std::filesystem;

KernelSource source_of(std::string text) {
  KernelSource source;
  source.entry = "twice";
  source.text = std::move(text);
  source.file = "twice.wk";
  source.group = {4, 1, 1};
  source.parameters = "pi";
  return source;
}

const KernelSource kTwice = source_of(
    "WEIR_KERNEL(twice, 4, 1, 1, WEIR_GLOBAL int* x, int count) {\n"
    "  WEIR_ITEMS { if (WEIR_ITEM_X < count) x[WEIR_ITEM_X] = 2 * x[WEIR_ITEM_X] + 1; }\n"
    "}\n");

class OpenClProgramsTest : public testing::Test {
 protected:
  void SetUp() override {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "the thread sanitizer does not see the locks of the driver";
#endif
    try {
      const std::vector<OpenClDeviceInfo> devices = list_opencl_devices();
      if (!devices.front().compiles) GTEST_SKIP() << "the device compiles nothing for weir";
      facts_ = devices.front();
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();
    }
    folder_.emplace();  // the driver has found its own cache by now
    context_ = make_opencl_context(facts_.platform, facts_.id);
    queue_ = make_opencl_queue(context_.get(), facts_.id, OpenClQueueKind::untimed);
  }

  OpenClPrograms programs() const { return {facts_, context_.get(), facts_.id, false}; }

  /// Enqueues a call of twice for all of x.
  Outcome enqueue(OpenClPrograms& programs, std::vector<int>& x, std::uint32_t groups,
                  std::span<const cl_event> waits, cl_event& event,
                  const KernelSource& source = kTwice) {
    view_ = {x.data(), {x.size() * sizeof(int), 1, 1}, {}, WEIR_ACCESS_READ_WRITE};
    scalar_ = weir_scalar_i64(static_cast<std::int64_t>(x.size()));
    Job job;
    job.source = &source;
    job.groups = {groups, 1, 1};
    job.call.operands = &view_;
    job.call.operand_count = 1;
    job.call.scalars = &scalar_;
    job.call.scalar_count = 1;
    return programs.enqueue(queue_.get(), job, waits, &event);
  }
  /// The first number after a call on {0, 1, 2, ...}, -1 when it fails.
  int run(OpenClPrograms& programs) {
    std::vector<int> x = {20, 1, 2, 3, 4, 5, 6};
    cl_event event = nullptr;
    if (!enqueue(programs, x, 2, {}, event).ok()) return -1;
    OpenClLibrary::get().clWaitForEvents(1, &event);
    OpenClLibrary::get().clReleaseEvent(event);
    return x.back() == 13 ? x[0] : -1;
  }
  int run_anew() {
    OpenClPrograms fresh = programs();
    return run(fresh);
  }
  fs::path cached() const {
    std::error_code missing;
    const fs::directory_iterator entries(folder_->path("weir/kernels"), missing);
    for (const auto& entry : entries) return entry;
    return {};
  }

  OpenClDeviceInfo facts_;
  OpenClContext context_;
  OpenClQueue queue_;
  std::optional<CacheFolder> folder_;
  weir_view view_{};
  weir_scalar scalar_{};
};

TEST_F(OpenClProgramsTest, CallsWithEventWaits_RunInDependenceOrder) {
  OpenClPrograms made = programs();
  std::vector<int> x(100);
  std::vector<cl_event> events;
  for (int i = 0; i < 10; ++i) {
    cl_event event = nullptr;
    const std::span<const cl_event> waits(events.end() - (i > 0 ? 1 : 0), events.end());
    const std::uint32_t groups = i == 5 ? 0 : 25;  // none: an event nevertheless
    ASSERT_TRUE(enqueue(made, x, groups, waits, event).ok());
    events.push_back(event);
  }
  OpenClLibrary::get().clWaitForEvents(1, &events.back());
  for (cl_event event : events) OpenClLibrary::get().clReleaseEvent(event);
  EXPECT_EQ(x, std::vector<int>(100, (1 << 9) - 1));
}

/// PoCL 3 ended the process when it confused two sizes of a kernel that ran at once. With two
/// threads it cannot: unit_backends_of_16_threads runs this, too.
TEST_F(OpenClProgramsTest, ConcurrentCallsOfDifferentSizes_AllComplete) {
  constexpr std::uint32_t kSizes = 12;
  for (int round = 0; round < 8; ++round) {
    const KernelSource source = source_of(fmt::format(
        "WEIR_KERNEL(twice, 4, 1, 1, WEIR_GLOBAL int* x, int count) {{\n"
        "  WEIR_ITEMS {{ for (int i = 0; i < 20000; ++i) if (WEIR_ITEM_X == {}) x[0] += i; }}\n"
        "}}\n",
        100'000 + getpid() + round));  // the driver has not compiled it before
    OpenClPrograms made = programs();
    std::vector<int> x(1);
    std::vector<cl_event> events(kSizes);
    for (std::uint32_t i = 0; i < kSizes; ++i) {
      ASSERT_TRUE(enqueue(made, x, 1 + i * 7, {}, events[i], source).ok());
      OpenClLibrary::get().clFlush(queue_.get());
    }
    OpenClLibrary::get().clWaitForEvents(kSizes, events.data());
    for (cl_event event : events) OpenClLibrary::get().clReleaseEvent(event);
    EXPECT_EQ(x[0], 0);
  }
}

TEST_F(OpenClProgramsTest, DriverWithKernelCache_NoBinaryIsWritten) {
  if (!facts_.caches_kernels) GTEST_SKIP() << "the driver keeps none";
  EXPECT_EQ(run_anew(), 41);
  EXPECT_TRUE(cached().empty());
}

TEST_F(OpenClProgramsTest, DriverWithoutKernelCache_BinaryIsWrittenOnceAndReused) {
  facts_.caches_kernels = false;
  EXPECT_EQ(run_anew(), 41);
  const fs::path binary = cached();
  ASSERT_FALSE(binary.empty());
  const auto written = fs::last_write_time(binary);
  EXPECT_EQ(run_anew(), 41);
  EXPECT_EQ(fs::last_write_time(binary), written) << "was built again";
}

TEST_F(OpenClProgramsTest, DamagedCachedBinary_KernelStillRuns) {
  facts_.caches_kernels = false;
  EXPECT_EQ(run_anew(), 41);
  const std::string key = cached().filename();
  fs::resize_file(cached(), fs::file_size(cached()) / 2);
  EXPECT_EQ(run_anew(), 41);
  Cache("kernels").write(key, "what no driver has written");
  EXPECT_EQ(run_anew(), 41);
  Cache("kernels").write(key, "");
  EXPECT_EQ(run_anew(), 41);
}

TEST_F(OpenClProgramsTest, UnusableCacheFolder_KernelStillRuns) {
  std::ofstream(folder_->path("weir")) << "a file where the folder is to be";
  EXPECT_EQ(run_anew(), 41);
}

TEST_F(OpenClProgramsTest, BrokenKernel_EachCallReportsItAndOthersStillRun) {
  const KernelSource broken = source_of("\nWEIR_KERNEL(twice, 4, 1, 1, WEIR_GLOBAL nothing* x) {}");
  const KernelSource another = source_of("WEIR_KERNEL(twice, 4, 1, 1, WEIR_GLOBAL int* x) {}");
  OpenClPrograms made = programs();
  std::vector<int> x(4);
  cl_event event = nullptr;
  for (int i = 0; i < 2; ++i) {
    const Outcome outcome = enqueue(made, x, 1, {}, event, broken);
    EXPECT_EQ(outcome.status, WEIR_STATUS_KERNEL_ERROR);
    EXPECT_NE(outcome.message.find("twice.wk:2:"), std::string::npos) << outcome.message;
    EXPECT_EQ(event, nullptr);
  }
  EXPECT_EQ(enqueue(made, x, 1, {}, event, another).message,
            "kernel 'twice' has 1 parameter in twice.wk, but was registered with 2");
  EXPECT_EQ(run(made), 41);
}

}  // namespace
}  // namespace weir::rt
