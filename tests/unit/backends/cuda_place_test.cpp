#include <algorithm>
#include <atomic>
#include <chrono>
#include <random>
#include <thread>

#include "cuda_rig.hpp"
#include "surroundings.hpp"

namespace weir::rt {
namespace {

using Waits = std::vector<std::uint64_t>;

std::int64_t& number_at(void* argument) { return **static_cast<std::int64_t**>(argument); }
std::int64_t number_in(void* argument) { return *static_cast<std::int64_t*>(argument); }

std::atomic<std::int64_t> ticks{0};
std::atomic<unsigned> met{0};
std::atomic<bool> open_gate{true};

/// x = 3 x + value
void run_mix(const std::uint32_t*, std::uint64_t, std::uint64_t, void* const* arguments) {
  std::int64_t& x = number_at(arguments[0]);
  x = static_cast<std::int64_t>(3 * static_cast<std::uint64_t>(x) +
                                static_cast<std::uint64_t>(number_in(arguments[1])));
}
/// x[0] = when it began, x[1] = when it ended
void run_stamp(const std::uint32_t*, std::uint64_t, std::uint64_t, void* const* arguments) {
  std::int64_t* const x = &number_at(arguments[0]);
  x[0] = ++ticks;
  x[1] = ++ticks;
}
/// Returns when as many have begun as its argument says.
void run_meet(const std::uint32_t*, std::uint64_t, std::uint64_t, void* const* arguments) {
  ++met;
  while (met < static_cast<unsigned>(number_in(arguments[0]))) std::this_thread::yield();
}
void run_gate(const std::uint32_t*, std::uint64_t, std::uint64_t, void* const*) {
  while (!open_gate) std::this_thread::yield();
}
/// Counts groups.
void run_count(const std::uint32_t*, std::uint64_t begin, std::uint64_t end,
               void* const* arguments) {
  number_at(arguments[0]) += static_cast<std::int64_t>(end - begin);
}

/// Counts groups that run at the same time.
void run_arrive(const std::uint32_t*, std::uint64_t begin, std::uint64_t end, void* const*) {
  met += static_cast<unsigned>(end - begin);
}

class CudaPlaceTest : public CudaTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    ticks = 0;
    met = 0;
    open_gate = true;
    fake_cuda_register_kernel("mix", "pl", run_mix);
    fake_cuda_register_kernel("stamp", "p", run_stamp);
    fake_cuda_register_kernel("meet", "l", run_meet);
    fake_cuda_register_kernel("gate", "", run_gate);
    fake_cuda_register_kernel("count", "p", run_count);
    fake_cuda_register_kernel("arrive", "", run_arrive);
  }
  void TearDown() override {
    for (Memory& memory : memories_) device().release(memory);
    CudaTest::TearDown();
  }

  std::int64_t* numbers(std::size_t count) {
    return static_cast<std::int64_t*>(memories_.emplace_back(device().allocate(8 * count)).address);
  }
  Job mix(std::int64_t* x, std::int64_t value) {
    if (mix_ == nullptr) mix_ = &source("mix", "pl");
    return job(*mix_, {x}, {weir_scalar_i64(value)});
  }
  Job meet(std::int64_t count) {
    if (meet_ == nullptr) meet_ = &source("meet", "l");
    return job(*meet_, {}, {weir_scalar_i64(count)});
  }
  Job gate() {
    if (gate_ == nullptr) gate_ = &source("gate", "");
    return job(*gate_, {});
  }

  std::vector<Memory> memories_;
  const KernelSource *mix_ = nullptr, *meet_ = nullptr, *gate_ = nullptr;
};

TEST_F(CudaPlaceTest, DependentChain_UsesOneStreamAndNoEventWaits) {
  constexpr int kLength = 1000;
  std::int64_t* const x = numbers(1);
  ScriptedFeed feed;
  std::uint64_t last = 0;
  std::int64_t expected = 0;
  for (int i = 0; i < kLength; ++i) {
    last = feed.add(mix(x, i), last == 0 ? Waits{} : Waits{last});
    expected = static_cast<std::int64_t>(3 * static_cast<std::uint64_t>(expected) +
                                         static_cast<std::uint64_t>(i));
  }
  const auto driver = place(feed);
  const unsigned long events = fake_cuda_calls("cuEventCreate");
  for (const auto& [number, ending] : feed.wait()) {
    EXPECT_TRUE(ending.outcome.ok()) << ending.outcome.message;
    EXPECT_EQ(ending.worker, 0u);
  }
  EXPECT_EQ(*x, expected);
  EXPECT_EQ(fake_cuda_calls("cuLaunchKernel"), static_cast<unsigned long>(kLength));
  EXPECT_EQ(fake_cuda_calls("cuStreamWaitEvent"), 0u);
  EXPECT_LE(fake_cuda_calls("cuEventRecord"), 2u) << "at most where the feed ran dry";
  EXPECT_LE(fake_cuda_calls("cuStreamWriteValue64"),
            kLength / 16 + fake_cuda_calls("cuStreamQuery") + 4u);
  EXPECT_EQ(fake_cuda_calls("cuEventCreate"), events);
  EXPECT_LE(fake_cuda_depth(), 600u) << "the driver would block";
}

