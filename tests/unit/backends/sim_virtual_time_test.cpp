// Programs on simulated devices in virtual time: exact times, and the same ones every time.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <string>
#include <vector>
#include <weir/weir.hpp>

#include "thrown.hpp"

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

/// Registers a kernel that takes as many flops and bytes as its two scalars say.
Kernel moving(const Runtime& runtime, const char* name,
              weir_kernel_shape shape = WEIR_KERNEL_SHAPE_SERIAL) {
  return runtime.kernel(
      name, [](const Call&) {}, shape,
      [](const weir_call* call) {
        return weir_cost{call->scalars[0].value.f64, call->scalars[1].value.f64};
      });
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

TEST(SimVirtualTime, NegativeAndHugeKernelCosts_AreClamped) {
  const Runtime runtime(std::string(kCard) + ",slow_by=1000000");
  const Place place = runtime.domain(0).place();
  const Stream stream = place.stream();
  const auto run = [&](const char* name, weir_cost_function cost) {
    stream.compute(runtime.kernel(
                       name, [](const Call&) {}, WEIR_KERNEL_SHAPE_SERIAL, cost),
                   {});
    stream.synchronize();
  };
  run("less than nothing", [](const weir_call*) { return weir_cost{-1e6, 0}; });
  EXPECT_EQ(runtime.now().count(), 1);
  run("endless", [](const weir_call*) { return weir_cost{1e300, 0}; });
  EXPECT_EQ(runtime.now().count(), 1 + 100'000'000'000'000'000);
}

/// As where a team has threads.
TEST(SimVirtualTime, NestedTeamRunOrBarrierOutsideARun_FailsTheKernel) {
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
    return thrown_by([&] { stream.synchronize(); });
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
            "");
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

TEST(SimVirtualTime, ParallelKernel_UsesAllCoresOfItsPlace) {
  const Runtime runtime(kCard);
  int calls = 0;
  const Kernel wide = millisecond(runtime, "wide", &calls, WEIR_KERNEL_SHAPE_PARALLEL);
  const Place place = runtime.domain(0).place();
  const Stream stream = place.stream();
  for (int i = 0; i < 4; ++i) stream.compute(wide, {});
  stream.synchronize();
  EXPECT_EQ(simulated(runtime).count(), 1000);
}

TEST(SimVirtualTime, HardwareThreads_ShareCoreRateAndAddLaunchAndForkCosts) {
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

TEST(SimVirtualTime, PlaceThatSharesACore_IsSlowedByContention) {
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
  EXPECT_TRUE(runtime.domain(0).info().skips_kernels);
}

TEST(SimVirtualTime, SkippedKernels_CopiesTakeTheirTimeAndMoveNoBytes) {
  const Runtime runtime(std::string(kCard) + ",kernels=skip");
  const Buffer data = runtime.buffer(kBlock);
  data.data<char>()[0] = 1;
  const Place place = runtime.domain(0).place(1);
  const Stream stream = place.stream();
  stream.upload(data.all());
  stream.synchronize();
  data.data<char>()[0] = 2;
  stream.download(data.all());
  stream.synchronize();
  EXPECT_EQ(simulated(runtime).count(), 2000);
  EXPECT_EQ(data.data<char>()[0], 2);
}

constexpr double kMB = 1e6;
const std::string kSharedMemory = std::string(kCard) + ",memory_gbps=10";  // 10 MB a millisecond

/// Returns when each event was complete, in microseconds.
std::vector<std::int64_t> completions(const Runtime& runtime, const std::vector<Event>& events) {
  std::vector<std::int64_t> times;
  for (const Event& event : events) {
    event.wait();
    times.push_back(simulated(runtime).count());
  }
  return times;
}

TEST(SimMemoryBandwidth, DeviceDividedIntoPlaces_TotalBandwidthIsUnchanged) {
  for (const std::size_t places : {1u, 2u, 4u}) {
    const Runtime runtime(kSharedMemory);
    const Kernel kernel = moving(runtime, "moving");
    const std::vector<Place> all = runtime.domain(0).partition(places);
    std::vector<Stream> streams;
    for (const Place& place : all) streams.push_back(place.stream());
    const Buffer data = runtime.buffer(8);
    for (std::size_t i = 0; i < 8; ++i) {
      streams[i % places].compute(kernel, {write(data.range(i, 1))}, {0.0, 10 * kMB});
    }
    runtime.synchronize();
    EXPECT_EQ(simulated(runtime).count(), 8000) << places << " places";
  }
}

/// A has the memory alone for 2 ms, a quarter of it until B ends, and then all of it again.
TEST(SimMemoryBandwidth, LaterKernel_ReducesBandwidthOfRunningKernelsUntilItEnds) {
  const Runtime runtime(kSharedMemory);
  const Kernel serial = moving(runtime, "serial");
  const Kernel team = moving(runtime, "team", WEIR_KERNEL_SHAPE_PARALLEL);
  const Place narrow = runtime.domain(0).place(1), wide = runtime.domain(0).place(3);
  const Stream first = narrow.stream(), second = wide.stream();
  const Buffer data = runtime.buffer(1);
  const Event a = first.compute(serial, {}, {0.0, 40 * kMB});
  second.compute(serial, {write(data.all())}, {2e6, 0.0});
  const Event b = second.compute(team, {write(data.all())}, {0.0, 30 * kMB});
  EXPECT_EQ(completions(runtime, {b, a}), (std::vector<std::int64_t>{6000, 7000}));
}

TEST(SimMemoryBandwidth, Team_GetsBandwidthInProportionToItsThreads) {
  const Runtime runtime(kSharedMemory + ",threads=2");
  const Kernel serial = moving(runtime, "serial");
  const Kernel team = moving(runtime, "team", WEIR_KERNEL_SHAPE_PARALLEL);
  const Place narrow = runtime.domain(0).place(2), wide = runtime.domain(0).place(4);
  const Stream first = narrow.stream(), second = wide.stream();
  const Event b = second.compute(team, {}, {0.0, 8 * kMB});   // 4 threads: 8 MB/ms
  const Event a = first.compute(serial, {}, {0.0, 3 * kMB});  // 1 thread: 2 MB/ms
  EXPECT_EQ(completions(runtime, {b, a}), (std::vector<std::int64_t>{1000, 1100}));
}

TEST(SimMemoryBandwidth, KernelPastItsMemoryTraffic_ReleasesItsBandwidth) {
  const Runtime runtime(kSharedMemory);
  const Kernel kernel = moving(runtime, "moving");
  const Place one = runtime.domain(0).place(1), other = runtime.domain(0).place(1);
  const Stream first = one.stream(), second = other.stream();
  const Event a = first.compute(kernel, {}, {5e6, 1 * kMB});  // both at 5 MB/ms for 0.2 ms
  const Event b = second.compute(kernel, {}, {1e6, 20 * kMB});
  EXPECT_EQ(completions(runtime, {b, a}), (std::vector<std::int64_t>{2100, 5000}));
}

TEST(SimMemoryBandwidth, KernelDuringLaunchLatency_UsesNoBandwidth) {
  const Runtime runtime(kSharedMemory + ",launch_us=500");
  const Kernel kernel = moving(runtime, "moving");
  const Place one = runtime.domain(0).place(1), other = runtime.domain(0).place(1);
  const Stream first = one.stream(), second = other.stream();
  const Buffer data = runtime.buffer(1);
  const Event a = first.compute(kernel, {}, {0.0, 15 * kMB});  // alone from 0.5 to 1.5 ms
  second.compute(kernel, {write(data.all())}, {0.5e6, 0.0});   // to 1 ms
  const Event b = second.compute(kernel, {write(data.all())}, {0.0, 10 * kMB});
  EXPECT_EQ(completions(runtime, {a, b}), (std::vector<std::int64_t>{2500, 3000}));
}

TEST(SimMemoryBandwidth, SlowedDevice_HasReducedBandwidth) {
  const Runtime runtime(kSharedMemory + ",slow_at_ms=1,slow_by=2");
  const Kernel kernel = moving(runtime, "moving");
  const Place one = runtime.domain(0).place(1), other = runtime.domain(0).place(1);
  const Stream first = one.stream(), second = other.stream();
  const Event a = first.compute(kernel, {}, {0.0, 6 * kMB});  // 5 MB in the first ms, then 2.5 a ms
  const Event b = second.compute(kernel, {}, {0.0, 12 * kMB});
  EXPECT_EQ(completions(runtime, {a, b}), (std::vector<std::int64_t>{1400, 2600}));
}

TEST(SimMemoryBandwidth, EachDevice_HasItsOwnBandwidth) {
  const Runtime runtime(kSharedMemory + "," + kSharedMemory + ",speed=2");
  const Kernel kernel = moving(runtime, "moving");
  std::vector<Place> places;
  std::vector<Stream> streams;
  std::vector<Event> events;
  for (const std::size_t domain : {1u, 0u}) {
    places.push_back(runtime.domain(domain).place());
    streams.push_back(places.back().stream());
    events.push_back(streams.back().compute(kernel, {}, {0.0, 10 * kMB}));
  }
  EXPECT_EQ(completions(runtime, events), (std::vector<std::int64_t>{500, 1000}));
}

TEST(SimMemoryBandwidth, CoreContention_SlowsComputeAndNotBandwidth) {
  const Runtime runtime(kSharedMemory + ",threads=4,contention=1.5");
  const Kernel team = moving(runtime, "team", WEIR_KERNEL_SHAPE_PARALLEL);
  const Place place = runtime.domain(0).place(6);
  place.stream().compute(team, {}, {1e6, 10 * kMB}).wait();
  EXPECT_EQ(simulated(runtime).count(),
            1000);  // all of the memory, and 1.5 cores, 1.5 times as slow
}

TEST(SimMemoryBandwidth, NegativeNanTinyAndHugeBytes_AreClamped) {
  const Runtime runtime(kSharedMemory);
  const Kernel kernel = moving(runtime, "moving");
  const Place place = runtime.domain(0).place();
  const Stream stream = place.stream();
  for (const double bytes : {-1.0, std::nan(""), 0.001}) {
    const auto before = runtime.now();
    stream.compute(kernel, {}, {0.0, bytes});
    stream.synchronize();
    EXPECT_EQ((runtime.now() - before).count(), 1) << bytes;
  }
  const auto before = runtime.now();
  stream.compute(kernel, {}, {0.0, HUGE_VAL});
  stream.synchronize();
  EXPECT_EQ((runtime.now() - before).count(), 100'000'000'000'000'000);
}

TEST(SimRealTime, SkippedKernelsShareMemoryBandwidth) {
  const Runtime runtime("host,sim:cores=2,gflops=1,memory_gbps=10,kernels=skip");
  const Kernel kernel = moving(runtime, "moving");
  const Place one = runtime.domain(1).place(1), other = runtime.domain(1).place(1);
  const Stream first = one.stream(), second = other.stream();
  const auto start = std::chrono::steady_clock::now();
  for (const Stream* stream : {&first, &second}) {
    for (int i = 0; i < 2; ++i) stream->compute(kernel, {}, {0.0, 10 * kMB});
  }
  runtime.synchronize();
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(4));
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

TEST(SimVirtualTime, ActionLargerThanDeviceMemory_FailsAndNamesSizeAndDomain) {
  const Runtime runtime(std::string(kCard) + ",memory=1MiB");
  const Buffer large = runtime.buffer(2 << 20, "large"), small = runtime.buffer(1 << 20, "small");
  const Place place = runtime.domain(0).place();
  const Stream stream = place.stream();
  stream.upload(large.all());
  const std::string why = thrown_by([&] { stream.synchronize(); }, WEIR_STATUS_OUT_OF_MEMORY);
  EXPECT_NE(why.find("2 MiB of domain 'sim:0'"), std::string::npos) << why;
  stream.upload(small.all());
  stream.synchronize();
}

}  // namespace
}  // namespace weir
