// Programs on simulated cards in virtual time: exact times, and the same ones every time.
#include <gtest/gtest.h>

#include <chrono>
#include <vector>
#include <weir/weir.hpp>

namespace weir {
namespace {

constexpr std::size_t kBlock = 1'000'000;
constexpr const char* kCard = "sim:cores=4,clock=virtual,gbps=1,latency_us=0,duplex=half,gflops=1";

/// Registers a kernel of 1e6 flops, so 1 ms on a core of the card, that counts its calls.
Kernel millisecond(const Runtime& runtime, const char* name, int* calls,
                   weir_kernel_shape shape = WEIR_KERNEL_SHAPE_SERIAL) {
  const weir_implementation code{"host",
                                 [](const weir_call* call) {
                                   ++*static_cast<int*>(call->payload);
                                   return WEIR_STATUS_OK;
                                 },
                                 calls};
  weir_kernel_options options = WEIR_KERNEL_OPTIONS_INIT;
  options.name = name;
  options.shape = shape;
  options.implementations = &code;
  options.implementation_count = 1;
  options.cost = [](const weir_call*) { return weir_cost{1e6, 0}; };
  weir_kernel* made = nullptr;
  check(weir_kernel_register(runtime.handle(), &options, &made));
  return Kernel(made);
}

std::chrono::microseconds simulated(const Runtime& runtime) {
  return std::chrono::duration_cast<std::chrono::microseconds>(runtime.now());
}

TEST(SimVirtualTime, ChainOfTransferKernelTransferAddsUp) {
  const Runtime runtime(kCard);
  int calls = 0;
  const Kernel kernel = millisecond(runtime, "ms", &calls);
  const Buffer data = runtime.buffer(kBlock);
  const Place place = runtime.domain(0).place();
  const Stream stream = place.stream();
  stream.upload(data.all());
  stream.compute(kernel, {readwrite(data.all())});
  stream.download(data.all());
  EXPECT_EQ(runtime.now().count(), 0);
  stream.synchronize();
  EXPECT_EQ(simulated(runtime).count(), 3000);
  EXPECT_EQ(calls, 1);
}

TEST(SimVirtualTime, KernelsOfNonsensicalCostsTakeATime) {
  const Runtime runtime(std::string(kCard) + ",slow_by=1000000");
  const Place place = runtime.domain(0).place();
  const Stream stream = place.stream();
  const auto run = [&](const char* name, weir_cost_function cost) {
    const weir_implementation code{"host", [](const weir_call*) { return WEIR_STATUS_OK; },
                                   nullptr};
    weir_kernel_options options = WEIR_KERNEL_OPTIONS_INIT;
    options.name = name;
    options.implementations = &code;
    options.implementation_count = 1;
    options.cost = cost;
    weir_kernel* made = nullptr;
    check(weir_kernel_register(runtime.handle(), &options, &made));
    stream.compute(Kernel(made), {});
    stream.synchronize();
  };
  run("less than nothing", [](const weir_call*) { return weir_cost{-1e6, 0}; });
  EXPECT_EQ(runtime.now().count(), 1);
  run("endless", [](const weir_call*) { return weir_cost{1e300, 0}; });
  EXPECT_EQ(runtime.now().count(), 1 + 100'000'000'000'000'000);
}

/// As where a team has threads.
TEST(SimVirtualTime, TeamsRefuseNestedRuns) {
  const Runtime runtime(kCard);
  const Place place = runtime.domain(0).place();
  const Stream stream = place.stream();
  const auto run = [&](const char* name, weir_host_function function) {
    const weir_implementation code{"host", function, nullptr};
    weir_kernel_options options = WEIR_KERNEL_OPTIONS_INIT;
    options.name = name;
    options.shape = WEIR_KERNEL_SHAPE_PARALLEL;
    options.implementations = &code;
    options.implementation_count = 1;
    weir_kernel* made = nullptr;
    check(weir_kernel_register(runtime.handle(), &options, &made));
    stream.compute(Kernel(made), {});
    try {
      stream.synchronize();
      return std::string("OK");
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  static constexpr auto kNothing = [](weir_team*, std::size_t, void*) {};
  const std::string nested = run("nested", [](const weir_call* call) {
    const auto again = [](weir_team* team, std::size_t, void*) {
      weir_team_run(team, kNothing, nullptr);
    };
    weir_team_run(call->team, again, nullptr);
    return WEIR_STATUS_OK;
  });
  EXPECT_NE(nested.find("weir_team_run() inside"), std::string::npos) << nested;
  const std::string lone = run("lone", [](const weir_call* call) {
    weir_team_barrier(call->team);
    return WEIR_STATUS_OK;
  });
  EXPECT_NE(lone.find("weir_team_barrier() outside"), std::string::npos) << lone;
  EXPECT_EQ(run("in turn",
                [](const weir_call* call) {
                  const auto wait = [](weir_team* team, std::size_t, void*) {
                    weir_team_barrier(team);
                  };
                  weir_team_run(call->team, wait, nullptr);
                  weir_team_run(call->team, wait, nullptr);
                  return WEIR_STATUS_OK;
                }),
            "OK");
}

TEST(SimVirtualTime, IndependentKernelsFillTheCores) {
  const Runtime runtime(kCard);
  int calls = 0;
  const Kernel kernel = millisecond(runtime, "ms", &calls);
  const Buffer data = runtime.buffer(10);
  const Place place = runtime.domain(0).place();
  const Stream stream = place.stream();
  for (std::size_t i = 0; i < 10; ++i) stream.compute(kernel, {write(data.range(i, 1))});
  stream.synchronize();
  EXPECT_EQ(simulated(runtime).count(), 3000);
}

TEST(SimVirtualTime, ParallelKernelTakesTheWholePlace) {
  const Runtime runtime(kCard);
  int calls = 0;
  const Kernel wide = millisecond(runtime, "wide", &calls, WEIR_KERNEL_SHAPE_PARALLEL);
  const Place place = runtime.domain(0).place();
  const Stream stream = place.stream();
  for (int i = 0; i < 4; ++i) stream.compute(wide, {});
  stream.synchronize();
  EXPECT_EQ(simulated(runtime).count(), 1000);
}

TEST(SimVirtualTime, ThreadsShareTheirCore) {
  const Runtime runtime(std::string(kCard) + ",threads=4,launch_us=5,fork_us=0.25");
  int calls = 0;
  const Kernel serial = millisecond(runtime, "serial", &calls);
  const Kernel wide = millisecond(runtime, "wide", &calls, WEIR_KERNEL_SHAPE_PARALLEL);
  EXPECT_EQ(runtime.domain(0).info().threads_per_core, 4U);
  const Place place = runtime.domain(0).place();
  EXPECT_EQ(place.cores(), 16U);
  const Stream stream = place.stream();
  stream.compute(serial, {});
  stream.synchronize();
  EXPECT_EQ(simulated(runtime).count(), 4000 + 5);
  stream.compute(wide, {});
  stream.synchronize();
  EXPECT_EQ(simulated(runtime).count(), 4000 + 5 + 250 + 5 + 4);
}

TEST(SimVirtualTime, PlacesThatShareACoreAreSlower) {
  const Runtime runtime(std::string(kCard) + ",threads=4,contention=1.5");
  int calls = 0;
  const Kernel kernel = millisecond(runtime, "ms", &calls, WEIR_KERNEL_SHAPE_PARALLEL);
  const Place whole = runtime.domain(0).place(4), part = runtime.domain(0).place(6);
  const Stream fast = whole.stream(), slow = part.stream();
  fast.compute(kernel, {}).wait();
  EXPECT_EQ(simulated(runtime).count(), 1000);
  slow.compute(kernel, {}).wait();
  EXPECT_EQ(simulated(runtime).count(), 2000);  // 1.5 cores, 1.5 times as slow
}

TEST(SimVirtualTime, SpeedScalesTheKernelsOnly) {
  const Runtime runtime(std::string(kCard) + ",speed=0.5");
  int calls = 0;
  const Kernel kernel = millisecond(runtime, "ms", &calls);
  const Buffer data = runtime.buffer(kBlock);
  const Place place = runtime.domain(0).place();
  const Stream stream = place.stream();
  stream.upload(data.all());
  stream.compute(kernel, {read(data.all())});
  stream.synchronize();
  EXPECT_EQ(simulated(runtime).count(), 1000 + 2000);
}

TEST(SimVirtualTime, TransfersOverlapKernels) {
  const Runtime runtime(kCard);
  int calls = 0;
  const Kernel kernel = millisecond(runtime, "ms", &calls);
  const Buffer data = runtime.buffer(4 * kBlock);
  const Place place = runtime.domain(0).place(1);
  const Stream stream = place.stream();
  for (std::size_t i = 0; i < 4; ++i) {
    const Region block = data.range(i * kBlock, kBlock);
    stream.upload(block);
    stream.compute(kernel, {readwrite(block)});
  }
  stream.synchronize();
  EXPECT_EQ(simulated(runtime).count(), 5000);
}

TEST(SimVirtualTime, SkippedKernelsTakeTheirTimeAndDoNotRun) {
  const Runtime runtime(std::string(kCard) + ",kernels=skip");
  int calls = 0;
  const Kernel kernel = millisecond(runtime, "ms", &calls);
  const Place place = runtime.domain(0).place(1);
  const Stream stream = place.stream();
  for (int i = 0; i < 5; ++i) stream.compute(kernel, {});
  stream.synchronize();
  EXPECT_EQ(simulated(runtime).count(), 5000);
  EXPECT_EQ(calls, 0);
}

TEST(SimRealTime, SkippedKernelsTakeAtLeastTheirTimeAndDoNotRun) {
  const Runtime runtime("host,sim:gflops=1,kernels=skip");
  int calls = 0;
  const Kernel kernel = millisecond(runtime, "ms", &calls);
  const Place place = runtime.domain(1).place(1);
  const Stream stream = place.stream();
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 5; ++i) stream.compute(kernel, {});
  stream.synchronize();
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(5));
  EXPECT_EQ(calls, 0);
}

/// A program of transfers and kernels over streams of two cards with waits between them; returns
/// when each of its actions was complete, and what the trace says.
std::vector<double> times_of_a_program() {
  const Runtime runtime(std::string(kCard) + "," +
                        "sim:cores=2,clock=virtual,gbps=2,latency_us=5,duplex=full,gflops=3");
  int calls = 0;
  const Kernel kernel = millisecond(runtime, "ms", &calls);
  const Buffer data = runtime.buffer(8 * kBlock);
  runtime.start_trace();
  std::vector<Place> places;
  std::vector<Stream> streams;
  for (std::size_t i = 0; i < 2; ++i) {
    places.push_back(runtime.domain(i).place());
    for (int j = 0; j < 2; ++j) streams.push_back(places.back().stream());
  }
  std::vector<Event> events;
  for (std::size_t i = 0; i < 32; ++i) {
    const Region part = data.range(i % 8 * kBlock, kBlock / (1 + i % 3));
    const Stream& stream = streams[i % 4];
    if (i >= 5) stream.wait(events[i - 5], part);
    stream.upload(part);
    stream.compute(kernel, {readwrite(part)});
    events.push_back(stream.download(part));
  }
  std::vector<double> times;
  for (const Event& event : events) {
    event.wait();
    times.push_back(static_cast<double>(runtime.now().count()));
  }
  runtime.synchronize();
  const weir_trace_summary summary = runtime.trace_summary();
  times.insert(times.end(), {summary.measured_s, summary.compute_s, summary.transfer_s,
                             summary.critical_path_s, summary.busiest_link_s});
  return times;
}

TEST(SimVirtualTime, TheSameProgramTakesTheSameTimesAgain) {
  const std::vector<double> first = times_of_a_program();
  EXPECT_GT(first.back(), 0);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(times_of_a_program(), first);
}

TEST(SimVirtualTime, ActionLargerThanTheCardFailsAndNamesTheLimit) {
  const Runtime runtime(std::string(kCard) + ",memory=1MiB");
  const Buffer large = runtime.buffer(2 << 20, "large"), small = runtime.buffer(1 << 20, "small");
  const Place place = runtime.domain(0).place();
  const Stream stream = place.stream();
  stream.upload(large.all());
  try {
    stream.synchronize();
    FAIL() << "2 MiB fit in 1 MiB";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), WEIR_STATUS_OUT_OF_MEMORY);
    EXPECT_NE(std::string(error.what()).find("2 MiB of domain 'sim:0'"), std::string::npos)
        << error.what();
  }
  stream.upload(small.all());
  stream.synchronize();
}

}  // namespace
}  // namespace weir