/// A chain whose jobs come one by one: the device tells of the first, and then of several at once.
TEST_F(CudaPlaceTest, BusyDevice_CompletionsAreSignalledInBatches) {
  constexpr unsigned kJobs = 64;
  open_gate = false;
  const EnvironmentVariable spin("WEIR_SPIN_US", "1000000");
  std::int64_t* const x = numbers(1);
  ScriptedFeed feed;
  const auto driver = place(feed);
  auto last = feed.add(gate());
  for (unsigned i = 0; i < kJobs; ++i) {
    driver->wake();
    while (feed.has_work()) std::this_thread::yield();
    last = feed.add(mix(x, 1), {last});
  }
  open_gate = true;
  driver->wake();
  for (const auto& [number, ending] : feed.wait()) EXPECT_TRUE(ending.outcome.ok());
  EXPECT_LE(fake_cuda_calls("cuStreamWriteValue64"),
            kJobs / 16 + 4 + fake_cuda_calls("cuStreamQuery"))
      << "except where the thread was to sleep";
}

TEST_F(CudaPlaceTest, SuccessorsOfOneJob_RunConcurrently) {
  std::int64_t* const x = numbers(1);
  ScriptedFeed feed;
  const auto root = feed.add(mix(x, 1));
  Waits leaves;
  for (int i = 0; i < 4; ++i) leaves.push_back(feed.add(meet(4), {root}));
  feed.add(mix(x, 5), leaves);
  const auto driver = place(feed);
  const auto endings = feed.wait();
  EXPECT_EQ(*x, 8);
  std::set<unsigned> streams;
  for (const std::uint64_t leaf : leaves) streams.insert(endings.at(leaf).worker);
  EXPECT_EQ(streams.size(), 4u);
  EXPECT_LE(fake_cuda_calls("cuStreamWaitEvent"), 6u) << "three to fork, three to join";
}

/// A follower that comes while its predecessor runs with another one after it.
TEST_F(CudaPlaceTest, SuccessorSubmittedLate_WaitsOnlyForItsPredecessor) {
  open_gate = false;
  ScriptedFeed feed;
  const auto driver = place(feed);
  const auto ask = [&](Job job, Waits waits) {
    const auto number = feed.add(job, std::move(waits));
    driver->wake();
    while (feed.has_work()) std::this_thread::yield();
    return number;
  };
  const auto root = ask(gate(), {});
  ask(meet(2), {root});
  ask(meet(2), {root});
  open_gate = true;
  for (const auto& [number, ending] : feed.wait()) EXPECT_TRUE(ending.outcome.ok());
}

TEST_F(CudaPlaceTest, RandomDependences_HoldInExecutionAndCompletion) {
  constexpr std::size_t kJobs = 3000;
  std::mt19937 random(7);
  std::int64_t* const stamps = numbers(2 * kJobs);
  const KernelSource& stamp = source("stamp", "p");
  ScriptedFeed feed;
  std::vector<Waits> all;
  for (std::size_t i = 0; i < kJobs; ++i) {
    Waits waits;
    const std::size_t count = random() % 4;
    for (std::size_t k = 0; k < count && i > 0; ++k) {
      waits.push_back(i - random() % std::min<std::size_t>(i, k == 0 ? 3 : 40));
    }
    std::sort(waits.begin(), waits.end());
    all.push_back(waits);
    Job made = job(stamp, {stamps + 2 * i});
    made.timed = i % 7 == 0;
    feed.add(made, std::move(waits));
  }
  const auto driver = place(feed);
  const auto endings = feed.wait();
  for (std::size_t i = 0; i < kJobs; ++i) {
    ASSERT_TRUE(endings.at(i + 1).outcome.ok()) << endings.at(i + 1).outcome.message;
    for (const std::uint64_t before : all[i]) {
      ASSERT_LT(stamps[2 * (before - 1) + 1], stamps[2 * i]) << before << " before " << i + 1;
    }
  }
  std::vector<std::size_t> position(kJobs + 1);
  const auto order = feed.order();
  for (std::size_t i = 0; i < kJobs; ++i) position[order[i]] = i;
  for (std::size_t i = 0; i < kJobs; ++i) {
    for (const std::uint64_t before : all[i]) ASSERT_LT(position[before], position[i + 1]);
  }
  EXPECT_LE(fake_cuda_depth(), 600u);
}

