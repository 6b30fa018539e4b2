#include "backends/opencl/opencl_backend.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "backend/copy_bytes.hpp"
#include "backends/opencl/opencl_device.hpp"
#include "backends/opencl/opencl_platforms.hpp"
#include "failing_opencl.h"
#include "open_device.hpp"
#include "scripted_feed.hpp"
#include "surroundings.hpp"
#include "thrown.hpp"

namespace weir::rt {
namespace {

/// Waits for all jobs and checks their statuses. The jobs after the last of `expected` succeed.
void expect_ends(ScriptedFeed& jobs, std::vector<weir_status> expected = {}) {
  const auto endings = jobs.wait();
  expected.resize(endings.size());
  for (const auto& [number, ending] : endings) {
    EXPECT_EQ(ending.outcome.status, expected[number - 1])
        << "job " << number << ": " << ending.outcome.message;
  }
}

/// Before anything opens the loader, which reads it once.
[[maybe_unused]] const int kLayered = setenv("OPENCL_LAYERS", WEIR_TEST_FAILING_OPENCL, 1);

class OpenClBackendTest : public testing::Test {
 protected:
  void SetUp() override {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "the thread sanitizer does not see the locks of the driver";
#endif
    const weir_status status = status_of([&] { open_device(*backend_, {}); });
    if (status == WEIR_STATUS_UNAVAILABLE) GTEST_SKIP() << "there is no OpenCL device";
  }
  std::unique_ptr<Backend> backend_ = make_opencl_backend();
};

TEST_F(OpenClBackendTest, DeviceInfo_ReportsDriverCoresMemoryAndAliasing) {
  const auto device = open_device(*backend_, {});
  EXPECT_EQ(device->info().backend, "opencl");
  EXPECT_NE(device->info().description.find(", driver "), std::string::npos);
  EXPECT_GE(device->info().cores, 1u);
  EXPECT_GT(device->info().memory_bytes, 0u);
  EXPECT_TRUE(device->info().aliases_host);
  EXPECT_FALSE(open_device(*backend_, {{"alias", "off"}})->info().aliases_host);
  EXPECT_EQ(open_device(*backend_, {{"memory", "1MiB"}})->info().memory_bytes, 1u << 20);
}

TEST_F(OpenClBackendTest, UnknownDeviceNumber_ErrorListsTheDevices) {
  EXPECT_EQ(status_of([&] { open_device(*backend_, {{"device", "999"}}); }), WEIR_STATUS_NOT_FOUND);
  const std::string message = thrown_by<Error>([&] {
    open_device(*backend_, {{"device", "999"}});
  });
  EXPECT_NE(message.find("no device 999; OpenCL has: 0 "), std::string::npos) << message;
}

TEST_F(OpenClBackendTest, AllocationAboveDriverLimit_FailsAndNamesTheLimit) {
  const auto device = open_device(*backend_, {});
  const std::string message = thrown_by<Error>([&] { device->allocate(std::size_t{1} << 50); });
  EXPECT_NE(message.find("gives at most"), std::string::npos) << message;
  Memory memory = device->allocate(100);
  for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(static_cast<char*>(memory.address)[i], 0);
  device->release(memory);
}

TEST_F(OpenClBackendTest, NonContiguousComputeUnits_PlaceIsUnsupported) {
  const auto device = open_device(*backend_, {});
  if (device->info().cores < 4) GTEST_SKIP() << "too few units";
  ScriptedFeed feed;
  EXPECT_NO_THROW(device->open_place({"p", {1, 2}}, feed));
  EXPECT_EQ(status_of([&] { device->open_place({"p", {0, 2}}, feed); }), WEIR_STATUS_UNSUPPORTED);
}

/// Threads of PoCL look at the unit of a command after it has said that this is over.
TEST_F(OpenClBackendTest, PlaceOpenedAndClosedRepeatedly_DoesNotCrash) {
  const auto device = open_device(*backend_, {});
  if (device->info().cores < 2) GTEST_SKIP() << "too few units";
  ScriptedFeed feed;
  for (int i = 0; i < 300; ++i) device->open_place({"p", {i % 2 == 0 ? 0u : 1u}}, feed);
}

TEST_F(OpenClBackendTest, DriverThatCannotPartition_ErrorAdvisesToUseAllUnits) {
  OpenClDeviceInfo facts = list_opencl_devices().front();
  if (!facts.native) GTEST_SKIP() << "only native devices are divided";
  ++facts.units;  // which the driver does not have
  OpenClDevice device("test", facts.memory, true, facts);
  ScriptedFeed feed;
  const auto open = [&] { device.open_place({"half", {0}}, feed); };
  EXPECT_EQ(status_of(open), WEIR_STATUS_UNSUPPORTED);
  const std::string message = thrown_by<Error>(open);
  EXPECT_TRUE(message.starts_with("place 'half' cannot be 1 of the " + std::to_string(facts.units) +
                                  " units of "))
      << message;
  EXPECT_TRUE(message.ends_with("; use all")) << message;
}

TEST_F(OpenClBackendTest, DiscreteDevice_HasItsOwnMemoryAndRunsNoHostCode) {
  const auto card = open_device(*backend_, {{"native", "off"}});
  EXPECT_FALSE(card->info().aliases_host);
  EXPECT_FALSE(card->info().runs_host_code);
  EXPECT_TRUE(card->info().compiles_source);
  EXPECT_EQ(card->info().cores, 1u);
  const auto other = open_device(*backend_, {});
  EXPECT_TRUE(card->reaches(nullptr));
  EXPECT_FALSE(card->reaches(other.get()));
  EXPECT_FALSE(other->reaches(card.get()));
  int program = 0;
  EXPECT_EQ(status_of([&] { card->adopt(&program, sizeof program); }), WEIR_STATUS_UNSUPPORTED);
  EXPECT_EQ(status_of([&] { card->allocate(std::size_t{1} << 50); }), WEIR_STATUS_OUT_OF_MEMORY);
  Memory memory = card->allocate(100);
  EXPECT_NE(memory.address, nullptr);
  card->release(memory);
}

TEST_F(OpenClBackendTest, BriefCallsOnDiscreteDevice_AllSucceed) {
  const auto card = open_device(*backend_, {{"native", "off"}});
  Job call;
  call.function = [](const weir_call*) { return WEIR_STATUS_OK; };
  call.brief = true;
  ScriptedFeed jobs(std::vector<Job>(40, call));
  const auto place = card->open_place({"p", {0}}, jobs);
  expect_ends(jobs);
}

TEST_F(OpenClBackendTest, DiscreteDeviceCallFails_SuccessorsArePoisonedAndNotCalled) {
  const auto card = open_device(*backend_, {{"native", "off"}});
  static std::atomic<unsigned> calls{0};
  calls = 0;
  static constexpr std::uint64_t kBefore[] = {1, 2};
  std::vector<Job> given(3);
  given[0].function = [](const weir_call*) { return WEIR_STATUS_KERNEL_ERROR; };
  for (std::size_t i = 1; i < given.size(); ++i) {
    given[i].waits = {&kBefore[i - 1], 1};
    given[i].function = [](const weir_call*) {
      ++calls;
      return WEIR_STATUS_OK;
    };
  }
  ScriptedFeed jobs(given);
  const auto place = card->open_place({"p", {0}}, jobs);
  expect_ends(jobs, {WEIR_STATUS_KERNEL_ERROR, WEIR_STATUS_POISONED, WEIR_STATUS_POISONED});
  EXPECT_EQ(calls.load(), 0u);
}

TEST_F(OpenClBackendTest, DiscreteDevice_CopiesStridedRegionsWithinItsMemory) {
  const auto card = open_device(*backend_, {{"native", "off"}});
  constexpr std::size_t kBytes = 256;
  constexpr Region kAll{.row = kBytes};
  constexpr Region kTiles{
      .offset = 1, .row = 3, .row_stride = 8, .plane_stride = 64, .rows = 4, .planes = 2};
  constexpr Region kBeside{
      .offset = 5, .row = 3, .row_stride = 8, .plane_stride = 64, .rows = 4, .planes = 2};
  constexpr Region kDenser{
      .offset = 130, .row = 3, .row_stride = 5, .plane_stride = 40, .rows = 4, .planes = 2};
  std::array<std::byte, kBytes> bytes{};
  for (std::size_t i = 0; i < kBytes; ++i) bytes[i] = static_cast<std::byte>(i);
  std::array<std::byte, kBytes> expected = bytes;
  copy_bytes(expected.data(), kBeside, bytes.data(), kTiles);
  copy_bytes(expected.data(), kDenser, bytes.data(), kTiles);

  Memory one = card->allocate(kBytes), two = card->allocate(kBytes);
  const auto in = [&](const Memory& memory, const Region& region) {
    return CopyEnd{card.get(), static_cast<std::byte*>(memory.address), region};
  };
  const CopyEnd program{nullptr, bytes.data(), kAll};
  Copies copies;
  std::size_t count = 0;
  const auto copy = [&](const CopyEnd& source, const CopyEnd& target) {
    card->copy({source, target, &copies, nullptr});
    const Outcome outcome = copies.wait_for(++count).back().outcome;
    EXPECT_TRUE(outcome.ok()) << outcome.message;
  };
  copy(program, in(one, kAll));
  static constexpr std::uint64_t kFirst = 1;
  std::vector<Job> given(2);
  for (Job& job : given) job.is_copy = true;
  given[0].from = in(one, kTiles);
  given[0].to = in(two, kDenser);
  given[1].from = in(two, kDenser);
  given[1].to = in(one, kBeside);
  given[1].waits = {&kFirst, 1};
  {
    ScriptedFeed jobs(given);
    const auto place = card->open_place({"p", {0}}, jobs);
    expect_ends(jobs);
  }
  copy(in(one, kTiles), in(one, kDenser));
  copy(in(one, kAll), program);
  EXPECT_EQ(bytes, expected);
  card->release(one);
  card->release(two);
}

/// Allocation succeeds while the device is busy; the memory is zero for its first user.
TEST_F(OpenClBackendTest, AllocationOnBusyDiscreteDevice_DoesNotBlockAndIsZeroed) {
  const auto card = open_device(*backend_, {{"native", "off"}});
  constexpr std::size_t kBytes = 64;
  constexpr Region kAll{.row = kBytes}, kSecond{.offset = kBytes, .row = kBytes};
  std::array<std::byte, kBytes> bytes{}, here{};
  bytes.fill(std::byte{7});
  failing_opencl_hold_fills(1);
  Memory one = card->allocate(kBytes), two = card->allocate(2 * kBytes);
  const auto in = [&](const Memory& memory, const Region& region) {
    return CopyEnd{card.get(), static_cast<std::byte*>(memory.address), region};
  };
  const CopyEnd program{nullptr, bytes.data(), kAll}, back{nullptr, here.data(), kAll};
  Job copy;
  copy.is_copy = true;
  copy.from = program;
  copy.to = in(one, kAll);
  ScriptedFeed jobs({copy});
  Copies copies;
  {
    const auto place = card->open_place({"p", {0}}, jobs);
    card->copy({program, in(two, kAll), &copies, nullptr});
    while (jobs.has_work()) std::this_thread::yield();
    failing_opencl_hold_fills(0);
    expect_ends(jobs);
  }
  EXPECT_TRUE(copies.wait_for(1)[0].outcome.ok());
  std::size_t count = 1;
  for (const CopyEnd& end : {in(one, kAll), in(two, kAll), in(two, kSecond)}) {
    card->copy({end, back, &copies, nullptr});
    EXPECT_TRUE(copies.wait_for(++count).back().outcome.ok());
    EXPECT_EQ(here[5], count < 4 ? std::byte{7} : std::byte{0}) << count;
  }
  card->release(one);
  card->release(two);
}

TEST_F(OpenClBackendTest, SmallCopyWithoutWaits_IsNotDelayedByABlockedCopy) {
  const auto device = open_device(*backend_, {});
  if (device->info().cores < 2) GTEST_SKIP() << "too few units";
  static std::atomic<bool> open{false};
  open = false;
  static constexpr std::uint64_t kFirst = 1;
  std::array<std::byte, 64> bytes{};
  std::vector<Job> given(3);
  given[0].function = [](const weir_call*) {
    open.wait(false);
    return WEIR_STATUS_OK;
  };
  given[1].waits = {&kFirst, 1};
  for (std::size_t i = 1; i < given.size(); ++i) {
    given[i].is_copy = true;
    given[i].from = {nullptr, bytes.data(), {.offset = 0, .row = 8}};
    given[i].to = {nullptr, bytes.data(), {.offset = 16 * i, .row = 8}};
  }
  ScriptedFeed jobs(given);
  std::vector<unsigned> cores(device->info().cores);
  std::iota(cores.begin(), cores.end(), 0u);
  const auto place = device->open_place({"p", cores}, jobs);
  jobs.wait_for(3);
  open = true;
  open.notify_all();
  expect_ends(jobs);
}

/// The place reports each command of a chain before the chain ends, whether it polls or sleeps.
TEST_F(OpenClBackendTest, ChainOfCommands_EachIsReportedBeforeTheChainEnds) {
  const KernelSource add{.entry = "add",
                         .text =
                             "WEIR_KERNEL(add, 1, 1, 1, WEIR_GLOBAL int* x) {\n"
                             "  WEIR_ITEMS_LAST { x[0] += 1; }\n"
                             "}\n",
                         .file = "add.wk",
                         .parameters = "p"};
  static constexpr std::array<std::uint64_t, 4> kNumbers{1, 2, 3, 4};
  static std::atomic<bool> open;
  for (const char* const spin : {"0", "1000000"}) {
    SCOPED_TRACE(spin);
    const EnvironmentVariable variable("WEIR_SPIN_US", spin);
    const auto device = open_device(*backend_, {});
    if (!device->info().compiles_source) GTEST_SKIP() << "the device compiles nothing for weir";
    Memory memory = device->allocate(sizeof(int));
    const weir_view x{memory.address, {sizeof(int), 1, 1}, {}, WEIR_ACCESS_READ_WRITE};
    std::vector<Job> given(5);
    for (std::size_t i = 0; i < given.size(); ++i) {
      given[i].source = &add;
      given[i].groups = {1, 1, 1};
      given[i].call.operands = &x;
      given[i].call.operand_count = 1;
      given[i].timed = i == 1;
      if (i > 0) given[i].waits = {&kNumbers[i - 1], 1};
    }
    open = false;
    given[3].source = nullptr;
    given[3].function = [](const weir_call*) {
      open.wait(false);
      return WEIR_STATUS_OK;
    };
    {
      ScriptedFeed jobs(given);
      std::vector<unsigned> cores(device->info().cores);
      std::iota(cores.begin(), cores.end(), 0u);
      const auto place = device->open_place({"p", cores}, jobs);
      for (std::size_t number = 1; number <= 3; ++number) jobs.wait_for(number);
      EXPECT_EQ(*static_cast<int*>(memory.address), 3);
      open = true;
      open.notify_all();
      expect_ends(jobs);
    }
    EXPECT_EQ(*static_cast<int*>(memory.address), 4);
    device->release(memory);
  }
}

/// More than the window holds, of which each waits for two.
TEST_F(OpenClBackendTest, MoreCommandsThanTheWindow_RunInDependenceOrder) {
  constexpr std::size_t kJobs = 3000;
  const KernelSource add{.entry = "add",
                         .text =
                             "WEIR_KERNEL(add, 1, 1, 1, WEIR_GLOBAL weir_u32* x,\n"
                             "            WEIR_GLOBAL weir_u32* y, WEIR_GLOBAL weir_u32* z) {\n"
                             "  WEIR_ITEMS_LAST { z[0] = 3 * x[0] + y[0] + 1; }\n"
                             "}\n",
                         .file = "add.wk",
                         .parameters = "ppp"};
  const auto device = open_device(*backend_, {});
  if (!device->info().compiles_source) GTEST_SKIP() << "the device compiles nothing for weir";
  Memory memory = device->allocate((kJobs + 1) * sizeof(std::uint32_t));
  auto* const x = static_cast<std::uint32_t*>(memory.address);
  std::vector<std::uint32_t> expected(kJobs + 1, 0);
  std::vector<std::array<std::uint64_t, 2>> waits(kJobs);
  std::vector<std::array<weir_view, 3>> views(kJobs);
  std::vector<Job> given(kJobs);
  for (std::size_t i = 0; i < kJobs; ++i) {
    // Number i + 1 makes x[i + 1] of what two earlier ones made; no job makes x[0].
    const std::size_t one = i == 0 ? 0 : i - std::min(i, i % 3), two = i / 2;
    waits[i] = {one, two};
    const std::size_t skipped = one == 0 ? 1 : 0;
    const std::size_t count = two == 0 ? 0 : (one == two ? 1 : 2 - skipped);
    given[i].waits = {waits[i].data() + skipped, count};
    const auto view = [&](std::size_t at) {
      return weir_view{x + at, {sizeof *x, 1, 1}, {}, WEIR_ACCESS_READ_WRITE};
    };
    views[i] = {view(one), view(two), view(i + 1)};
    given[i].source = &add;
    given[i].groups = {1, 1, 1};
    given[i].call.operands = views[i].data();
    given[i].call.operand_count = 3;
    given[i].timed = i % 7 == 0;
    expected[i + 1] = 3 * expected[one] + expected[two] + 1;
  }
  {
    ScriptedFeed jobs(given);
    std::vector<unsigned> cores(device->info().cores);
    std::iota(cores.begin(), cores.end(), 0u);
    const auto place = device->open_place({"p", cores}, jobs);
    expect_ends(jobs);
  }
  for (std::size_t i = 0; i <= kJobs; ++i) ASSERT_EQ(x[i], expected[i]) << i;
  device->release(memory);
}

/// A kernel for devices with a compiler; nothing is to run it.
const KernelSource kNothing{.entry = "nothing",
                            .text = "WEIR_KERNEL(nothing, 1, 1, 1) { WEIR_ITEMS_LAST {} }\n",
                            .file = "nothing.wk",
                            .parameters = ""};

Job call_of_nothing() {
  Job job;
  job.source = &kNothing;
  job.groups = {1, 1, 1};
  return job;
}

/// OpenCL's marker without a list would wait for all that is in the queue.
TEST_F(OpenClBackendTest, CallWithZeroGroups_WaitsOnlyForItsPredecessors) {
  const auto device = open_device(*backend_, {});
  if (!device->info().compiles_source) GTEST_SKIP() << "the device compiles nothing for weir";
  static std::atomic<bool> open{false};
  open = false;
  static constexpr std::uint64_t kFailing = 1;
  std::vector<Job> given(4);
  given[0].function = [](const weir_call*) { return WEIR_STATUS_KERNEL_ERROR; };
  given[1].function = [](const weir_call*) {
    open.wait(false);
    return WEIR_STATUS_OK;
  };
  given[2] = given[3] = call_of_nothing();
  given[2].groups = given[3].groups = {1, 0, 1};
  given[3].waits = {&kFailing, 1};
  ScriptedFeed jobs(given);
  const auto place = device->open_place({"p", {0}}, jobs);
  jobs.wait_for(3);
  open = true;
  open.notify_all();
  expect_ends(jobs,
              {WEIR_STATUS_KERNEL_ERROR, WEIR_STATUS_OK, WEIR_STATUS_OK, WEIR_STATUS_POISONED});
}

/// The driver gives up what waits for a command that failed, and makes no callback.
TEST_F(OpenClBackendTest, CommandFailsAfterEnqueueOfSuccessors_OnlySuccessorsArePoisoned) {
  const auto device = open_device(*backend_, {});
  if (!device->info().compiles_source) GTEST_SKIP() << "the device compiles nothing for weir";
  static std::atomic<unsigned> calls{0};
  static constexpr std::array<std::uint64_t, 3> kNumbers{1, 2, 3};
  for (const char* const spin : {"0", "1000000"}) {
    SCOPED_TRACE(spin);
    const EnvironmentVariable variable("WEIR_SPIN_US", spin);
    calls = 0;
    std::vector<Job> given(6);
    given[0] = call_of_nothing();
    given[4] = call_of_nothing();
    for (const std::size_t i : {1u, 2u, 3u, 5u}) {
      given[i].brief = i == 1 || i == 3;  // which makes them one command
      given[i].function = [](const weir_call*) {
        ++calls;
        return WEIR_STATUS_OK;
      };
    }
    given[1].waits = {&kNumbers[0], 1};
    given[2].waits = {&kNumbers[1], 1};
    given[4].waits = {&kNumbers[2], 1};
    constexpr weir_status kPoisoned = WEIR_STATUS_POISONED, kFine = WEIR_STATUS_OK;
    const unsigned before = failing_opencl_failures();
    failing_opencl_end_launch("clFlush", -5);
    ScriptedFeed jobs(given);
    std::vector<unsigned> cores(device->info().cores);
    std::iota(cores.begin(), cores.end(), 0u);
    const auto place = device->open_place({"p", cores}, jobs);
    expect_ends(jobs, {WEIR_STATUS_DEVICE_ERROR, kPoisoned, kPoisoned, kFine, kPoisoned, kFine});
    EXPECT_EQ(failing_opencl_failures(), before + 1);
    EXPECT_EQ(calls.load(), 2u);
  }
}

TEST_F(OpenClBackendTest, CommandThatRunsOutOfMemory_ReportsOutOfMemory) {
  const auto device = open_device(*backend_, {});
  if (!device->info().compiles_source) GTEST_SKIP() << "the device compiles nothing for weir";
  failing_opencl_end_launch("clFlush", -6);
  ScriptedFeed jobs({call_of_nothing()});
  const auto place = device->open_place({"p", {0}}, jobs);
  expect_ends(jobs, {WEIR_STATUS_OUT_OF_MEMORY});
}

/// PoCL never ends a command that waits for one that had failed before.
TEST_F(OpenClBackendTest, CommandFailsBeforeEnqueueOfSuccessors_OnlySuccessorsArePoisoned) {
  const auto device = open_device(*backend_, {});
  if (!device->info().compiles_source) GTEST_SKIP() << "the device compiles nothing for weir";
  static std::atomic<unsigned> calls{0};
  static constexpr std::uint64_t kFailing = 1;
  calls = 0;
  std::vector<Job> given(6);
  given[0] = given[1] = given[5] = call_of_nothing();
  for (const std::size_t i : {2u, 3u, 4u}) {
    given[i].brief = i > 2;  // which makes them one command
    given[i].function = [](const weir_call*) {
      ++calls;
      return WEIR_STATUS_OK;
    };
  }
  for (const std::size_t i : {2u, 3u, 5u}) given[i].waits = {&kFailing, 1};
  constexpr weir_status kPoisoned = WEIR_STATUS_POISONED, kFine = WEIR_STATUS_OK;
  const unsigned before = failing_opencl_failures();
  failing_opencl_end_launch("clEnqueueNDRangeKernel", -5);
  ScriptedFeed jobs(given);
  const auto place = device->open_place({"p", {0}}, jobs);
  expect_ends(jobs, {WEIR_STATUS_DEVICE_ERROR, kFine, kPoisoned, kPoisoned, kFine, kPoisoned});
  EXPECT_EQ(failing_opencl_failures(), before + 1);
  EXPECT_EQ(calls.load(), 1u);
}

/// Nor one for which that fails between the last look at it and the call. What shares a command
/// with it, or waits for that, runs all the same.
TEST_F(OpenClBackendTest, CommandFailsDuringEnqueueOfSuccessor_OnlySuccessorsArePoisoned) {
  const auto device = open_device(*backend_, {});
  if (!device->info().compiles_source) GTEST_SKIP() << "the device compiles nothing for weir";
  static std::atomic<unsigned> calls{0};
  static constexpr std::array<std::uint64_t, 4> kNumbers{1, 2, 3, 4};
  calls = 0;
  std::vector<Job> given(6);
  given[0] = given[3] = given[5] = call_of_nothing();
  for (const std::size_t i : {1u, 2u, 4u}) {
    given[i].brief = i < 3;  // which makes them one command
    given[i].function = [](const weir_call*) {
      ++calls;
      return WEIR_STATUS_OK;
    };
  }
  given[1].waits = {&kNumbers[0], 1};
  given[3].waits = {&kNumbers[2], 1};
  given[4].waits = {&kNumbers[3], 1};
  given[5].waits = {&kNumbers[1], 1};
  constexpr weir_status kPoisoned = WEIR_STATUS_POISONED, kFine = WEIR_STATUS_OK;
  const unsigned before = failing_opencl_failures();
  failing_opencl_end_launch("clEnqueueNativeKernel", -5);
  ScriptedFeed jobs(given);
  std::vector<unsigned> cores(device->info().cores);
  std::iota(cores.begin(), cores.end(), 0u);
  const auto place = device->open_place({"p", cores}, jobs);
  expect_ends(jobs, {WEIR_STATUS_DEVICE_ERROR, kPoisoned, kFine, kFine, kFine, kPoisoned});
  EXPECT_EQ(failing_opencl_failures(), before + 1);
  EXPECT_EQ(calls.load(), 2u);
}

/// Kernels of the driver do not look at each other.
TEST_F(OpenClBackendTest, KernelFailsDuringEnqueueOfSuccessor_OnlySuccessorsArePoisoned) {
  const auto device = open_device(*backend_, {});
  if (!device->info().compiles_source) GTEST_SKIP() << "the device compiles nothing for weir";
  static constexpr std::array<std::uint64_t, 2> kNumbers{1, 2};
  std::vector<Job> given(4, call_of_nothing());
  given[1].waits = {&kNumbers[0], 1};
  given[2].waits = {&kNumbers[1], 1};
  constexpr weir_status kPoisoned = WEIR_STATUS_POISONED;
  failing_opencl_end_launch("clEnqueueNDRangeKernel", -5);
  ScriptedFeed jobs(given);
  const auto place = device->open_place({"p", {0}}, jobs);
  expect_ends(jobs, {WEIR_STATUS_DEVICE_ERROR, kPoisoned, kPoisoned, WEIR_STATUS_OK});
}

/// The calls of a device share a queue: one that waited there for what fails would hold up the
/// others.
TEST_F(OpenClBackendTest, DiscreteDeviceCommandFailsDuringEnqueue_OnlySuccessorsArePoisoned) {
  const auto card = open_device(*backend_, {{"native", "off"}});
  static std::atomic<unsigned> calls{0};
  static constexpr std::array<std::uint64_t, 2> kNumbers{1, 2};
  calls = 0;
  std::vector<Job> given(5);
  given[0] = given[3] = call_of_nothing();
  for (const std::size_t i : {1u, 2u, 4u}) {
    given[i].function = [](const weir_call*) {
      ++calls;
      return WEIR_STATUS_OK;
    };
  }
  given[1].waits = {&kNumbers[0], 1};
  given[3].waits = {&kNumbers[1], 1};
  constexpr weir_status kPoisoned = WEIR_STATUS_POISONED, kFine = WEIR_STATUS_OK;
  const unsigned before = failing_opencl_failures();
  failing_opencl_end_launch("clEnqueueMarkerWithWaitList", -5);
  ScriptedFeed jobs(given);
  const auto place = card->open_place({"p", {0}}, jobs);
  expect_ends(jobs, {WEIR_STATUS_DEVICE_ERROR, kPoisoned, kFine, kPoisoned, kFine});
  EXPECT_EQ(failing_opencl_failures(), before + 1);
  EXPECT_EQ(calls.load(), 2u);
}

TEST_F(OpenClBackendTest, HeldCallsOnDiscreteDevice_SuccessorsRun) {
  const auto card = open_device(*backend_, {{"native", "off"}});
  static std::atomic<unsigned> calls{0};
  static constexpr std::array<std::uint64_t, 3> kNumbers{1, 2, 3};
  calls = 0;
  std::vector<Job> given(4);
  given[0] = given[2] = call_of_nothing();
  for (const std::size_t i : {1u, 3u}) {
    given[i].function = [](const weir_call*) {
      ++calls;
      return WEIR_STATUS_OK;
    };
  }
  for (std::size_t i = 1; i < given.size(); ++i) given[i].waits = {&kNumbers[i - 1], 1};
  ScriptedFeed jobs(given);
  const auto place = card->open_place({"p", {0}}, jobs);
  expect_ends(jobs);
  EXPECT_EQ(calls.load(), 2u);
}

/// A place that gets no callback for a command waits for it, and reports its outcome.
TEST_F(OpenClBackendTest, RefusedEventCallback_CommandStillSucceeds) {
  const auto device = open_device(*backend_, {});
  if (!device->info().compiles_source) GTEST_SKIP() << "the device compiles nothing for weir";
  const unsigned before = failing_opencl_failures();
  failing_opencl_end_launch("clSetEventCallback", 0);
  failing_opencl_fail("clSetEventCallback", -6);
  ScriptedFeed jobs({call_of_nothing()});
  const auto place = device->open_place({"p", {0}}, jobs);
  expect_ends(jobs);
  EXPECT_EQ(failing_opencl_failures(), before + 2);
}

TEST_F(OpenClBackendTest, RefusedEventCallback_CopyStillSucceeds) {
  const auto device = open_device(*backend_, {{"alias", "off"}});
  constexpr std::size_t kBytes = 64;
  constexpr Region kAll{.row = kBytes};
  std::array<std::byte, kBytes> bytes{};
  bytes.fill(std::byte{7});
  Memory memory = device->allocate(kBytes);
  auto* const there = static_cast<std::byte*>(memory.address);
  const unsigned before = failing_opencl_failures();
  failing_opencl_fail("clSetEventCallback", -6);
  Copies copies;
  device->copy({{nullptr, bytes.data(), kAll}, {device.get(), there, kAll}, &copies, nullptr});
  const Outcome outcome = copies.wait_for(1)[0].outcome;
  EXPECT_TRUE(outcome.ok()) << outcome.message;
  EXPECT_EQ(there[kBytes - 1], std::byte{7});
  EXPECT_EQ(failing_opencl_failures(), before + 1);
  device->release(memory);
}

TEST_F(OpenClBackendTest, BuildOutOfMemory_IsRetriedByTheNextCall) {
  const auto device = open_device(*backend_, {});
  if (!device->info().compiles_source) GTEST_SKIP() << "the device compiles nothing for weir";
  const EnvironmentVariable cache("XDG_CACHE_HOME", "/dev/null");  // there is no cached binary
  failing_opencl_fail("clBuildProgram", -6);
  ScriptedFeed jobs({call_of_nothing(), call_of_nothing()});
  const auto place = device->open_place({"p", {0}}, jobs);
  expect_ends(jobs, {WEIR_STATUS_OUT_OF_MEMORY});
}

TEST(OpenClSettings, InvalidValuesAndUnknownKeys_AreRejected) {
  const auto backend = make_opencl_backend();
  if (status_of([&] { open_device(*backend, {}); }) == WEIR_STATUS_UNAVAILABLE) {
    GTEST_SKIP() << "there is no OpenCL device";
  }
  for (const KeyValues& wrong : {KeyValues{{"device", "x"}},
                                 {{"alias", "yes"}},
                                 {{"native", "perhaps"}},
                                 {{"cores", "1"}}}) {
    EXPECT_EQ(status_of([&] { open_device(*backend, wrong); }), WEIR_STATUS_INVALID_ARGUMENT)
        << wrong[0].first;
  }
}

}  // namespace
}  // namespace weir::rt
