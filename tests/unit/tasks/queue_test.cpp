// Task queues through the public interface.
#include <weir/queue.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "gate.hpp"
#include "surroundings.hpp"
#include "thrown.hpp"

namespace weir {
namespace {

constexpr const char* kHostAndCard = "host:cores=1,sim:cores=1,gbps=1000,latency_us=0";
constexpr const char* kCard = "sim:cores=1,gbps=1000,latency_us=0";
constexpr std::uint64_t kOnHost = 1, kOnCard = 2;  // domains of kHostAndCard

Queue make_queue(const Runtime& runtime, const char* policy = nullptr) {
  weir_queue_options options = WEIR_QUEUE_OPTIONS_INIT;
  options.name = "q";
  options.policy = policy;
  options.no_models = true;
  return runtime.queue(options);
}

/// "STATUS: message" of an event that is complete.
std::string end_of(const Event& event) {
  const weir_event_info info = event.info();
  EXPECT_TRUE(info.complete);
  if (info.status == WEIR_STATUS_OK) return "OK";
  return weir_status_name(info.status) + std::string(": ") + info.message;
}

testing::AssertionResult contains(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "'" << text << "' lacks '" << part << "'";
}

/// Keeps tasks inside their kernel for as long as the test wants. Outlives the runtime.
class Held {
 public:
  ~Held() { open(); }
  Kernel kernel(const Runtime& runtime, const char* name = "held") {
    return runtime.kernel(name, [this](const Call&) {
      started_ = true;
      started_.notify_all();
      opened_.wait(false);
    });
  }
  void await_start() { started_.wait(false); }
  void open() {
    opened_ = true;
    opened_.notify_all();
  }