TEST_F(CudaPlaceTest, TimedKernel_RunsAllGroupsAndReportsItsTimes) {
  std::int64_t* const x = numbers(1);
  ScriptedFeed feed;
  Job counted = job(source("count", "p"), {x}, {}, 6);
  counted.timed = true;
  const std::int64_t before = device().now_ns();
  feed.add(counted);
  const auto driver = place(feed);
  const auto ending = feed.wait().at(1);
  EXPECT_EQ(*x, 6);
  EXPECT_LE(before, ending.job.started_ns);
  EXPECT_LE(ending.job.started_ns, ending.job.ended_ns);
  EXPECT_LE(ending.job.ended_ns, device().now_ns());
}

TEST_F(CudaPlaceTest, CudaFunction_GetsTheQueueAndItsFailureIsReported) {
  ScriptedFeed feed;
  static void* queue;
  queue = nullptr;
  Job made;
  made.function = [](const weir_call* call) {
    queue = call->queue;
    return WEIR_STATUS_OK;
  };
  const auto first = feed.add(made);
  made.function = [](const weir_call*) { return WEIR_STATUS_UNSUPPORTED; };
  const auto second = feed.add(made, {first});
  made.function = nullptr;
  feed.add(made);
  const auto driver = place(feed);
  const auto endings = feed.wait();
  EXPECT_TRUE(endings.at(first).outcome.ok());
  EXPECT_NE(queue, nullptr);
  EXPECT_EQ(endings.at(second).outcome.message, "the kernel returned unsupported");
  EXPECT_EQ(endings.at(3).outcome.message, "it has no code for cuda");
}

// Copies.

TEST_F(CudaPlaceTest, CopiesAndKernels_RunInDependenceOrder) {
  std::vector<std::int64_t> out{1, 2, 3}, in(3);
  std::int64_t* const x = numbers(3);
  const Region all{.offset = 0, .row = 24};
  ScriptedFeed feed;
  const auto to = feed.add(copy(here(out.data(), all), there(x, all)));
  const auto mixed = feed.add(mix(x + 1, 5), {to});
  feed.add(copy(there(x, all), here(in.data(), all)), {mixed});
  const auto driver = place(feed);
  for (const auto& [number, ending] : feed.wait()) {
    EXPECT_TRUE(ending.outcome.ok()) << ending.outcome.message;
  }
  EXPECT_EQ(in, (std::vector<std::int64_t>{1, 11, 3}));
}

TEST_F(CudaPlaceTest, CopiesOfManyShapes_RoundTripExactly) {
  struct Shape {
    std::uint64_t row;
    std::uint32_t rows;
    std::uint16_t planes;
    std::uint64_t pitch, other_pitch, plane_gap;
  };
  constexpr std::uint64_t kMiB = 1 << 20;
  const Shape shapes[] = {{7, 1, 1, 7, 7, 0},
                          {16, 5, 1, 16, 24, 0},
                          {16, 5, 3, 20, 16, 9},
                          {8, 4, 3, 8, 8, 0},
                          {3, 1, 6, 3, 3, 5},
                          {5 * kMiB + 3, 2, 1, 5 * kMiB + 3, 6 * kMiB, 1},
                          {1000, 9000, 1, 1000, 1008, 0},
                          {64, 3000, 2, 80, 64, 16}};
  for (const Shape& shape : shapes) {
    const auto region = [&](std::uint64_t pitch) {
      return Region{.offset = 5,
                    .row = shape.row,
                    .row_stride = shape.rows > 1 ? pitch : 0,
                    .plane_stride = shape.planes > 1 ? pitch * shape.rows + shape.plane_gap : 0,
                    .rows = shape.rows,
                    .planes = shape.planes};
    };
    const Region mine = region(shape.pitch), its = region(shape.other_pitch);
    std::vector<char> out(mine.end() + 3), in(out.size(), 1), wanted(out.size(), 1);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<char>(i * 31 + i / 256);
    for (std::uint64_t plane = 0; plane < mine.planes; ++plane) {
      for (std::uint64_t row = 0; row < mine.rows; ++row) {
        const std::uint64_t at = mine.offset + plane * mine.plane_stride + row * mine.row_stride;
        std::copy_n(out.begin() + static_cast<std::ptrdiff_t>(at), mine.row,
                    wanted.begin() + static_cast<std::ptrdiff_t>(at));
      }
    }
    Memory memory = device().allocate(its.end());
    {
      ScriptedFeed feed;
      const auto to = feed.add(copy(here(out.data(), mine), there(memory.address, its)));
      feed.add(copy(there(memory.address, its), here(in.data(), mine)), {to});
      const auto driver = place(feed);
      for (const auto& [number, ending] : feed.wait()) {
        EXPECT_TRUE(ending.outcome.ok()) << ending.outcome.message;
      }
    }
    EXPECT_TRUE(in == wanted) << shape.row << " x " << shape.rows << " x " << shape.planes;
    device().release(memory);
  }
}

