// How often the watchdog speaks, in virtual time. What it says: tests/unit/runtime.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>

#include <weir/pipeline.hpp>
#include <weir/weir.hpp>

#include "base/threads.hpp"
#include "scheduler.hpp"
#include "standard_error.hpp"

namespace weir {
namespace {

constexpr std::int64_t kMillisecond = 1'000'000;

void pass(std::int64_t ns) { rt::sys::sleep_until(rt::sys::now_ns() + ns); }

/// Runs a program with a stream under a watchdog of 100 ms; returns how often that spoke.
std::size_t alarms_of(const char* domains, std::uint64_t seed,
                      const std::function<void(const Runtime&, const Stream&)>& program) {
  StandardError said;
  schedule::Options options;
  options.seed = seed;
  schedule::run(options, [&] {
    Runtime runtime(domains);
    const Place place = runtime.domain(0).place();
    program(runtime, place.stream());
  });
  return said.count("no action has ended");
}

class Watched : public testing::Test {
 protected:
  void SetUp() override { setenv("WEIR_WATCHDOG_S", "0.1", 1); }
  void TearDown() override { unsetenv("WEIR_WATCHDOG_S"); }
};

class Watchdog : public Watched, public testing::WithParamInterface<const char*> {};

TEST_P(Watchdog, KernelLongerThanTheTimeout_IsReportedOnce) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto program = [](const Runtime& runtime, const Stream& stream) {
      const Kernel minute =
          runtime.kernel("minute", [](const Call&) { pass(60'000 * kMillisecond); });
      for (int i = 0; i < 3; ++i) stream.compute(minute, {});
      stream.synchronize();
    };
    ASSERT_EQ(alarms_of(GetParam(), seed, program), 3u) << "seed " << seed;
  }
}

TEST_P(Watchdog, ActionsWithinTheTimeout_AreNotReported) {
  std::size_t actions = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto program = [&](const Runtime& runtime, const Stream& stream) {
      const Buffer x = runtime.buffer(1 << 10, "x");
      const Kernel delay = runtime.kernel("delay", [](const Call&) { pass(90 * kMillisecond); });
      for (int i = 0; i < 20; ++i, actions += 2) {
        stream.upload(x.all());
        stream.compute(delay, {readwrite(x.all())});
      }
      stream.synchronize();
    };
    ASSERT_EQ(alarms_of(GetParam(), seed, program), 0u) << "seed " << seed;
  }
  std::printf("proof: %zu actions, no false alarm\n", actions);
}

/// Its workers are actions that last as long as it does, but items end.
TEST_F(Watched, PipelineItemsWithinTheTimeout_CauseNoReport) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto program = [](const Runtime&, const Stream&) {
      const Runtime host("host:cores=1");
      const Pipeline pipeline(host);
      const auto frames = pipeline.tunnel<int>("frames");
      pipeline.source("camera", into(frames), [n = 0](const Outlet<int>& out) mutable {
        pass(90 * kMillisecond);
        out.put(n++);
        return n < 10;
      });
      pipeline.stage("show", frames, [](int) {});
      pipeline.start();
      pipeline.wait();
    };
    ASSERT_EQ(alarms_of("host:cores=1", seed, program), 0u) << "seed " << seed;
  }
}

TEST_P(Watchdog, NothingInFlight_CausesNoReport) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto program = [](const Runtime& runtime, const Stream& stream) {
      stream.compute(runtime.kernel("nothing", [](const Call&) {}), {});
      stream.synchronize();
      pass(60'000 * kMillisecond);
    };
    ASSERT_EQ(alarms_of(GetParam(), seed, program), 0u) << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Domains, Watchdog,
                         testing::Values("host:cores=1", "sim:cores=1",
                                         "sim:clock=virtual,cores=1"));

}  // namespace
}  // namespace weir