 private:
  std::atomic<bool> started_{false}, opened_{false};
};

Kernel make_add(const Runtime& runtime) {
  return runtime.kernel("add", [](const Call& call) {
    for (int& value : call.span<int>(0)) value += call.scalar<int>(0);
  });
}

/// y = 3 y + x
Kernel make_mix(const Runtime& runtime) {
  return runtime.kernel("mix", [](const Call& call) {
    const auto x = call.span<std::uint32_t>(0);
    const auto y = call.span<std::uint32_t>(1);
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = 3 * y[i] + x[i];
  });
}

/// Submits a fixed program of many tasks over equal tiles, and compares.
void expect_sequential(const Runtime& runtime, const Queue& queue, std::size_t tiles,
                       std::size_t tile) {
  std::vector<std::uint32_t> values(tiles * tile);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint32_t>(i);
  std::vector<std::uint32_t> expected = values;
  const Buffer buffer = runtime.wrap(values, "values");
  const Kernel mix = make_mix(runtime);
  std::uint32_t random = 1;
  for (int i = 0; i < 400; ++i) {
    random = random * 1664525u + 1013904223u;
    const std::size_t from = (random >> 8) % tiles, to = (from + 1 + (random >> 20) % 3) % tiles;
    queue.submit(mix, {read(buffer.elements<std::uint32_t>(from * tile, tile)),
                       readwrite(buffer.elements<std::uint32_t>(to * tile, tile))});
    for (std::size_t k = 0; k < tile; ++k) {
      expected[to * tile + k] = 3 * expected[to * tile + k] + expected[from * tile + k];
    }
  }
  queue.synchronize();
  EXPECT_EQ(values, expected);
}

// ---- Results -----------------------------------------------------------------------------------

TEST(Queues, EveryPolicyGivesTheSequentialResult) {
  for (const char* policy : {"finish", "steal", "locality", "static", "round-robin"}) {
    for (const char* domains :
         {"host:cores=1", kCard, kHostAndCard,
          "sim:cores=1,clock=virtual,gbps=6,sim:cores=1,clock=virtual,gbps=6"}) {
      SCOPED_TRACE(std::string(policy) + " on " + domains);
      const Runtime runtime(domains);
      const Queue queue = make_queue(runtime, policy);
      expect_sequential(runtime, queue, 8, 16);
      const weir_queue_info info = queue.info();
      EXPECT_EQ(info.submitted, 400u) << "tasks only";
      EXPECT_EQ(info.completed, 400u);
      EXPECT_STREQ(info.policy, policy);
      EXPECT_STREQ(info.name, "q");
      EXPECT_EQ(info.place_count, runtime.domain_count());
    }
  }
}

TEST(Queues, DataLargerThanDeviceMemory_GivesTheSequentialResult) {
  constexpr std::size_t kTiles = 16, kTile = 256;  // 16 KiB
  for (const char* domains : {"sim:cores=1,gbps=1000,latency_us=0,memory=4KiB",
                              "host:cores=1,sim:cores=1,gbps=1000,latency_us=0,memory=4KiB",
                              "sim:cores=1,gbps=1000,latency_us=0,memory=4KiB,order=device"}) {
    SCOPED_TRACE(domains);
    const Runtime runtime(domains);
    expect_sequential(runtime, make_queue(runtime, "round-robin"), kTiles, kTile);
  }
}

TEST(Queues, OverlappingRegionsOnTwoDomains_StayCoherent) {
  const Runtime runtime(kHostAndCard);
  const Queue queue = make_queue(runtime);
  const Buffer buffer = runtime.buffer(8 * sizeof(int));
  const Kernel add = make_add(runtime);
  for (int i = 0; i < 20; ++i) {
    queue.submit(add, {readwrite(buffer.elements<int>(0, 5))}, {1}, {.domains = kOnCard});
    queue.submit(add, {readwrite(buffer.elements<int>(3, 5))}, {10}, {.domains = kOnHost});
    queue.submit(add, {readwrite(buffer.elements<int>(4, 1))}, {100}, {.domains = kOnCard});
  }
  queue.synchronize();
  const int* values = buffer.data<int>();
  EXPECT_EQ(std::vector<int>(values, values + 8),
            (std::vector<int>{20, 20, 20, 220, 2220, 200, 200, 200}));
}

/// Adds scalar i to all cells of operand i.
void add_to_cells(const Call& call) {
  for (std::size_t i = 0; i < call.handle()->operand_count; ++i) {
    const weir_view& view = call.operand(i);
    for (std::size_t plane = 0; plane < view.extent[2]; ++plane) {
      for (std::size_t row = 0; row < view.extent[1]; ++row) {
        auto* const first = reinterpret_cast<int*>(static_cast<std::byte*>(view.address) +
                                                   plane * view.stride[1] + row * view.stride[0]);
        for (std::size_t at = 0; at < view.extent[0] / sizeof(int); ++at) {
          first[at] += call.scalar<int>(i);
        }
      }
    }
  }
}

TEST(Queues, OperandsOfAllShapesAndTheirScalars_ReachTheKernel) {
  constexpr std::size_t kSide = 6, kCells = kSide * kSide * kSide, kRow = kSide * sizeof(int);
  const weir_region shapes[] = {
      {kRow * kSide + sizeof(int), {3 * sizeof(int), 4, 2}, {kRow, kRow * kSide * 2}},
      {kRow, {2 * sizeof(int), 5, 1}, {2 * kRow, 0}},
      {sizeof(int), {7 * sizeof(int), 1, 1}, {0, 0}},
      {0, {sizeof(int), kSide, kSide}, {kRow, kRow * kSide}},
      {0, {kCells * sizeof(int), 1, 1}, {0, 0}},
  };
  const Runtime runtime(kHostAndCard);
  const Queue queue = make_queue(runtime);
  const Kernel add = runtime.kernel("add to cells", add_to_cells);
  std::vector<Buffer> buffers;
  std::vector<std::vector<int>> expected;
  std::vector<Operand> operands;
  for (const weir_region& shape : shapes) {
    Buffer& buffer = buffers.emplace_back(runtime.buffer(kCells * sizeof(int)));
    std::fill_n(buffer.data<int>(), kCells, 0);
    operands.push_back(readwrite({buffer.handle(), shape}));
    std::vector<int>& cells = expected.emplace_back(kCells, 0);
    for (std::size_t plane = 0; plane < shape.extent[2]; ++plane) {
      for (std::size_t row = 0; row < shape.extent[1]; ++row) {
        const std::size_t first = shape.offset + plane * shape.stride[1] + row * shape.stride[0];
        for (std::size_t at = 0; at < shape.extent[0]; at += sizeof(int)) {
          cells[(first + at) / sizeof(int)] = 20 * static_cast<int>(operands.size());
        }
      }
    }
  }
  for (int i = 0; i < 20; ++i) {
    queue.submit(add, operands, std::vector<Scalar>{1, 2, 3, 4, 5},
                 {.domains = i % 2 == 0 ? kOnHost : kOnCard});
  }
  queue.synchronize();
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const int* const cells = buffers[i].data<int>();
    EXPECT_EQ(std::vector<int>(cells, cells + kCells), expected[i]) << "operand " << i;
  }
}

TEST(Queues, CommutingTasks_LoseNoUpdate) {
  for (const char* domains : {"host:cores=1", kHostAndCard}) {
    SCOPED_TRACE(domains);
    const Runtime runtime(domains);
    const Queue queue = make_queue(runtime, "round-robin");
    const Buffer sum = runtime.buffer(sizeof(int)), other = runtime.buffer(sizeof(int));
    const Kernel add = make_add(runtime);
    for (int i = 1; i <= 100; ++i) {
      queue.submit(add, {commute(sum.all())}, {i});
      if (i % 10 == 0) queue.submit(add, {readwrite(other.all())}, {1});
    }
    queue.synchronize();
    EXPECT_EQ(sum.data<int>()[0], 5050);
    EXPECT_EQ(other.data<int>()[0], 10);
  }
}

Kernel make_sum(const Runtime& runtime) {
  return runtime.kernel("sum", [](const Call& call) {
    const auto sum = call.span<double>(0), partial = call.span<double>(1);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += partial[i];
  });
}

/// Adds the terms of a harmonic series to three numbers.
std::vector<double> reduced(const char* domains, std::size_t places, const char* policy) {
  const Runtime runtime(domains);
  std::vector<Place> divided = runtime.domain(0).partition(places);
  std::vector<weir_place*> handles;
  for (const Place& place : divided) handles.push_back(place.handle());
  weir_queue_options options = WEIR_QUEUE_OPTIONS_INIT;
  options.places = handles.data();
  options.place_count = handles.size();
  options.policy = policy;
  options.no_models = true;
  const Queue queue = runtime.queue(options);
  const Buffer sums = runtime.buffer(3 * sizeof(double), "sums");
  std::fill_n(sums.data<double>(), 3, 1.0);
  const Kernel sum = make_sum(runtime), add = runtime.kernel("term", [](const Call& call) {
    for (double& value : call.span<double>(0)) value += 1.0 / call.scalar<double>(0);
  });
  for (int i = 1; i <= 1000; ++i) {
    queue.submit(add, {reduce(sums.all())}, {double(i)}, {.combine = sum.handle()});
  }
  queue.synchronize();
  return {sums.data<double>(), sums.data<double>() + 3};
}

TEST(Queues, Reduction_IsBitwiseEqualForAllPoliciesAndPlaces) {
  const std::vector<double> one = reduced("host:cores=2", 1, "finish");
  EXPECT_NEAR(one[0], 1 + 7.485470860550345, 1e-12);
  EXPECT_EQ(one, std::vector<double>(3, one[0]));
  for (const char* policy : {"finish", "steal", "round-robin"}) {
    EXPECT_EQ(reduced("host:cores=2", 2, policy), one) << policy;
    EXPECT_EQ(reduced("sim:cores=2,gbps=1000,latency_us=0", 2, policy), one) << policy;
  }
}

TEST(Queues, TasksOfOneReduction_RunConcurrently) {
  const Runtime runtime("host:cores=2");
  const Queue queue = make_queue(runtime);
  const Buffer sum = runtime.buffer(sizeof(double), "sum");
  std::atomic<int> arrived{0};
  const Kernel meet = runtime.kernel("meet", [&](const Call& call) {
    ++arrived;
    arrived.notify_all();
    for (int seen = arrived; seen < 2; seen = arrived) arrived.wait(seen);
    call.span<double>(0)[0] += 1;
  });
  const Kernel add = make_sum(runtime);
  for (int i = 0; i < 2; ++i)
    queue.submit(meet, {reduce(sum.all())}, {}, {.combine = add.handle()});
  queue.acquire(sum.all());
  EXPECT_EQ(sum.data<double>()[0], 2);
}

TEST(Queues, ReductionsWithOwnInitAndCombineKernels_GiveExactResults) {
  for (const char* domains : {"host:cores=2", kHostAndCard}) {
    SCOPED_TRACE(domains);
    const Runtime runtime(domains);
    const Queue queue = make_queue(runtime);
    const Buffer values = runtime.buffer(2 * sizeof(double), "values");
    values.data<double>()[0] = values.data<double>()[1] = 5;
    const Region first = values.elements<double>(0, 1), second = values.elements<double>(1, 1);
    const Kernel sum = make_sum(runtime);
    const Kernel lowest = runtime.kernel("lowest", [](const Call& call) {
      for (double& value : call.span<double>(0)) value = std::numeric_limits<double>::infinity();
    });
    const Kernel smaller = runtime.kernel("smaller", [](const Call& call) {
      double& value = call.span<double>(0)[0];
      value = std::min(value, call.span<double>(1)[0]);
    });
    const Kernel see = runtime.kernel("see", [](const Call& call) {
      double& value = call.span<double>(0)[0];
      value = std::min(value, call.scalar<double>(0));
    });
    const Kernel add = runtime.kernel(
        "add", [](const Call& call) { call.span<double>(0)[0] += call.scalar<double>(0); });
    for (int i = 0; i < 10; ++i) {
      const TaskOptions least{.combine = smaller.handle(), .init = lowest.handle()};
      queue.submit(see, {reduce(first)}, {10.0 - i}, least);
      queue.submit(add, {reduce(second)}, {1.0}, {.combine = sum.handle()});
    }
    queue.submit(add, {reduce(first)}, {1.0}, {.combine = sum.handle()});  // ends that by "smaller"
    queue.submit(add, {readwrite(values.elements<double>(0, 2))}, {100.0});
    queue.submit(add, {reduce(first)}, {1000.0}, {.combine = sum.handle()});
    queue.acquire(values.all());
    EXPECT_EQ(values.data<double>()[0], 1 + 1 + 100 + 1000);
    EXPECT_EQ(values.data<double>()[1], 5 + 10);
  }
}

TEST(Queues, FailedTaskOfAReductionPoisonsItsResultOnly) {
  for (const char* domains : {"host:cores=2", kHostAndCard}) {
    SCOPED_TRACE(domains);
    const Runtime runtime(domains);
    const Queue queue = make_queue(runtime);
    const Buffer bad = runtime.buffer(sizeof(double), "bad"),
                 good = runtime.buffer(sizeof(double), "good");
    const Kernel sum = make_sum(runtime);
    const Kernel add = runtime.kernel("add", [](const Call& call) {
      if (call.scalar<int>(0) == 3) throw std::runtime_error("three");
      call.span<double>(0)[0] += 1;
    });
    const TaskOptions by_sum{.combine = sum.handle()};
    for (int round = 0; round < 2; ++round) {
      for (int i = 0; i < 5; ++i) {
        queue.submit(add, {reduce(bad.all())}, {i}, by_sum);
        queue.submit(add, {reduce(good.all())}, {0}, by_sum);
      }
      EXPECT_THROW(queue.acquire(bad.all()), Error);
      queue.acquire(good.all());
      EXPECT_EQ(good.data<double>()[0], 5 * (round + 1));
    }
    EXPECT_THROW(queue.synchronize(), Error);
    bad.data<double>()[0] = 0;
    for (int i = 0; i < 3; ++i) queue.submit(add, {reduce(bad.all())}, {0}, by_sum);
    queue.synchronize();
    EXPECT_EQ(bad.data<double>()[0], 3);
  }
}

TEST(Queues, ReductionWithoutCombineOrWithOverlap_IsRefused) {
  const Runtime runtime(kHostAndCard);
  const Queue queue = make_queue(runtime);
  const Buffer x = runtime.buffer(4 * sizeof(double), "x");
  const Kernel sum = make_sum(runtime);
  const auto refusal = [&](std::initializer_list<Operand> operands, const weir_kernel* combine) {
    return thrown_by([&] { queue.submit(sum, operands, {}, {.combine = combine}); },
                     WEIR_STATUS_INVALID_ARGUMENT);
  };
  EXPECT_EQ(refusal({reduce(x.all())}, nullptr),
            "task 'sum' of queue 'q' reduces into buffer 'x' without a kernel `combine`");
  EXPECT_EQ(
      refusal({reduce(x.all()), read(x.elements<double>(1, 1))}, sum.handle()),
      "operands 0 and 1 of task 'sum' overlap in buffer 'x': what a task reduces into it must "
      "not use otherwise");
  queue.synchronize();
}

TEST(Queues, CancelDropsPartialResults) {
  const Runtime runtime("host:cores=1");
  const Queue queue = make_queue(runtime);
  const Buffer sum = runtime.buffer(sizeof(double), "sum");
  const Kernel add_up = make_sum(runtime);
  const Kernel add = runtime.kernel("one", [](const Call& call) { call.span<double>(0)[0] += 1; });
  const TaskOptions by_sum{.combine = add_up.handle()};
  queue.submit(add, {reduce(sum.all())}, {}, by_sum);
  queue.cancel();
  queue.synchronize();
  EXPECT_EQ(sum.data<double>()[0], 0);
  queue.submit(add, {reduce(sum.all())}, {}, by_sum);
  queue.synchronize();
  EXPECT_EQ(sum.data<double>()[0], 1);
}

TEST(Queues, BufferDestroyedDuringReduction_CombinesPartialResultsFirst) {
  for (const char* domains : {"host:cores=1", kHostAndCard}) {
    const Runtime runtime(domains);
    const Queue queue = make_queue(runtime);
    const Kernel add_up = make_sum(runtime);
    const Kernel add =
        runtime.kernel("one", [](const Call& call) { call.span<double>(0)[0] += 1; });
    double value = 0;
    {
      const Buffer sum = runtime.wrap(&value, sizeof(value));
      queue.submit(add, {reduce(sum.all())}, {}, {.combine = add_up.handle()});
    }
    EXPECT_EQ(value, 1);
    queue.synchronize();
  }
}

TEST(Queues, ConcurrentSubmits_RunEveryTask) {
  constexpr int kThreads = 4, kEach = 200;
  const Runtime runtime(kHostAndCard);
  const Queue queue = make_queue(runtime);
  const Buffer cells = runtime.buffer(kThreads * sizeof(std::uint32_t));
  const Buffer one = runtime.buffer(sizeof(std::uint32_t));
  one.data<std::uint32_t>()[0] = 1;
  const Kernel mix = make_mix(runtime);
  {
    std::vector<std::jthread> threads;
    for (std::size_t thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, thread] {
        for (int i = 0; i < kEach; ++i) {
          queue.submit(mix, {read(one.all()), readwrite(cells.elements<std::uint32_t>(thread, 1))});
        }
      });
    }
  }
  queue.synchronize();
  std::uint32_t expected = 0;
  for (int i = 0; i < kEach; ++i) expected = 3 * expected + 1;
  for (std::size_t i = 0; i < kThreads; ++i) EXPECT_EQ(cells.data<std::uint32_t>()[i], expected);
}