/// Allocation succeeds while the GPU is busy; the memory is zero for its first user.
TEST_F(CudaPlaceTest, AllocationWhileDeviceIsBusy_DoesNotBlockAndIsZeroed) {
  std::int64_t seen = 0;
  const Region all{.offset = 0, .row = sizeof seen};
  ScriptedFeed feed;
  const auto driver = place(feed);
  fake_cuda_hold(1);
  std::int64_t* const x = numbers(1);
  const auto mixed = feed.add(mix(x, 7));
  feed.add(copy(there(x, all), here(&seen, all)), {mixed});
  driver->wake();
  while (feed.has_work()) std::this_thread::yield();
  fake_cuda_hold(0);
  for (const auto& [number, ending] : feed.wait()) EXPECT_TRUE(ending.outcome.ok());
  EXPECT_EQ(seen, 7);
  EXPECT_GE(fake_cuda_calls("cuStreamWaitEvent"), 2u) << "in each of the two streams";
}

TEST_F(CudaPlaceTest, MoreCopiesThanStagingMemory_AllArriveIntact) {
  constexpr std::size_t kCopies = 300, kBytes = 100'000;
  std::vector<std::vector<char>> out, in(kCopies, std::vector<char>(kBytes));
  std::vector<Memory> there_memory;
  const Region all{.offset = 0, .row = kBytes};
  ScriptedFeed feed;
  for (std::size_t i = 0; i < kCopies; ++i) {
    out.emplace_back(kBytes, static_cast<char>(i));
    there_memory.push_back(device().allocate(kBytes));
    const auto to = feed.add(copy(here(out[i].data(), all), there(there_memory[i].address, all)));
    feed.add(copy(there(there_memory[i].address, all), here(in[i].data(), all)), {to});
  }
  {
    const auto driver = place(feed);
    feed.wait();
  }
  EXPECT_TRUE(in == out);
  for (Memory& memory : there_memory) device().release(memory);
}

TEST_F(CudaPlaceTest, SmallCopies_AreCoalesced) {
  constexpr std::size_t kCopies = 64, kBytes = 4096;
  std::vector<char> out(kCopies * kBytes), in(out.size());
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<char>(i * 31 + i / 256);
  Memory memory = device().allocate(out.size());
  ScriptedFeed feed;
  const auto piece = [](std::size_t i) { return Region{.offset = i * kBytes, .row = kBytes}; };
  for (std::size_t i = 0; i < kCopies; ++i) {
    feed.add(copy(here(out.data(), piece(i)), there(memory.address, piece(i))));
  }
  for (std::size_t i = 0; i < kCopies; ++i) {
    feed.add(copy(there(memory.address, piece(i)), here(in.data(), piece(i))), {i + 1});
  }
  {
    const auto driver = place(feed);
    for (const auto& [number, ending] : feed.wait()) EXPECT_TRUE(ending.outcome.ok());
  }
  EXPECT_TRUE(in == out);
  EXPECT_LE(fake_cuda_calls("cuLaunchHostFunc"),
            kCopies / 2 + 12 * fake_cuda_calls("cuStreamQuery"));
  device().release(memory);
}

/// 200 pieces in each direction.
constexpr Region kPlanes{
    .offset = 3, .row = 4, .row_stride = 8, .plane_stride = 20, .rows = 2, .planes = 200};

