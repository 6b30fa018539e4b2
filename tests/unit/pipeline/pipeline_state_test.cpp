// What a pipeline says about itself while it works.
#include <weir/pipeline.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "pipeline/latencies.hpp"

namespace pipeline_state {
namespace {

using weir::into;
using weir::Outlet;
using weir::Pipeline;
using weir::PipelineState;
using weir::Runtime;
using weir::rt::Latencies;

std::uint64_t count_of(const weir_latency& latency) {
  return std::accumulate(std::begin(latency.items), std::end(latency.items), std::uint64_t{0});
}

TEST(LatencyClasses, UpperBoundOfAClass_IsAtMostAnEighthAboveTheAge) {
  for (std::int64_t age = 0; age < (std::int64_t{1} << 40); age = age * 9 / 8 + 1) {
    const std::int64_t most = Latencies::most_of(Latencies::class_of(age));
    EXPECT_GE(most, age);
    EXPECT_LE(most, age + age / 8);
  }
  for (std::size_t i = 0; i < WEIR_LATENCY_CLASSES; ++i) {
    EXPECT_EQ(Latencies::class_of(Latencies::most_of(i)), i);
  }
  EXPECT_EQ(Latencies::class_of(-5), 0u);
  EXPECT_EQ(Latencies::class_of(INT64_MAX), std::size_t{WEIR_LATENCY_CLASSES - 1});
}

TEST(LatencyClasses, PercentileWithABaseline_CountsOnlyLaterItems) {
  Latencies latencies;
  weir_latency before{}, now{};
  EXPECT_LT(weir::percentile(now, 50).count(), 0);
  latencies.note(7, 90);
  latencies.read(before);
  latencies.note(1'000, 9);
  latencies.note(1'000'000, 1);
  latencies.read(now);
  EXPECT_EQ(weir::percentile(now, 90).count(), 7);
  EXPECT_EQ(weir::percentile(now, 99).count(), Latencies::most_of(Latencies::class_of(1'000)));
  EXPECT_EQ(weir::percentile(now, 100).count(), Latencies::most_of(Latencies::class_of(1'000'000)));
  EXPECT_EQ(weir::percentile(now, 50, &before).count(),
            Latencies::most_of(Latencies::class_of(1'000)));
  EXPECT_LT(weir::percentile(before, 50, &now).count(), 0);
  for (const double percent : {0.0, -1.0, 101.0}) {
    EXPECT_THROW(weir::percentile(now, percent), weir::Error) << percent;
  }
}

TEST(LatencyClasses, PercentileOfAnExactItemCount_StaysInTheLowerClass) {
  for (std::uint64_t percent = 1; percent < 100; ++percent) {
    weir_latency latency{};
    latency.items[1] = percent;
    latency.items[2] = 100 - percent;
    EXPECT_EQ(weir::percentile(latency, static_cast<double>(percent)).count(), 1) << percent;
  }
}

/// A source, a kernel of a device behind a slow link, and a stage, in virtual time.
struct OnACard {
  explicit OnACard(std::uint64_t items)
      : twice(runtime.kernel("twice",
                             [](const weir::Call& call) {
                               const auto in = call.span<const std::uint64_t>(0);
                               const auto out = call.span<std::uint64_t>(1);
                               for (std::size_t i = 0; i < in.size(); ++i) out[i] = 2 * in[i];
                             })),
        place(runtime.domain(0).place()),
        raw(pipeline.tunnel<std::uint64_t>("raw")),
        doubled(pipeline.tunnel<std::uint64_t>("doubled")) {
    pipeline.source("numbers", into(raw),
                    [items, next = std::uint64_t{0}](const Outlet<std::uint64_t>& out) mutable {
                      out.put(next++);
                      return next < items;
                    });
    pipeline.kernel("twice", raw, into(doubled), twice, place, {.batch = 16});
    pipeline.stage("use", doubled, [](std::uint64_t) {});
  }

  Runtime runtime{"sim:clock=virtual,gbps=6,latency_us=100,gflops=1,kernels=skip"};
  weir::Kernel twice;
  weir::Place place;
  Pipeline pipeline{runtime};
  weir::Tunnel<std::uint64_t> raw, doubled;
};

TEST(PipelineStates, StateBeforeTheStart_DescribesStagesAndTunnels) {
  const OnACard rig(10);
  const PipelineState state = rig.pipeline.state();
  ASSERT_EQ(state.stages.size(), 3u);
  ASSERT_EQ(state.tunnels.size(), 2u);
  EXPECT_EQ(state.info.elapsed_ns, 0u);
  const weir_stage_state &source = state.stages[0], &kernel = state.stages[1];
  EXPECT_STREQ(source.name, "numbers");
  EXPECT_EQ(source.input, SIZE_MAX);
  ASSERT_EQ(source.output_count, 1u);
  EXPECT_STREQ(state.tunnels[source.outputs[0]].name, "raw");
  EXPECT_EQ(state.tunnels[source.outputs[0]].stage, 1u);
  EXPECT_EQ(kernel.input, source.outputs[0]);
  EXPECT_TRUE(kernel.on_device);
  EXPECT_FALSE(source.on_device);
  EXPECT_EQ(state.tunnels[0].capacity, 1024u);
}

TEST(PipelineStates, StagesAddedBeforeTheStart_AreReported) {
  const Runtime runtime("host:cores=1");
  const Pipeline pipeline(runtime);
  const auto items = pipeline.tunnel<int>("items");
  pipeline.tunnel<int>("others");
  EXPECT_TRUE(pipeline.stages().empty());
  pipeline.stage("take", items, [](int) {});
  const auto stages = pipeline.stages();
  ASSERT_EQ(stages.size(), 1u);
  EXPECT_STREQ(stages[0].name, "take");
  EXPECT_EQ(pipeline.info().tunnels, 2u);
}

TEST(PipelineStates, DeviceInVirtualTime_LatencyEqualsTheElapsedVirtualTime) {
  const OnACard rig(1);
  rig.pipeline.state();
  rig.pipeline.run();
  const PipelineState state = rig.pipeline.state();
  EXPECT_GE(state.info.elapsed_ns, 200'000u);  // to the device and back
  EXPECT_LT(state.info.elapsed_ns, 400'000u);
  for (const std::size_t stage : {1u, 2u}) {
    const weir_latency& latency = state.stages[stage].latency;
    EXPECT_EQ(count_of(latency), 1u);
    EXPECT_EQ(
        weir::percentile(latency, 50).count(),
        Latencies::most_of(Latencies::class_of(static_cast<std::int64_t>(state.info.elapsed_ns))));
  }
  EXPECT_EQ(state.stages[1].busy_ns, state.info.elapsed_ns);
  EXPECT_EQ(state.stages[2].busy_ns, 0u);
}

TEST(PipelineStates, PollingWithZeroTimeoutInVirtualTime_PipelineEnds) {
  const OnACard rig(100);
  rig.pipeline.start();
  bool over = false;
  for (int asked = 0; !over && asked < 100'000; ++asked) {
    try {
      rig.pipeline.wait(std::chrono::nanoseconds(0));
      over = true;
    } catch (const weir::Error& error) {
      ASSERT_EQ(error.status(), WEIR_STATUS_TIMEOUT) << error.what();
    }
  }
  EXPECT_TRUE(over);
}

TEST(PipelineStates, MeasureNoLatencyBeforeItIsRequested) {
  const OnACard rig(100);
  rig.pipeline.run();
  const PipelineState state = rig.pipeline.state();
  for (const weir_stage_state& stage : state.stages) EXPECT_EQ(count_of(stage.latency), 0u);
  EXPECT_EQ(state.stages[0].put, 100u);
  EXPECT_EQ(state.stages[1].complete, 100u);
  EXPECT_EQ(state.stages[1].put, 100u);
  EXPECT_EQ(state.tunnels[1].complete, 100u);
  EXPECT_EQ(state.tunnels[1].under_way + state.tunnels[1].waiting, 0u);
  EXPECT_TRUE(state.stages[2].at_end);
  EXPECT_TRUE(state.info.at_end);
}

/// The state distinguishes items that wait in the tunnel from the one that is worked on.
TEST(PipelineStates, BlockedStage_StateSeparatesWaitingFromInFlightItems) {
  const Runtime runtime("host");
  std::atomic<bool> open{false};
  const Pipeline pipeline(runtime, {.batch = 1});
  const auto items = pipeline.tunnel<int>("items", {.capacity = 8});
  pipeline.stage("gate", items, [&](int) { open.wait(false); }, {.workers = 1});
  auto feed = pipeline.feed(items);
  pipeline.state();
  pipeline.start();
  for (int i = 0; i < 3; ++i) feed.put(i);
  PipelineState state = pipeline.state();
  while (state.tunnels[0].waiting != 2) {
    std::this_thread::yield();
    state = pipeline.state();
  }
  EXPECT_EQ(state.tunnels[0].under_way, 1u);
  EXPECT_EQ(state.tunnels[0].created, 3u);
  EXPECT_EQ(state.tunnels[0].complete, 0u);
  EXPECT_EQ(state.stages[0].workers, 1u);
  EXPECT_FALSE(state.stages[0].at_end);
  open = true;
  open.notify_all();
  feed.close();
  pipeline.wait();
  state = pipeline.state();
  EXPECT_EQ(state.tunnels[0].complete, 3u);
  EXPECT_GE(count_of(state.stages[0].latency), 1u);
  EXPECT_GT(state.info.elapsed_ns, 0u);
  EXPECT_EQ(state.info.elapsed_ns, pipeline.state().info.elapsed_ns);  // the end is the end
}

/// Long calls are all measured, so nothing is estimated.
TEST(PipelineStates, SlowStage_BusyTimeCoversItsCalls) {
  const Runtime runtime("host");
  const Pipeline pipeline(runtime, {.batch = 1});
  const auto items = pipeline.tunnel<int>("items");
  pipeline.source("numbers", into(items), [next = 0](const Outlet<int>& out) mutable {
    out.put(next++);
    return next < 20;
  });
  pipeline.stage("slow", items, [](int) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(200);
    while (std::chrono::steady_clock::now() < until) {
    }
  });
  pipeline.state();
  pipeline.run();
  const PipelineState state = pipeline.state();
  EXPECT_GE(state.stages[1].busy_ns, 20 * 200'000u);
  EXPECT_LE(state.stages[1].busy_ns, state.stages[1].workers * state.info.elapsed_ns);
}

/// Latencies grow along a chain, and those of loops and several epochs come through.
TEST(PipelineStates, LoopsAndEpochs_ItemCountsAndLatenciesAreRecorded) {
  const Runtime runtime("host");
  for (const weir_relief relief : {WEIR_RELIEF_BOTH, WEIR_RELIEF_WARP, WEIR_RELIEF_OFF}) {
    const Pipeline pipeline(runtime, {.epochs = 4, .relief = relief});
    const auto roots = pipeline.tunnel<int>("roots", {.capacity = 4});
    const auto leaves = pipeline.tunnel<int>("leaves");
    pipeline.source("numbers", into(roots),
                    [next = 0](const Outlet<int>& out, weir::StageContext context) mutable {
                      out.put(5);
                      if (++next % 10 == 0) context.end_epoch();
                      return next < 500;
                    });
    pipeline.stage("split", roots, into(roots, leaves),
                   [](int depth, const Outlet<int>& again, const Outlet<int>& leaf) {
                     if (depth == 0) return leaf.put(depth);
                     again.put(depth - 1);
                     again.put(depth - 1);
                   });
    std::atomic<int> seen{0};
    pipeline.stage("use", leaves, [&](int) { ++seen; }, {.workers = 1});
    pipeline.state();
    pipeline.run();
    EXPECT_EQ(seen, 500 * 32);
    const PipelineState state = pipeline.state();
    EXPECT_EQ(state.stages[0].put, 500u);
    EXPECT_EQ(state.stages[1].complete, 500u * 63);
    EXPECT_EQ(state.stages[1].put, 500u * (62 + 32));
    EXPECT_GT(count_of(state.stages[1].latency), 0u);
    EXPECT_GT(count_of(state.stages[2].latency), 0u);
    EXPECT_LE(count_of(state.stages[2].latency), 500u * 32);
  }
}

/// One worker goes down a tree when it keeps what it puts, and through it level by level when all
/// goes through the tunnel.
TEST(PipelinesWithLessRelief, TreeOfItems_RunsBreadthFirstUnlessWorkersKeepItems) {
  for (const weir_relief relief : {WEIR_RELIEF_BOTH, WEIR_RELIEF_WARP, WEIR_RELIEF_OFF}) {
    const Runtime runtime("host:cores=1");
    const Pipeline pipeline(runtime, {.batch = 1, .relief = relief});
    const auto nodes = pipeline.tunnel<int>("nodes");
    pipeline.source("root", into(nodes), [](const Outlet<int>& out) {
      out.put(0);
      return false;
    });
    std::vector<int> depths;
    pipeline.stage("split", nodes, into(nodes), [&](int depth, const Outlet<int>& out) {
      depths.push_back(depth);
      if (depth == 6) return;
      out.put(depth + 1);
      out.put(depth + 1);
    });
    pipeline.run();
    EXPECT_EQ(depths.size(), 127u);
    EXPECT_EQ(std::is_sorted(depths.begin(), depths.end()), relief != WEIR_RELIEF_BOTH);
    EXPECT_EQ(std::is_sorted(depths.begin(), depths.begin() + 7), true);
  }
}

TEST(PipelinesWithLessRelief, UnknownReliefValue_IsRefused) {
  const Runtime runtime("host");
  for (const int wrong : {-1, 3}) {
    EXPECT_THROW(Pipeline(runtime, {.relief = static_cast<weir_relief>(wrong)}), weir::Error);
  }
}

std::string message_of(weir_status status) {
  return status == WEIR_STATUS_OK ? "no error" : weir_last_error();
}

TEST(PipelineStates, IndexOutOfRangeOrNull_IsRefused) {
  const OnACard rig(1);
  weir_stage_state stage = WEIR_STAGE_STATE_INIT;
  weir_tunnel_state tunnel = WEIR_TUNNEL_STATE_INIT;
  const auto contains = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  contains(message_of(weir_pipeline_get_stage(rig.pipeline.handle(), 3, &stage)), "it has 3");
  contains(message_of(weir_pipeline_get_tunnel(rig.pipeline.handle(), 2, &tunnel)), "it has 2");
  contains(message_of(weir_pipeline_get_tunnel(rig.pipeline.handle(), 0, nullptr)), "NULL");
  contains(message_of(weir_latency_percentile(nullptr, nullptr, 50, nullptr)), "NULL");
}

}  // namespace
}  // namespace pipeline_state