TEST(Queues, TaskSubmittedByACallback_Runs) {
  const Runtime runtime(kHostAndCard);
  const Queue queue = make_queue(runtime);
  const Buffer buffer = runtime.buffer(sizeof(int));
  const Kernel add = make_add(runtime);
  std::atomic<bool> told{false};
  queue.submit(add, {readwrite(buffer.all())}, {1}).on_complete([&](weir_status, const char*) {
    queue.submit(add, {readwrite(buffer.all())}, {2});
    told = true;
    told.notify_all();
  });
  told.wait(false);
  queue.synchronize();
  EXPECT_EQ(buffer.data<int>()[0], 3);
}

// ---- Where and when ----------------------------------------------------------------------------

TEST(Queues, TaskWithPlaceOrDomains_RunsThere) {
  const Runtime runtime(kHostAndCard);
  const Place host = runtime.domain(0).place(), card = runtime.domain(1).place();
  weir_place* const places[] = {host.handle(), card.handle()};
  weir_queue_options options = WEIR_QUEUE_OPTIONS_INIT;
  options.places = places;
  options.place_count = 2;
  options.no_models = true;
  const Queue queue = runtime.queue(options);
  const Buffer buffer = runtime.buffer(4 * sizeof(int));
  const Kernel add = make_add(runtime);
  for (int i = 0; i < 5; ++i) {
    queue.submit(add, {readwrite(buffer.all())}, {1}, {.place = card.handle()});
  }
  for (int i = 0; i < 3; ++i) {
    queue.submit(add, {readwrite(buffer.all())}, {1}, {.domains = kOnHost});
  }
  queue.synchronize();
  EXPECT_EQ(buffer.data<int>()[3], 8);
  const std::vector<weir_queue_share> shares = queue.shares();
  EXPECT_EQ(shares[0].tasks, 3u);
  EXPECT_EQ(shares[1].tasks, 5u);
  EXPECT_EQ(shares[1].bytes_in, 16u) << "copied once, kept for the tasks that follow";
  EXPECT_EQ(shares[1].bytes_out, 16u);
}

TEST(Queues, WeightsUnderStaticPolicy_DivideTasksInProportion) {
  const Runtime runtime("sim:cores=1,clock=virtual,sim:cores=1,clock=virtual");
  const double weights[] = {3, 1};
  weir_queue_options options = WEIR_QUEUE_OPTIONS_INIT;
  options.policy = "static";
  options.weights = weights;
  options.weight_count = 2;
  options.no_models = true;
  const Queue queue = runtime.queue(options);
  const Buffer buffer = runtime.buffer(100 * sizeof(int));
  const Kernel add = make_add(runtime);
  for (std::size_t i = 0; i < 100; ++i) {
    queue.submit(add, {readwrite(buffer.elements<int>(i, 1))}, {1});
  }
  queue.synchronize();
  EXPECT_EQ(queue.shares()[0].tasks, 75u);
  EXPECT_EQ(queue.shares()[1].tasks, 25u);
}

TEST(Queues, BusyDevicePlace_RunsDeferredTasksByPriority) {
  Held held;
  const Runtime runtime(kCard);
  const Queue queue = make_queue(runtime);
  std::string order;
  const Kernel note =
      runtime.kernel("note", [&order](const Call& call) { order += call.scalar<char>(0); });
  queue.submit(held.kernel(runtime), {});
  held.await_start();
  for (int i = 0; i < 5; ++i) queue.submit(note, {}, {'.'});  // now the place has enough
  for (int i = 0; i < 3; ++i) {
    queue.submit(note, {}, {'l'}, {.priority = -1});
    queue.submit(note, {}, {'n'});
    queue.submit(note, {}, {'h'}, {.priority = 1});
  }
  held.open();
  queue.synchronize();
  EXPECT_EQ(order, ".....hhhnnnlll");
}

TEST(Queues, DirectQueue_RunsReadyTasksByPriority) {
  Held first, last;
  const Runtime runtime("host:cores=2");
  const Queue queue = make_queue(runtime);
  const Buffer buffer = runtime.buffer(16);
  std::string order;
  const Kernel note =
      runtime.kernel("note", [&order](const Call& call) { order += call.scalar<char>(0); });
  queue.submit(first.kernel(runtime, "first"), {readwrite(buffer.all())});
  first.await_start();
  for (std::size_t i = 0; i < 3; ++i) {
    queue.submit(note, {read(buffer.range(3 * i, 1))}, {'l'}, {.priority = -1});
    queue.submit(note, {read(buffer.range(3 * i + 1, 1))}, {'n'});
    queue.submit(note, {read(buffer.range(3 * i + 2, 1))}, {'h'}, {.priority = 1});
  }
  const Event over = queue.submit(note, {readwrite(buffer.all())}, {'.'}, {.priority = 1});
  queue.submit(last.kernel(runtime, "last"), {});
  last.await_start();  // all others are known to wait for the first, and one core is left to them
  first.open();
  over.wait();
  last.open();
  queue.synchronize();
  EXPECT_EQ(order, "hhhnnnlll.");
}

// ---- The program and the data ------------------------------------------------------------------