/// The driver blocks a thread that gives it thousands of commands, so it gets a copy in parts.
TEST_F(CudaPlaceTest, CopyOfManyRows_DoesNotBlockIndependentKernels) {
  std::int64_t* const x = numbers(600);
  std::int64_t* const y = numbers(2);
  std::vector<char> out(kPlanes.end()), in(out.size(), 1), wanted(in);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<char>(i * 31 + i / 256);
  for (std::size_t plane = 0; plane < kPlanes.planes; ++plane) {
    for (std::size_t row = 0; row < kPlanes.rows; ++row) {
      const std::size_t at = 3 + 20 * plane + 8 * row;
      std::copy_n(out.data() + at, kPlanes.row, wanted.data() + at);
    }
  }
  std::int64_t number = 7;
  const Region one{.offset = 0, .row = sizeof number};
  open_gate = false;
  ScriptedFeed feed;
  const auto first = feed.add(gate());
  const auto to = feed.add(copy(here(out.data(), kPlanes), there(x, kPlanes)), {first});
  const auto beside = feed.add(copy(here(&number, one), there(y, one)));
  const auto mixed = feed.add(mix(y, 5), {beside});
  const auto back = feed.add(copy(there(x, kPlanes), here(in.data(), kPlanes)), {to});
  feed.add(mix(x, 1), {mixed, back});
  const auto alone = feed.add(mix(y + 1, 9));
  const auto driver = place(feed);
  while (feed.order().empty()) std::this_thread::yield();
  EXPECT_EQ(feed.order(), Waits{alone}) << "while the copy waits for the gate";
  open_gate = true;
  for (const auto& [ended, ending] : feed.wait()) {
    EXPECT_TRUE(ending.outcome.ok()) << ended << ": " << ending.outcome.message;
  }
  EXPECT_TRUE(in == wanted);
  EXPECT_EQ(y[0], 3 * 7 + 5);
  EXPECT_EQ(y[1], 9);
  EXPECT_LE(fake_cuda_depth(), 60u);
}

// Failures.

TEST_F(CudaPlaceTest, CopyFailsMidway_SuccessorsArePoisonedOrDeviceIsLost) {
  std::vector<char> bytes(kPlanes.end());
  for (const int code : {1, 719}) {
    SCOPED_TRACE(code);
    Memory memory = device().allocate(bytes.size());
    auto* const x = static_cast<std::int64_t*>(memory.address);
    ScriptedFeed feed;
    const auto to = feed.add(copy(here(bytes.data(), kPlanes), there(x, kPlanes)));
    const auto back = feed.add(copy(there(x, kPlanes), here(bytes.data(), kPlanes)), {to});
    feed.add(mix(x, 1), {back});
    fake_cuda_fail("cuMemcpy2DAsync", 100, code);
    {
      const auto driver = place(feed);
      const auto endings = feed.wait();
      EXPECT_EQ(endings.at(to).outcome.status, WEIR_STATUS_DEVICE_ERROR);
      for (const std::uint64_t later : {back, back + 1}) {
        EXPECT_EQ(endings.at(later).outcome.status,
                  code == 1 ? WEIR_STATUS_POISONED : WEIR_STATUS_DEVICE_ERROR);
      }
    }
    device().release(memory);
    if (code == 719) device_.reset();
    fake_cuda_reset();
  }
}

/// Of small copies that are packed together one fails: what waits for it does not run.
TEST_F(CudaPlaceTest, OneCoalescedCopyFails_PoisonsOnlyItsSuccessors) {
  constexpr std::size_t kCopies = 8;
  std::vector<std::int64_t> out(kCopies, 5);
  std::int64_t* const x = numbers(kCopies);
  const Region one{.offset = 0, .row = 8};
  for (const unsigned long failing : {1ul, 3ul, kCopies}) {
    SCOPED_TRACE(failing);
    std::fill_n(x, kCopies, 0);
    ScriptedFeed feed;
    for (std::size_t i = 0; i < kCopies; ++i) feed.add(copy(here(&out[i], one), there(x + i, one)));
    for (std::size_t i = kCopies; i-- > 0;) feed.add(mix(x + i, 1), {i + 1});
    fake_cuda_fail("cuMemcpyHtoDAsync", failing, 1);
    const auto driver = place(feed);
    const auto endings = feed.wait();
    int failed = 0;
    for (std::size_t i = 0; i < kCopies; ++i) {
      const bool ok = endings.at(i + 1).outcome.ok();
      failed += !ok;
      EXPECT_EQ(endings.at(2 * kCopies - i).outcome.status,
                ok ? WEIR_STATUS_OK : WEIR_STATUS_POISONED);
      EXPECT_EQ(x[i], ok ? 16 : 0) << i;
    }
    EXPECT_EQ(failed, 1);
  }
}

TEST_F(CudaPlaceTest, KernelThatDoesNotCompile_NamesLineAndPoisonsSuccessors) {
  std::int64_t* const x = numbers(1);
  ScriptedFeed feed;
  const KernelSource& wrong = source("wrong", "p", "\n#error no such thing\n");
  const auto bad = feed.add(job(wrong, {x}));
  const auto again = feed.add(job(wrong, {x}));
  const auto poisoned = feed.add(mix(x, 1), {bad});
  const auto after = feed.add(mix(x, 1), {poisoned});
  feed.add(mix(x, 7));
  const auto driver = place(feed);
  const auto endings = feed.wait();
  EXPECT_EQ(endings.at(bad).outcome.status, WEIR_STATUS_KERNEL_ERROR);
  EXPECT_EQ(endings.at(bad).outcome.message,
            "wrong.cu does not compile for CUDA: wrong.cu(3): error: #error no such thing");
  EXPECT_EQ(endings.at(again).outcome.message, endings.at(bad).outcome.message);
  EXPECT_EQ(fake_cuda_calls("nvrtcCompileProgram"), 2u) << "each text once";
  EXPECT_EQ(endings.at(poisoned).outcome.status, WEIR_STATUS_POISONED);
  EXPECT_EQ(endings.at(after).outcome.status, WEIR_STATUS_POISONED);
  EXPECT_EQ(*x, 7) << "what is poisoned did not run";
  feed.add(mix(x, 0), {after});
  driver->wake();
  EXPECT_EQ(feed.wait().at(6).outcome.status, WEIR_STATUS_POISONED) << "also when it is long over";
}

TEST_F(CudaPlaceTest, CodeLoadOutOfMemory_IsRetriedByTheNextJob) {
  std::int64_t* const x = numbers(1);
  ScriptedFeed feed;
  feed.add(mix(x, 7));
  feed.add(mix(x, 7));
  fake_cuda_fail("cuLibraryLoadData", 1, 2);
  const auto driver = place(feed);
  const auto endings = feed.wait();
  EXPECT_EQ(endings.at(1).outcome.status, WEIR_STATUS_OUT_OF_MEMORY)
      << endings.at(1).outcome.message;
  EXPECT_TRUE(endings.at(2).outcome.ok()) << endings.at(2).outcome.message;
  EXPECT_EQ(*x, 7);
}

/// As a driver does that is older than the compiler.
TEST_F(CudaPlaceTest, DriverRejectsCode_ErrorHintsAtDriverVersion) {
  ScriptedFeed feed;
  feed.add(mix(numbers(1), 7));
  fake_cuda_fail("cuLibraryLoadData", 1, 200);
  const auto driver = place(feed);
  const auto endings = feed.wait();
  const Outcome& outcome = endings.at(1).outcome;
  EXPECT_EQ(outcome.status, WEIR_STATUS_DEVICE_ERROR);
  EXPECT_NE(outcome.message.find("CUDA error 200; a driver"), std::string::npos) << outcome.message;
}

TEST_F(CudaPlaceTest, ReopenedDevice_ReusesCachedCode) {
  std::int64_t* const x = numbers(1);
  for (int run = 0; run < 2; ++run) {
    for (Memory& memory : std::exchange(memories_, {})) device().release(memory);
    device_.reset();
    std::int64_t* const y = numbers(1);
    ScriptedFeed feed;
    feed.add(mix(y, 4));
    const auto driver = place(feed);
    EXPECT_TRUE(feed.wait().at(1).outcome.ok());
    EXPECT_EQ(*y, 4);
    EXPECT_EQ(fake_cuda_calls("nvrtcCompileProgram"), 1u);
  }
  (void)x;
}

TEST_F(CudaPlaceTest, KernelThatCannotLaunch_ErrorNamesTheCause) {
  std::int64_t* const x = numbers(1);
  ScriptedFeed feed;
  KernelSource& large = sources_.emplace_back(source("mix", "pl"));
  large.group = {64, 32, 1};
  feed.add(job(large, {x}, {weir_scalar_i64(1)}));
  feed.add(job(source("absent", "p"), {x}));
  fake_cuda_fail("cuLaunchKernel", 1, 701);
  feed.add(mix(x, 1));
  const auto driver = place(feed);
  const auto endings = feed.wait();
  EXPECT_EQ(endings.at(1).outcome.message,
            "kernel 'mix' of mix.cu has groups of 64 x 32 x 1 items, and domain 'test' runs at "
            "most 1024 of it in one");
  EXPECT_EQ(
      endings.at(2).outcome.message,
      "domain 'test' finds no kernel 'absent' in absent.cu: CUDA_ERROR_NOT_FOUND (500: as the "
      "test wants it)");
  EXPECT_EQ(endings.at(3).outcome.message,
            "domain 'test': mix: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES (701: as the test wants it)");
}