TEST(Queues, AcquireAndFlushGetTheNewestContents) {
  for (const char* domains : {"host:cores=1", kCard}) {
    SCOPED_TRACE(domains);
    const Runtime runtime(domains);
    const Queue queue = make_queue(runtime);
    const Buffer buffer = runtime.buffer(4 * sizeof(int));
    const Kernel add = make_add(runtime);
    int* const values = buffer.data<int>();
    int expected = 0;
    for (int i = 0; i < 20; ++i) {
      queue.submit(add, {readwrite(buffer.all())}, {1});
      queue.acquire(buffer.elements<int>(1, 2));
      EXPECT_EQ(values[1], ++expected);
      queue.acquire(buffer.all(), WEIR_ACCESS_READ_WRITE);
      for (int k = 0; k < 4; ++k) values[k] += 10;
      expected += 10;
      queue.submit(add, {readwrite(buffer.all())}, {1});
      queue.flush(buffer.all()).wait();
      EXPECT_EQ(values[3], ++expected);
    }
  }
}

TEST(Queues, AcquireWaitsForItsRegionOnly) {
  Held held;
  const Runtime runtime("sim:cores=1,gbps=1000,latency_us=0,sim:cores=1,gbps=1000,latency_us=0");
  const Queue queue = make_queue(runtime);
  const Buffer buffer = runtime.buffer(2 * sizeof(int));
  const Region left = buffer.elements<int>(0, 1), right = buffer.elements<int>(1, 1);
  queue.submit(held.kernel(runtime), {readwrite(left)}, {}, {.domains = 1});
  queue.submit(make_add(runtime), {readwrite(right)}, {7}, {.domains = 2});
  queue.acquire(right);
  EXPECT_EQ(buffer.data<int>()[1], 7);
  const std::chrono::nanoseconds at_once(0);
  EXPECT_EQ(status_of([&] { queue.acquire(left, WEIR_ACCESS_READ, at_once); }),
            WEIR_STATUS_TIMEOUT);
  EXPECT_EQ(status_of([&] { queue.synchronize(at_once); }), WEIR_STATUS_TIMEOUT);
  held.open();
  queue.acquire(left);
  queue.synchronize();
}

/// All places have enough to do, so most tasks have none.
TEST(Queues, DeferredTasksOfOtherData_AcquireDoesNotWaitForThem) {
  Held held;
  const Runtime runtime(kHostAndCard);
  const Queue queue = make_queue(runtime, "round-robin");
  const Buffer busy = runtime.buffer(sizeof(int)), other = runtime.buffer(sizeof(int));
  const Kernel set = runtime.kernel("set", [](const Call& call) { call.span<int>(0)[0] = 7; });
  const Kernel add = make_add(runtime);
  queue.submit(set, {weir::write(other.all())}, {}, {.domains = kOnCard});
  queue.submit(held.kernel(runtime), {readwrite(busy.all())}, {}, {.domains = kOnHost});
  for (int i = 0; i < 200; ++i) queue.submit(add, {readwrite(busy.all())}, {1});
  const std::chrono::seconds long_enough(60);
  EXPECT_EQ(failure_of([&] { queue.acquire(other.all(), WEIR_ACCESS_READ, long_enough); }), "OK");
  EXPECT_EQ(other.data<int>()[0], 7);
  held.open();
  queue.synchronize();
  EXPECT_EQ(busy.data<int>()[0], 200);
}

/// A thread that polls with no time to wait gets the answer in the end.
TEST(Queues, ZeroTimeoutAfterCompletion_AcquireAndSynchronizeSucceed) {
  using std::chrono::nanoseconds;
  for (const char* domains : {"host:cores=1", kHostAndCard}) {
    SCOPED_TRACE(domains);
    const Runtime runtime(domains);
    const Queue queue = make_queue(runtime);
    const Buffer buffer = runtime.buffer(sizeof(int));
    queue.submit(make_add(runtime), {readwrite(buffer.all())}, {1});
    queue.acquire(buffer.all());
    EXPECT_EQ(failure_of([&] { queue.acquire(buffer.all(), WEIR_ACCESS_READ, nanoseconds(0)); }),
              "OK");
    queue.synchronize();
    EXPECT_EQ(failure_of([&] { queue.synchronize(nanoseconds(0)); }), "OK");
    EXPECT_EQ(failure_of([&] { runtime.synchronize(nanoseconds(0)); }), "OK");
  }
}

TEST(Queues, AcquireAndFlushOfUnusedBuffer_DoNotHang) {
  const Runtime runtime(kHostAndCard);
  const Queue queue = make_queue(runtime);
  const Buffer buffer = runtime.buffer(16);
  queue.acquire(buffer.all(), WEIR_ACCESS_WRITE);
  queue.flush(buffer.range(3, 4)).wait();
  queue.synchronize();
}

// ---- Bad input ---------------------------------------------------------------------------------

class BadTasks : public testing::TestWithParam<const char*> {
 protected:
  std::string submit() {
    const weir_status status = weir_queue_submit(queue_.handle(), &task_, nullptr);
    if (status == WEIR_STATUS_OK) return "OK";
    return weir_status_name(status) + std::string(": ") + weir_last_error();
  }

  const Runtime runtime_{GetParam()};
  const Queue queue_ = make_queue(runtime_);
  const Buffer buffer_ = runtime_.buffer(16, "data");
  const Kernel add_ = make_add(runtime_);
  weir_task task_ = [this] {
    weir_task task = WEIR_TASK_INIT;
    task.kernel = add_.handle();
    return task;
  }();
};
INSTANTIATE_TEST_SUITE_P(Queues, BadTasks, testing::Values("host:cores=1", kHostAndCard),
                         [](const auto& info) { return info.index == 0 ? "direct" : "two"; });