TEST_F(CudaPlaceTest, LargeSharedMemory_IsRequestedPerKernelUpToTheLimit) {
  std::int64_t* const x = numbers(1);
  ScriptedFeed feed;
  feed.add(job(source("mix", "pl", "WEIR_LARGE_BYTES(mix, 98304);\n"), {x}, {weir_scalar_i64(1)}));
  const auto driver = place(feed);
  EXPECT_TRUE(feed.wait().at(1).outcome.ok()) << feed.wait().at(1).outcome.message;
  EXPECT_EQ(fake_cuda_last_shared(), 98304u);
  feed.add(job(source("count", "p", "WEIR_LARGE_BYTES(mix, 98304);\n"), {x}));
  driver->wake();
  EXPECT_TRUE(feed.wait().at(2).outcome.ok());
  EXPECT_EQ(fake_cuda_last_shared(), 0u) << "that is another kernel's";
  feed.add(job(source("mix", "pl", "WEIR_LARGE_BYTES(mix, 300032);\n"), {x}, {weir_scalar_i64(1)}));
  driver->wake();
  const Outcome outcome = feed.wait().at(3).outcome;
  EXPECT_EQ(outcome.status, WEIR_STATUS_UNSUPPORTED);
  EXPECT_TRUE(outcome.message.starts_with(
      "kernel 'mix' of mix.cu has a WEIR_LARGE() of 300032 bytes, and domain 'test' has 232448 of "
      "shared memory for a group"))
      << outcome.message;
}

TEST_F(CudaPlaceTest, LostDevice_FailsJobsOfAllPlacesWithOneMessage) {
  const EnvironmentVariable spin("WEIR_SPIN_US", "0");
  for (const int code : {700, 719, 214}) {
    SCOPED_TRACE(code);
    for (Memory& memory : std::exchange(memories_, {})) device().release(memory);
    device_.reset();
    fake_cuda_reset();
    std::int64_t* const x = numbers(2);
    ScriptedFeed feed, other;
    const auto driver = place(feed, {0, 1}), beside = place(other, {2, 3});
    std::uint64_t last = 0;
    fake_cuda_break_launch(50, code);
    for (int i = 0; i < 600; ++i) last = feed.add(mix(x, i), last == 0 ? Waits{} : Waits{last});
    driver->wake();
    const auto endings = feed.wait();
    const std::string message = endings.at(600).outcome.message;
    EXPECT_TRUE(message.starts_with("domain 'test' is lost: CUDA_ERROR_")) << message;
    EXPECT_NE(message.find(" while 'mix' was in flight"), std::string::npos) << message;
    for (std::uint64_t i = 50; i <= 600; ++i) {
      EXPECT_EQ(endings.at(i).outcome.status, WEIR_STATUS_DEVICE_ERROR) << i;
      EXPECT_EQ(endings.at(i).outcome.message, message);
    }
    other.add(mix(x + 1, 1));
    beside->wake();
    EXPECT_EQ(other.wait().at(1).outcome.message, message);
    feed.add(mix(x, 1));
    driver->wake();
    EXPECT_EQ(feed.wait().at(601).outcome.message, message);
  }
}

/// Every call of the driver fails once: nothing hangs, and what is not concerned goes on.
TEST_F(CudaPlaceTest, AnyFailedDriverCall_DoesNotHang) {
  const char* const calls[] = {"cuEventRecord",     "cuStreamWaitEvent",    "cuLaunchKernel",
                               "cuLaunchHostFunc",  "cuStreamWriteValue64", "cuMemcpyHtoDAsync",
                               "cuMemcpyDtoHAsync", "cuStreamQuery",        "cuPointerGetAttribute",
                               "cuEventCreate",     "cuEventElapsedTime",   "cuEventSynchronize"};
  std::vector<char> bytes(std::size_t{5} << 20);
  const Region all{.offset = 0, .row = bytes.size()};
  for (const int code : {1, 2, 719}) {
    for (const char* call : calls) {
      for (const unsigned long n : {1ul, 3ul}) {
        SCOPED_TRACE(testing::Message() << call << " number " << n << " gives " << code);
        device();
        Memory memory = device().allocate(bytes.size());
        auto* const x = static_cast<std::int64_t*>(memory.address);
        ScriptedFeed feed;
        {
          const auto driver = place(feed);
          fake_cuda_fail(call, n, code);
          const auto to = feed.add(copy(here(bytes.data(), all), there(x, all)));
          Waits leaves;
          for (int i = 0; i < 30; ++i) {
            Job made = mix(x + i, i);
            made.timed = i % 2 == 0;
            leaves.push_back(feed.add(made, {to}));
          }
          const auto back = feed.add(copy(there(x, all), here(bytes.data(), all)), leaves);
          for (std::uint64_t i = 0; i < 4; ++i) {
            const Region small{.offset = 100 * i, .row = 100};
            const auto up = feed.add(copy(here(bytes.data(), small), there(x, small)), {back});
            if (i % 2 == 0) feed.add(copy(there(x, small), here(bytes.data(), small)), {up});
          }
          driver->wake();
          EXPECT_EQ(feed.wait().size(), 38u);
        }
        device().release(memory);
        if (code == 719) device_.reset();
        fake_cuda_reset();
      }
    }
  }
}

// Places.

TEST_F(CudaPlaceTest, Places_RunConcurrentlyOnTheirOwnMultiprocessors) {
  ScriptedFeed left, right, all;
  const auto one = place(left, {0, 2}), two = place(right, {3}), three = place(all);
  left.add(meet(2));
  right.add(meet(2));
  one->wake();
  two->wake();
  left.wait();
  right.wait();
  EXPECT_EQ(fake_cuda_most_at_once(), 2u);
  std::int64_t* const x = numbers(1);
  const auto groups_of = [&](ScriptedFeed& feed, PlaceDriver& driver) {
    feed.add(mix(x, 1));
    driver.wake();
    feed.wait();
    return fake_cuda_last_groups();
  };
  EXPECT_EQ(groups_of(left, *one), 0b0101u);
  EXPECT_EQ(groups_of(right, *two), 0b1000u);
  EXPECT_EQ(groups_of(all, *three), 0b1111u);
}

TEST_F(CudaPlaceTest, ResidentKernelsHaveNoMoreGroupsThanFit) {
  ScriptedFeed half, all;
  const auto two = place(half, {0, 2}), four = place(all);
  KernelSource& stay = sources_.emplace_back(source("arrive", ""));
  stay.resident = true;
  const auto groups_of = [&](ScriptedFeed& feed, PlaceDriver& driver, unsigned wanted) {
    met = 0;
    const std::uint64_t number = feed.add(job(stay, {}, {}, wanted));
    driver.wake();
    const Outcome outcome = feed.wait().at(number).outcome;
    EXPECT_TRUE(outcome.ok()) << outcome.message;
    return met.load();
  };
  EXPECT_EQ(groups_of(half, *two, 3), 3u);
  EXPECT_EQ(groups_of(half, *two, 100), 16u);
  EXPECT_EQ(groups_of(all, *four, 100), 32u);
}

TEST_F(CudaPlaceTest, PlaceClosedUnderLoad_DoesNotHang) {
  std::int64_t* const x = numbers(500);
  for (int round = 0; round < 20; ++round) {
    ScriptedFeed feed;
    for (int i = 0; i < 500; ++i) feed.add(mix(x + i, i));
    const auto driver = place(feed, {static_cast<unsigned>(round) % 4});
    if (round % 2 == 0) feed.wait();
  }
}

TEST_F(CudaPlaceTest, SleepingPlace_WakesForEachJobWithoutNewEvents) {
  const EnvironmentVariable spin("WEIR_SPIN_US", "0");
  std::int64_t* const x = numbers(1);
  ScriptedFeed feed;
  const auto driver = place(feed);
  for (int i = 0; i < 300; ++i) {
    feed.add(mix(x, 1));
    driver->wake();
    feed.wait();
  }
  const unsigned long events = fake_cuda_calls("cuEventCreate");
  for (int i = 0; i < 300; ++i) {
    const auto first = feed.add(mix(x, 1));
    feed.add(meet(0), {first});
    driver->wake();
    feed.wait();
  }
  EXPECT_EQ(fake_cuda_calls("cuEventCreate"), events) << "none is made in steady state";
}

}  // namespace
}  // namespace weir::rt