TEST_P(BadTasks, NullQueueOrTask_IsRefused) {
  EXPECT_EQ(weir_queue_submit(nullptr, &task_, nullptr), WEIR_STATUS_INVALID_ARGUMENT);
  EXPECT_TRUE(contains(weir_last_error(), "queue is NULL"));
  EXPECT_EQ(weir_queue_submit(queue_.handle(), nullptr, nullptr), WEIR_STATUS_INVALID_ARGUMENT);
  EXPECT_TRUE(contains(weir_last_error(), "task is NULL"));
  EXPECT_EQ(weir_queue_synchronize(nullptr, WEIR_FOREVER), WEIR_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(weir_queue_cancel(nullptr), WEIR_STATUS_INVALID_ARGUMENT);
  weir_queue_destroy(nullptr);
}

TEST_P(BadTasks, NullOrUnknownKernel_IsRefused) {
  task_.kernel = nullptr;
  EXPECT_TRUE(contains(submit(), "invalid_argument: "));
  EXPECT_TRUE(contains(submit(), "kernel is NULL"));
  task_.kernel_name = "ad";
  EXPECT_TRUE(contains(submit(), "not_found: "));
  EXPECT_TRUE(contains(submit(), "did you mean 'add'?"));
}

TEST_P(BadTasks, PriorityOutOfRange_IsRefused) {
  task_.priority = 2;
  EXPECT_EQ(submit(), "invalid_argument: priority 2 of a task is not -1, 0 or 1");
}

TEST_P(BadTasks, DomainsOrPlaceOutsideTheQueue_AreRefused) {
  task_.domains = std::uint64_t{1} << 7;
  EXPECT_EQ(submit(),
            "invalid_argument: task 'add' may run on no place of queue 'q': its domains and its "
            "place leave none");
  const std::vector<Place> others = runtime_.domain(0).partition(1, true);
  task_.domains = 0;
  task_.place = others[0].handle();
  EXPECT_TRUE(contains(submit(), "may run on no place of queue 'q'"));
}

TEST_P(BadTasks, NullOperandsOrScalars_AreRefused) {
  task_.operand_count = 2;
  EXPECT_TRUE(contains(submit(), "invalid_argument: "));
  EXPECT_TRUE(contains(submit(), "NULL"));
  task_.operand_count = 0;
  task_.scalar_count = 1;
  EXPECT_TRUE(contains(submit(), "invalid_argument: "));
  EXPECT_TRUE(contains(submit(), "NULL"));
}

TEST_P(BadTasks, InvalidRegionAccessOrBuffer_IsRefused) {
  weir_operand operand = {buffer_.handle(), weir_region_range(8, 9), WEIR_ACCESS_READ};
  task_.operands = &operand;
  task_.operand_count = 1;
  EXPECT_TRUE(contains(submit(), "invalid_argument: "));
  EXPECT_TRUE(contains(submit(), "'data'"));
  operand.region = weir_region_range(0, 8);
  operand.access = static_cast<weir_access>(0);
  EXPECT_TRUE(contains(submit(), "invalid_argument: access 0 of an operand in buffer 'data'"));
  operand.buffer = nullptr;
  EXPECT_TRUE(contains(submit(), "buffer is NULL"));
  {
    const Buffer gone = runtime_.buffer(16, "gone");
    operand.buffer = gone.handle();
  }
  operand.access = WEIR_ACCESS_READ;
  EXPECT_EQ(submit(), "invalid_argument: buffer 'gone' has been destroyed");
}

TEST_P(BadTasks, BufferOrKernelOfAnotherRuntime_IsRefused) {
  const Runtime other("host:cores=1");
  const Buffer foreign = other.buffer(16, "foreign");
  const weir_operand operand = {foreign.handle(), weir_region_range(0, 8), WEIR_ACCESS_READ};
  task_.operands = &operand;
  task_.operand_count = 1;
  EXPECT_TRUE(contains(submit(), "invalid_argument: buffer 'foreign' belongs to another runtime"));
  task_.operand_count = 0;
  const Kernel kernel = make_add(other);
  task_.kernel = kernel.handle();
  EXPECT_TRUE(contains(submit(), "invalid_argument: kernel 'add' belongs to another runtime"));
}

TEST_P(BadTasks, RefusedTask_LeavesTheQueueUsable) {
  task_.priority = 9;
  EXPECT_NE(submit(), "OK");
  queue_.submit(add_, {readwrite(buffer_.all())}, {4});
  queue_.synchronize();
  EXPECT_EQ(buffer_.data<int>()[0], 4);
  EXPECT_EQ(queue_.info().submitted, queue_.info().completed);
}

TEST_P(BadTasks, AcquireWithInvalidAccessOrNullBuffer_IsRefused) {
  const auto acquire = [&](weir_access access) {
    return failure_of([&] { queue_.acquire(buffer_.all(), access); });
  };
  EXPECT_EQ(acquire(WEIR_ACCESS_COMMUTE), "invalid_argument: access " +
                                              std::to_string(WEIR_ACCESS_COMMUTE) +
                                              " of the program is not read, write or read-write");
  EXPECT_TRUE(contains(failure_of([&] {
                         check(weir_queue_acquire(queue_.handle(), nullptr, {}, WEIR_ACCESS_READ,
                                                  WEIR_FOREVER));
                       }),
                       "buffer is NULL"));
}

TEST(Queues, KernelWithoutCodeForThePlacesIsRefused) {
  const Runtime runtime("sim:cores=1,null");
  const Place card = runtime.domain(0).place();
  weir_place* const places[] = {card.handle()};
  weir_queue_options options = WEIR_QUEUE_OPTIONS_INIT;
  options.places = places;
  options.place_count = 1;
  options.no_models = true;
  const Queue queue = runtime.queue(options);
  const auto code = [](const weir_call*) { return WEIR_STATUS_OK; };
  const weir_implementation implementation = {"cuda", code, nullptr};
  weir_kernel_options kernel = WEIR_KERNEL_OPTIONS_INIT;
  kernel.name = "gpu.only";
  kernel.implementations = &implementation;
  kernel.implementation_count = 1;
  weir_kernel* made = nullptr;
  check(weir_kernel_register(runtime.handle(), &kernel, &made));
  const std::string failure = failure_of([&] { queue.submit(Kernel(made), {}); });
  EXPECT_TRUE(contains(failure, "unsupported: task 'gpu.only' can run on none of the places"));
  EXPECT_TRUE(contains(failure, "kernel 'gpu.only' has code for cuda: allow such a domain"));
}

TEST(Queues, OperandsLargerThanEveryMemory_ErrorNamesTheLargestMemory) {
  const Runtime runtime("sim:cores=1,memory=1KiB,sim:cores=1,memory=1536");
  const Queue queue = make_queue(runtime);
  const Buffer buffer = runtime.buffer(2048);
  EXPECT_TRUE(
      contains(failure_of([&] { queue.submit(make_add(runtime), {readwrite(buffer.all())}, {1}); }),
               "unsupported: task 'add' can run on none of the places it may run on: its operands "
               "need 2 KiB of domain 'sim:1', which has 1.5 KiB; use smaller operands or raise "
               "memory="));
}

TEST(Queues, OverlappingOperandsThatAreWrittenAreRefusedOnDevices) {
  const Runtime runtime("sim:cores=1");
  const Queue queue = make_queue(runtime);
  const Buffer buffer = runtime.buffer(8 * sizeof(int));
  const auto submit = [&] {
    queue.submit(make_add(runtime),
                 {readwrite(buffer.elements<int>(0, 4)), readwrite(buffer.elements<int>(2, 4))},
                 {1});
  };
  EXPECT_TRUE(contains(failure_of(submit),
                       "its operands overlap and are written, which domain 'sim:0' with memory of "
                       "its own does not take; name disjoint regions or allow the host"));
}

TEST(Queues, InvalidPolicyWeightsOrPlaces_AreRefused) {
  const Runtime runtime(kHostAndCard), other("host:cores=1");
  weir_queue_options options = WEIR_QUEUE_OPTIONS_INIT;
  options.name = "q";
  options.no_models = true;
  const auto failure = [&] { return failure_of([&] { runtime.queue(options); }); };

  options.policy = "stael";
  EXPECT_EQ(failure(),
            "not_found: no policy 'stael' (did you mean 'steal'?); there is: finish, steal, "
            "locality, static, round-robin");
  options.policy = "static";

  const double weights[] = {1, 0, 1};
  options.weights = weights;
  options.weight_count = 3;
  EXPECT_EQ(failure(), "invalid_argument: 3 weights for 2 places: give one for each place");
  options.weight_count = 2;
  EXPECT_TRUE(contains(failure(), "invalid_argument: weight 0 of place"));
  EXPECT_TRUE(contains(failure(), "is not a positive number"));
  options.weights = nullptr;
  EXPECT_EQ(failure(), "invalid_argument: 2 weights are given as NULL");
  options.weight_count = 0;

  options.place_count = 1;
  EXPECT_EQ(failure(), "invalid_argument: 1 place is given as NULL");
  const Place foreign = other.domain(0).place();
  weir_place* places[65] = {foreign.handle()};
  options.places = places;
  EXPECT_TRUE(contains(failure(), "invalid_argument: place '"));
  EXPECT_TRUE(contains(failure(), "belongs to another runtime than queue 'q'"));
  places[0] = nullptr;
  EXPECT_TRUE(contains(failure(), "place is NULL"));
  options.place_count = 65;
  EXPECT_EQ(failure(), "invalid_argument: 65 places are too many for queue 'q': at most 64");
  EXPECT_EQ(weir_queue_create(runtime.handle(), &options, nullptr), WEIR_STATUS_INVALID_ARGUMENT);
}

TEST(Queues, DestroyedQueueHandle_IsRefusedByName) {
  const Runtime runtime("host:cores=1");
  weir_queue* handle = nullptr;
  {
    const Queue queue = make_queue(runtime);
    handle = queue.handle();
  }
  EXPECT_EQ(weir_queue_synchronize(handle, WEIR_FOREVER), WEIR_STATUS_INVALID_ARGUMENT);
  EXPECT_STREQ(weir_last_error(), "queue 'q' has been destroyed");
}

// ---- Policies of the program -------------------------------------------------------------------

template <class Choose>
void add_policy(const Runtime& runtime, const char* name, Choose& choose) {
  weir_policy_options options = WEIR_POLICY_OPTIONS_INIT;
  options.name = name;
  options.choose = [](const char* task, const weir_candidate* candidates, std::size_t count,
                      void* payload) {
    return (*static_cast<Choose*>(payload))(task, candidates, count);
  };
  options.payload = &choose;
  check(weir_policy_register(runtime.handle(), &options));
}

TEST(Queues, RegisteredPolicy_ChoosesThePlace) {
  std::vector<std::string> asked;
  auto choose = [&](const char* task, const weir_candidate* candidates, std::size_t count) {
    asked.emplace_back(task);
    EXPECT_EQ(count, 2u);
    EXPECT_EQ(candidates[0].run_ns, -1);
    EXPECT_EQ(candidates[1].missing_bytes, 4u);
    EXPECT_EQ(candidates[0].missing_bytes, 0u);
    EXPECT_EQ(candidates[0].cores, 1u);
    EXPECT_FALSE(candidates[0].full);
    return std::size_t{1};
  };
  const Runtime runtime(kHostAndCard);
  add_policy(runtime, "device", choose);
  const Queue queue = make_queue(runtime, "device");
  const Buffer buffer = runtime.buffer(sizeof(int));
  queue.submit(make_add(runtime), {readwrite(buffer.all())}, {5}, {.name = "five"});
  queue.synchronize();
  EXPECT_EQ(buffer.data<int>()[0], 5);
  EXPECT_EQ(asked, std::vector<std::string>{"five"});
  EXPECT_EQ(queue.shares()[1].tasks, 1u);
  EXPECT_EQ(failure_of([&] { add_policy(runtime, "device", choose); }),
            "invalid_argument: policy 'device' is registered already: choose another name");
}

auto choose_badly = [](const char* task, const weir_candidate*, std::size_t) {
  return std::string(task) == "bad" ? std::size_t{17} : std::size_t{0};
};

TEST(Queues, InvalidPolicyChoice_FailsOnlyThatTaskAndItsDependents) {
  const Runtime runtime(kHostAndCard);
  add_policy(runtime, "odd", choose_badly);
  const Queue queue = make_queue(runtime, "odd");
  const Buffer buffer = runtime.buffer(2 * sizeof(int));
  const Kernel add = make_add(runtime);
  const Region left = buffer.elements<int>(0, 1), right = buffer.elements<int>(1, 1);
  const Event bad = queue.submit(add, {readwrite(left)}, {1}, {.name = "bad"});
  const Event after = queue.submit(add, {readwrite(left)}, {1}, {.name = "after"});
  const Event good = queue.submit(add, {readwrite(right)}, {1});
  const std::string message = "policy 'odd' chose candidate 17 of 2 for task 'bad'";
  EXPECT_TRUE(contains(failure_of([&] { queue.synchronize(); }), message));
  EXPECT_TRUE(contains(end_of(bad), "invalid_argument: "));
  EXPECT_TRUE(contains(end_of(bad), message));
  EXPECT_TRUE(contains(end_of(after), "poisoned: "));
  EXPECT_EQ(end_of(good), "OK");
  EXPECT_EQ(buffer.data<int>()[1], 1);
  queue.submit(add, {readwrite(left)}, {1});
  queue.synchronize();
}

/// Also where a device has the newest contents of bytes that it was to write.
TEST(Queues, TaskFailedWithoutAPlace_PoisonsOverlappingTasks) {
  const Runtime runtime(kHostAndCard);
  add_policy(runtime, "odd", choose_badly);
  const Queue queue = make_queue(runtime, "odd");
  const Buffer buffer = runtime.buffer(2 * sizeof(int));
  const Kernel add = make_add(runtime);
  const Region left = buffer.elements<int>(0, 1);
  const Event before = queue.submit(add, {readwrite(left)}, {1}, {.domains = kOnCard});
  queue.submit(add, {readwrite(buffer.all())}, {1}, {.name = "bad"});
  const Event after = queue.submit(add, {readwrite(left)}, {1}, {.domains = kOnCard});
  EXPECT_TRUE(contains(failure_of([&] { queue.synchronize(); }), "chose candidate 17"));
  EXPECT_EQ(end_of(before), "OK");
  EXPECT_TRUE(contains(end_of(after), "poisoned: "));
}

/// A task that writes after a task without a place waits for the writer before that.
TEST(Queues, WriterAfterTaskWithoutPlace_WaitsForTheEarlierWriter) {
  Held held;
  const Runtime runtime(kHostAndCard);
  add_policy(runtime, "odd", choose_badly);
  const Queue queue = make_queue(runtime, "odd");
  const Buffer buffer = runtime.buffer(2 * sizeof(int));
  const Region left = buffer.elements<int>(0, 1), right = buffer.elements<int>(1, 1);
  const Kernel set =
      runtime.kernel("set", [](const Call& call) { call.span<int>(0)[0] = call.scalar<int>(0); });
  queue.submit(held.kernel(runtime), {readwrite(left)}, {}, {.domains = kOnHost});
  queue.submit(set, {write(left)}, {1}, {.name = "bad"});
  queue.submit(set, {write(left)}, {2}, {.domains = kOnCard});
  const Event home = queue.flush(left);
  queue.submit(set, {write(right)}, {3}, {.domains = kOnCard});
  queue.flush(right).wait();  // its copy is behind the other in the link
  EXPECT_FALSE(home.info().complete);
  held.open();
  home.wait();
  EXPECT_EQ(buffer.data<int>()[0], 2);
  EXPECT_TRUE(contains(failure_of([&] { queue.synchronize(); }), "for task 'bad'"));
}

TEST(Queues, PolicyThatAlwaysDefers_FailsTheTask) {
  auto choose = [](const char* task, const weir_candidate*, std::size_t) {
    return std::string(task) == "never" ? WEIR_POLICY_LATER : std::size_t{0};
  };
  const Runtime runtime(kHostAndCard);
  add_policy(runtime, "lazy", choose);
  const Queue queue = make_queue(runtime, "lazy");
  const Buffer buffer = runtime.buffer(2 * sizeof(int));
  const Kernel add = make_add(runtime);
  const Event never =
      queue.submit(add, {readwrite(buffer.elements<int>(0, 1))}, {1}, {.name = "never"});
  const Event good = queue.submit(add, {readwrite(buffer.elements<int>(1, 1))}, {1});
  const std::string message =
      "policy 'lazy' deferred task 'never' while nothing was running: no place would ever take it";
  EXPECT_TRUE(contains(failure_of([&] { queue.synchronize(); }), message));
  EXPECT_TRUE(contains(end_of(never), message));
  EXPECT_EQ(end_of(good), "OK");
  EXPECT_EQ(buffer.data<int>()[1], 1);
}

TEST(Queues, PolicyMaySubmitButNotWait) {
  const Queue* asks = nullptr;
  const Kernel* more = nullptr;
  std::string waited;
  auto choose = [&](const char* task, const weir_candidate*, std::size_t) {
    if (std::string(task) == "first") {
      waited = failure_of([&] { asks->synchronize(); });
      asks->submit(*more, {}, {}, {.name = "second"});
    }
    return std::size_t{0};
  };
  const Runtime runtime(kHostAndCard);
  add_policy(runtime, "eager", choose);
  const Queue queue = make_queue(runtime, "eager");
  std::atomic<int> runs{0};
  const Kernel count = runtime.kernel("count", [&](const Call&) { ++runs; });
  asks = &queue;
  more = &count;
  queue.submit(count, {}, {}, {.name = "first"});
  queue.synchronize();
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(waited, "busy: a kernel or callback must not synchronise queue 'q'");
}

TEST(Queues, CancelDuringBindingOfATask_CancelsThatTask) {
  for (const char* domains : {kHostAndCard, kCard}) {
    SCOPED_TRACE(domains);
    Held held;
    const Queue* cancelled = nullptr;
    auto choose = [&](const char* task, const weir_candidate*, std::size_t) {
      if (std::string(task) == "last") check(weir_queue_cancel(cancelled->handle()));
      return std::size_t{0};
    };
    const Runtime runtime(domains);
    add_policy(runtime, "cancels", choose);
    const Queue queue = make_queue(runtime, "cancels");
    cancelled = &queue;
    const Buffer buffer = runtime.buffer(sizeof(int));
    const Kernel add = make_add(runtime);
    queue.submit(held.kernel(runtime), {readwrite(buffer.all())});
    const Event last = queue.submit(add, {readwrite(buffer.all())}, {1}, {.name = "last"});
    const Event after = queue.submit(add, {readwrite(buffer.all())}, {10});
    held.open();
    queue.synchronize();
    EXPECT_TRUE(contains(end_of(last), "cancelled: "));
    EXPECT_EQ(end_of(after), "OK");
    EXPECT_EQ(buffer.data<int>()[0], 10);
  }
}

TEST(Queues, MeasuredTimes_AreKnownToTheNextQueueUnlessNoModels) {
  const CacheFolder folder;
  std::vector<bool> known;
  auto choose = [&](const char*, const weir_candidate* candidates, std::size_t) {
    known.push_back(candidates[0].run_ns >= 0);
    return std::size_t{0};
  };
  const Runtime runtime(kHostAndCard);
  add_policy(runtime, "spy", choose);
  const Buffer buffer = runtime.buffer(64);
  const Kernel add = make_add(runtime);
  for (const bool without : {false, false, true}) {
    weir_queue_options options = WEIR_QUEUE_OPTIONS_INIT;
    options.policy = "spy";
    options.no_models = without;
    runtime.queue(options).submit(add, {readwrite(buffer.all())}, {1});
  }
  EXPECT_EQ(known, (std::vector<bool>{false, true, false}));
}

// ---- Failures ----------------------------------------------------------------------------------

Kernel make_throw(const Runtime& runtime) {
  return runtime.kernel("throw", [](const Call&) { throw std::runtime_error("no luck"); });
}

TEST(Queues, FailedTask_PoisonsDependentsAndIsNamedInTheirErrors) {
  for (const char* domains : {"host:cores=1", kHostAndCard}) {
    SCOPED_TRACE(domains);
    const Runtime runtime(domains);
    const Queue queue = make_queue(runtime, "round-robin");
    const Buffer buffer = runtime.buffer(3 * sizeof(int));
    const Kernel add = make_add(runtime), mix = make_mix(runtime);
    const auto cell = [&](std::size_t i) { return buffer.elements<int>(i, 1); };
    const Event root =
        queue.submit(make_throw(runtime), {readwrite(cell(0))}, {}, {.name = "root"});
    const Event reader = queue.submit(mix, {read(cell(0)), readwrite(cell(1))});
    const Event third = queue.submit(add, {readwrite(cell(1))}, {1});
    const Event other = queue.submit(add, {readwrite(cell(2))}, {1});
    const std::string failure = failure_of([&] { queue.synchronize(); });
    EXPECT_TRUE(contains(failure, "kernel_error: "));
    EXPECT_TRUE(contains(failure, "no luck"));
    EXPECT_TRUE(contains(failure, "'root'"));
    EXPECT_TRUE(contains(end_of(root), "kernel_error: "));
    for (const Event& event : {reader, third}) {
      EXPECT_TRUE(contains(end_of(event), "poisoned: "));
      EXPECT_TRUE(contains(end_of(event), "'root'"));
      EXPECT_TRUE(contains(end_of(event), "no luck"));
    }
    EXPECT_EQ(end_of(other), "OK");
    EXPECT_EQ(buffer.data<int>()[2], 1);

    buffer.data<int>()[0] = buffer.data<int>()[1] = 10;
    queue.submit(mix, {read(cell(0)), readwrite(cell(1))});
    queue.synchronize();
    EXPECT_EQ(buffer.data<int>()[1], 40) << "synchronize() forgets failures";
  }
}

TEST(Queues, FirstFailureInProgramOrderIsReported) {
  Held held;
  const Runtime runtime(kHostAndCard);
  const Queue queue = make_queue(runtime);
  const Buffer buffer = runtime.buffer(2 * sizeof(int));
  const Kernel failing = make_throw(runtime);
  const Region left = buffer.elements<int>(0, 1), right = buffer.elements<int>(1, 1);
  queue.submit(held.kernel(runtime), {readwrite(left)}, {}, {.domains = kOnHost});
  queue.submit(failing, {readwrite(left)}, {}, {.name = "first", .domains = kOnHost});
  const Event second =
      queue.submit(failing, {readwrite(right)}, {}, {.name = "second", .domains = kOnCard});
  EXPECT_EQ(status_of([&] { second.wait(); }), WEIR_STATUS_KERNEL_ERROR);
  held.open();
  EXPECT_TRUE(contains(failure_of([&] { queue.synchronize(); }), "'first'"));
  queue.synchronize();
}

TEST(Queues, RuntimeSynchronizeThatTimesOut_KeepsTheFailure) {
  Gate gate;
  const Runtime runtime(kHostAndCard);
  const Queue queue = make_queue(runtime);
  const Event thrown =
      queue.submit(make_throw(runtime), {}, {}, {.name = "thrown", .domains = kOnCard});
  EXPECT_EQ(status_of([&] { thrown.wait(); }), WEIR_STATUS_KERNEL_ERROR);
  const std::vector<Place> places = runtime.domain(0).partition(1, true);
  const Stream stream = places[0].stream();
  gate.close(runtime, stream);
  EXPECT_EQ(status_of([&] { runtime.synchronize(std::chrono::milliseconds(1)); }),
            WEIR_STATUS_TIMEOUT);
  gate.open();
  EXPECT_TRUE(contains(failure_of([&] { runtime.synchronize(); }), "'thrown'"));
  runtime.synchronize();
}

/// The copy home fails, and its stream says so, before the time is over for another.
TEST(Queues, QueueSynchronizeThatTimesOut_KeepsTheFailureOfACopy) {
  Held first, second;
  const Runtime runtime(
      "sim:cores=1,gbps=1000,latency_us=0,fail_copy=1,sim:cores=1,gbps=1000,latency_us=0");
  const Queue queue = make_queue(runtime);
  const Buffer buffer = runtime.buffer(sizeof(int));
  const Kernel set =
      runtime.kernel("set", [](const Call& call) { call.span<int>(0)[0] = call.scalar<int>(0); });
  const Kernel more = second.kernel(runtime, "more");
  queue.submit(set, {write(buffer.all())}, {1}, {.domains = 1}).wait();
  const Event running = queue.submit(first.kernel(runtime), {}, {}, {.domains = 2});
  first.await_start();
  running.on_complete(
      [&](weir_status, const char*) { queue.submit(more, {}, {}, {.domains = 2}); });
  std::thread opener([&] {
    while (queue.shares()[0].bytes_out == 0) std::this_thread::yield();
    first.open();
  });
  EXPECT_EQ(status_of([&] { queue.synchronize(std::chrono::milliseconds(100)); }),
            WEIR_STATUS_TIMEOUT);
  opener.join();
  second.open();
  EXPECT_TRUE(contains(failure_of([&] { queue.synchronize(); }), "failed, at its transfer 1"));
  queue.synchronize();
}

TEST(Queues, AcquireReportsTheFailureOfItsWriter) {
  for (const char* domains : {"host:cores=1", kHostAndCard}) {
    SCOPED_TRACE(domains);
    const Runtime runtime(domains);
    const Queue queue = make_queue(runtime);
    const Buffer buffer = runtime.buffer(2 * sizeof(int));
    const Region left = buffer.elements<int>(0, 1), right = buffer.elements<int>(1, 1);
    queue.submit(make_throw(runtime), {readwrite(left)});
    queue.submit(make_add(runtime), {readwrite(right)}, {1});
    queue.acquire(right);
    EXPECT_EQ(buffer.data<int>()[1], 1);
    EXPECT_TRUE(contains(failure_of([&] { queue.acquire(left); }), "no luck"));
    EXPECT_TRUE(contains(failure_of([&] { queue.synchronize(); }), "no luck"));
    queue.acquire(left);
  }
}

TEST(Queues, Cancel_EndsTasksNotStartedAndQueueStaysUsable) {
  for (const char* domains : {"host:cores=1", kCard}) {
    SCOPED_TRACE(domains);
    Held held;
    const Runtime runtime(domains);
    const Queue queue = make_queue(runtime);
    const Buffer buffer = runtime.buffer(sizeof(int));
    const Kernel add = make_add(runtime);
    const Event running = queue.submit(held.kernel(runtime), {});
    held.await_start();
    std::vector<Event> rest;
    for (int i = 0; i < 300; ++i) rest.push_back(queue.submit(add, {readwrite(buffer.all())}, {1}));
    const Event home = queue.flush(buffer.all());  // no task
    queue.cancel();
    held.open();
    queue.synchronize();
    EXPECT_EQ(end_of(running), "OK");
    for (const Event& event : rest) EXPECT_TRUE(contains(end_of(event), "cancelled"));
    EXPECT_EQ(end_of(home), "OK");
    EXPECT_EQ(buffer.data<int>()[0], 0);
    queue.submit(add, {readwrite(buffer.all())}, {1});
    queue.synchronize();
    EXPECT_EQ(buffer.data<int>()[0], 1);
  }
}

/// Those behind the few that the place has taken, too, while the first one runs.
TEST(Queues, Cancel_EndsDeferredTasksWhileAnotherRuns) {
  Held held;
  const Runtime runtime(kCard);
  const Queue queue = make_queue(runtime);
  const Kernel nothing = runtime.kernel("nothing", [](const Call&) {});
  const Event running = queue.submit(held.kernel(runtime), {});
  held.await_start();
  std::vector<Event> rest;
  for (int i = 0; i < 300; ++i) rest.push_back(queue.submit(nothing, {}));
  queue.cancel();
  EXPECT_EQ(status_of([&] { rest.back().wait(); }), WEIR_STATUS_CANCELLED);
  EXPECT_FALSE(running.complete());
  held.open();
  queue.synchronize();
}

/// What a task that ran has left comes home, and tasks that come later find it.
TEST(Queues, Cancel_KeepsResultOfRunningTaskAndPoisonsNone) {
  std::atomic<bool> started{false}, open{false};
  const Runtime runtime(kHostAndCard);
  const Queue queue = make_queue(runtime);
  const Buffer buffer = runtime.buffer(sizeof(int));
  const Kernel add = make_add(runtime);
  const Kernel slow = runtime.kernel("slow", [&](const Call& call) {
    call.span<int>(0)[0] += 5;
    started = true;
    started.notify_all();
    open.wait(false);
  });
  queue.submit(slow, {readwrite(buffer.all())}, {}, {.domains = kOnCard});
  started.wait(false);
  const Event dropped = queue.submit(add, {readwrite(buffer.all())}, {100}, {.domains = kOnHost});
  queue.cancel();
  queue.submit(add, {readwrite(buffer.all())}, {1}, {.domains = kOnCard});
  open = true;
  open.notify_all();
  EXPECT_EQ(failure_of([&] { queue.acquire(buffer.all()); }), "OK");
  EXPECT_EQ(failure_of([&] { queue.synchronize(); }), "OK");
  EXPECT_TRUE(contains(end_of(dropped), "cancelled"));
  EXPECT_EQ(buffer.data<int>()[0], 6);
}

TEST(Queues, KernelThatWaitsForItsQueue_GetsBusy) {
  for (const char* domains : {"host:cores=1", kHostAndCard}) {
    SCOPED_TRACE(domains);
    const Runtime runtime(domains);
    const Queue queue = make_queue(runtime);
    const Buffer buffer = runtime.buffer(16);
    std::string synchronized, acquired;
    const Kernel waits = runtime.kernel("waits", [&](const Call&) {
      synchronized = failure_of([&] { queue.synchronize(); });
      acquired = failure_of([&] { queue.acquire(buffer.all()); });
    });
    queue.submit(waits, {});
    queue.synchronize();
    EXPECT_TRUE(contains(synchronized, "busy: "));
    EXPECT_TRUE(contains(synchronized, "must not synchronise queue 'q'"));
    EXPECT_EQ(acquired, "busy: a kernel or callback must not wait for queue 'q'");
  }
}

// ---- Endings -----------------------------------------------------------------------------------

TEST(Queues, QueueDestroyedWithTasksInFlight_CompletesThemFirst) {
  for (const char* domains : {"host:cores=1", kCard, kHostAndCard}) {
    SCOPED_TRACE(domains);
    const Runtime runtime(domains);
    const Kernel add = make_add(runtime), failing = make_throw(runtime);
    const Buffer buffer = runtime.buffer(2 * sizeof(int));
    Event last, failed;
    {
      const Queue queue = make_queue(runtime);
      for (int i = 0; i < 300; ++i) {
        last = queue.submit(add, {readwrite(buffer.elements<int>(0, 1))}, {1});
      }
      failed = queue.submit(failing, {readwrite(buffer.elements<int>(1, 1))});
    }
    EXPECT_EQ(end_of(last), "OK");
    EXPECT_TRUE(contains(end_of(failed), "no luck"));
    EXPECT_EQ(buffer.data<int>()[0], 300) << "contents come home";
  }
}

TEST(Queues, BufferDestroyedWithTasksInFlight_CompletesThemFirst) {
  for (const char* domains : {"host:cores=1", kCard, kHostAndCard}) {
    SCOPED_TRACE(domains);
    const Runtime runtime(domains);
    const Queue queue = make_queue(runtime);
    const Kernel add = make_add(runtime);
    for (int round = 0; round < 10; ++round) {
      std::vector<int> values(64);
      {
        const Buffer buffer = runtime.wrap(values, "short");
        for (int i = 0; i < 30; ++i) queue.submit(add, {readwrite(buffer.all())}, {1});
      }
      EXPECT_EQ(values, std::vector<int>(64, 30)) << "a buffer goes when its tasks are over";
    }
    queue.synchronize();
    EXPECT_EQ(queue.info().completed, queue.info().submitted);
  }
}

TEST(Queues, BufferOfFailedTaskDestroyed_FailureIsReportedOnce) {
  const Runtime runtime(kHostAndCard);
  const Queue queue = make_queue(runtime);
  {
    const Buffer buffer = runtime.buffer(16);
    queue.submit(make_throw(runtime), {readwrite(buffer.all())}, {}, {.domains = kOnCard});
  }
  EXPECT_TRUE(contains(failure_of([&] { queue.synchronize(); }), "no luck"));
  queue.synchronize();
}

/// The task that runs ends only because the deferred one is cancelled.
TEST(Queues, RuntimeShutdownTimeout_CancelsDeferredTasks) {
  std::atomic<bool> open{false};
  std::atomic<int> ended{-1};
  auto choose = [](const char* task, const weir_candidate*, std::size_t) {
    return std::string(task) == "later" ? WEIR_POLICY_LATER : std::size_t{0};
  };
  weir_runtime_options options = WEIR_RUNTIME_OPTIONS_INIT;
  options.domains = kHostAndCard;
  options.shutdown_timeout_ns = 1'000'000;
  auto runtime = std::make_unique<Runtime>(options);
  add_policy(*runtime, "lazy", choose);
  const Queue queue = make_queue(*runtime, "lazy");
  const Kernel blocking = runtime->kernel("blocking", [&open](const Call&) { open.wait(false); });
  queue.submit(blocking, {});
  queue.submit(blocking, {}, {}, {.name = "later"})
      .on_complete([&](weir_status status, const char*) {
        ended = status;
        open = true;
        open.notify_all();
      });
  runtime.reset();
  EXPECT_EQ(ended, WEIR_STATUS_CANCELLED);
}

TEST(Queues, RuntimeDestroyed_CompletesTasksOfItsQueues) {
  std::vector<int> values(4);
  weir_runtime_options options = WEIR_RUNTIME_OPTIONS_INIT;
  options.domains = kHostAndCard;
  weir_runtime* runtime = nullptr;
  check(weir_runtime_create(&options, &runtime));
  weir_buffer* buffer = nullptr;
  check(weir_buffer_wrap(runtime, values.data(), 16, nullptr, &buffer));
  weir_queue_options wanted = WEIR_QUEUE_OPTIONS_INIT;
  wanted.no_models = true;
  weir_queue* queue = nullptr;
  check(weir_queue_create(runtime, &wanted, &queue));
  const weir_operand operand = {buffer, weir_region_range(0, 16), WEIR_ACCESS_WRITE};
  weir_task task = WEIR_TASK_INIT;
  task.kernel_name = "mem.set";
  const weir_scalar byte = weir_scalar_i64(1);
  task.scalars = &byte;
  task.scalar_count = 1;
  task.operands = &operand;
  task.operand_count = 1;
  check(weir_queue_submit(queue, &task, nullptr));
  weir_runtime_destroy(runtime);
  EXPECT_EQ(values, std::vector<int>(4, 0x01010101));
}

}  // namespace
}  // namespace weir
