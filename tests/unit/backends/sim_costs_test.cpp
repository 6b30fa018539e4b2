// What simulated devices charge for, one cost at a time, exactly.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include <weir/weir.hpp>

#include "backends/sim/presets.hpp"
#include "thrown.hpp"

namespace weir {
namespace {

constexpr std::size_t kMegabyte = 1'000'000;
constexpr const char* kDevice = "sim:clock=virtual,cores=4,gbps=1,latency_us=0,gflops=1";

/// Registers a kernel of as many flops and bytes as its two scalars say.
Kernel costing(const Runtime& runtime, const char* name,
               weir_kernel_shape shape = WEIR_KERNEL_SHAPE_SERIAL) {
  const weir_implementation code{"host", [](const weir_call*) { return WEIR_STATUS_OK; }, nullptr};
  weir_kernel_options options = WEIR_KERNEL_OPTIONS_INIT;
  options.name = name;
  options.shape = shape;
  options.implementations = &code;
  options.implementation_count = 1;
  options.cost = [](const weir_call* call) {
    return weir_cost{call->scalars[0].value.f64, call->scalars[1].value.f64};
  };
  weir_kernel* made = nullptr;
  check(weir_kernel_register(runtime.handle(), &options, &made));
  return Kernel(made);
}

double microseconds(const Runtime& runtime) {
  return static_cast<double>(runtime.now().count()) / 1e3;
}

Runtime device(const std::string& settings) { return Runtime(kDevice + ("," + settings)); }

TEST(SimCosts, CoreBandwidth_LimitsSerialKernelsAndScalesWithTeamSize) {
  const Runtime runtime = device("memory_gbps=10,core_gbps=1");
  const Kernel serial = costing(runtime, "serial");
  const Kernel team = costing(runtime, "team", WEIR_KERNEL_SHAPE_PARALLEL);
  const Place place = runtime.domain(0).place();
  const Stream stream = place.stream();
  stream.compute(serial, {}, {0.0, 1e6});
  stream.synchronize();
  EXPECT_DOUBLE_EQ(microseconds(runtime), 1000);
  stream.compute(team, {}, {0.0, 4e6});
  stream.synchronize();
  EXPECT_DOUBLE_EQ(microseconds(runtime), 2000);
}

TEST(SimCosts, TeamThatExceedsMemoryBandwidth_IsLimitedByIt) {
  const Runtime runtime = device("memory_gbps=2,core_gbps=1");
  const Kernel team = costing(runtime, "team", WEIR_KERNEL_SHAPE_PARALLEL);
  const Place place = runtime.domain(0).place();
  const Stream stream = place.stream();
  stream.compute(team, {}, {0.0, 4e6});
  stream.synchronize();
  EXPECT_DOUBLE_EQ(microseconds(runtime), 2000);
}

TEST(SimCosts, OutboundBandwidth_AppliesToDownloadsOnly) {
  const Runtime runtime = device("gbps_out=0.5");
  const Buffer data = runtime.buffer(kMegabyte, "data");
  const Place place = runtime.domain(0).place();
  const Stream stream = place.stream();
  stream.upload(data.all());
  stream.synchronize();
  EXPECT_DOUBLE_EQ(microseconds(runtime), 1000);
  stream.download(data.all());
  stream.synchronize();
  EXPECT_DOUBLE_EQ(microseconds(runtime), 3000);
}

TEST(SimCosts, OnlyStridedCopies_AreChargedPerRow) {
  const Runtime runtime = device("row_us=10");
  const Buffer data = runtime.buffer(100 * 100 * sizeof(double), "data");
  const Place place = runtime.domain(0).place();
  const Stream stream = place.stream();
  stream.upload(data.range(0, 50 * 50 * sizeof(double)));
  stream.synchronize();
  EXPECT_DOUBLE_EQ(microseconds(runtime), 20);  // 20 kB
  stream.upload(data.tile<double>(0, 0, 50, 50, 100));
  stream.synchronize();
  EXPECT_DOUBLE_EQ(microseconds(runtime), 20 + 20 + 50 * 10);
}

TEST(SimCosts, EnqueueCost_IsChargedToTheHostAndOverlapsKernels) {
  const Runtime runtime = device("enqueue_us=100");
  const Kernel kernel = costing(runtime, "kernel");
  const Place place = runtime.domain(0).place();
  const Stream stream = place.stream();
  for (int i = 0; i < 10; ++i) stream.compute(kernel, {}, {50e3, 0.0});
  EXPECT_DOUBLE_EQ(microseconds(runtime), 1000);
  stream.synchronize();
  EXPECT_DOUBLE_EQ(microseconds(runtime), 1050);
}

TEST(SimCosts, TaskSubmission_IsChargedTheEnqueueCost) {
  const Runtime runtime = device("enqueue_us=100");
  const Kernel kernel = costing(runtime, "kernel");
  const Queue queue = runtime.queue();
  for (int i = 0; i < 10; ++i) queue.submit(kernel, {}, {1e3, 0.0});
  EXPECT_DOUBLE_EQ(microseconds(runtime), 1000);
  queue.synchronize();
}

TEST(SimCosts, CompletionNoticeLatency_DelaysOnlyDependentKernels) {
  const Runtime runtime("sim:clock=virtual,gflops=1,notice_us=100");
  const Kernel kernel = costing(runtime, "kernel");
  const Buffer data = runtime.buffer(16, "data");
  const Place place = runtime.domain(0).place();
  const Stream stream = place.stream();
  for (int i = 0; i < 3; ++i) stream.compute(kernel, {readwrite(data.all())}, {1e6, 0.0});
  stream.synchronize();
  EXPECT_DOUBLE_EQ(microseconds(runtime), 3 * 1100);  // the host starts each after the one before
  for (int i = 0; i < 3; ++i) stream.compute(kernel, {}, {1e6, 0.0});
  stream.synchronize();
  EXPECT_DOUBLE_EQ(microseconds(runtime), 3300 + 3000 + 100);
}

TEST(SimCosts, DeviceOrdering_HidesCompletionNoticeLatency) {
  const Runtime runtime = device("notice_us=100,order=device");
  const Kernel kernel = costing(runtime, "kernel");
  const Buffer data = runtime.buffer(16, "data");
  const Place place = runtime.domain(0).place();
  const Stream stream = place.stream();
  for (int i = 0; i < 3; ++i) stream.compute(kernel, {readwrite(data.all())}, {1e6, 0.0});
  stream.synchronize();
  EXPECT_DOUBLE_EQ(microseconds(runtime), 3000);
}

TEST(SimCosts, RepeatedUpload_IsChargedForAllocationOnce) {
  const Runtime runtime = device("allocation_us=500,allocation_gbps=2");
  const Buffer data = runtime.buffer(kMegabyte, "data");
  const Place place = runtime.domain(0).place();
  const Stream stream = place.stream();
  for (int i = 0; i < 2; ++i) stream.upload(data.all());
  stream.synchronize();
  EXPECT_DOUBLE_EQ(microseconds(runtime), 500 + 500 + 2 * 1000);
}

TEST(SimCosts, MemoryPool_ReusesReleasedMemoryAtNoCost) {
  const Runtime runtime = device("allocation_us=500,pool=on");
  const Place place = runtime.domain(0).place();
  const Stream stream = place.stream();
  double before = 0;
  const auto upload = [&](std::size_t bytes) {
    const Buffer data = runtime.buffer(bytes, "data");
    before = microseconds(runtime);
    stream.upload(data.all());
    stream.synchronize();
    return microseconds(runtime) - before;
  };
  EXPECT_DOUBLE_EQ(upload(kMegabyte), 500 + 1000);
  EXPECT_DOUBLE_EQ(upload(kMegabyte), 1000);
  EXPECT_DOUBLE_EQ(upload(2 * kMegabyte), 500 + 2000);
}

/// Runs a tile kernel on tiles of order 100 and returns the time in us.
double tile_time(const Runtime& runtime, const char* name, std::size_t operands,
                 const std::vector<Scalar>& scalars) {
  constexpr std::size_t kOrder = 100;
  const Buffer data = runtime.buffer(operands * kOrder * kOrder * sizeof(double), "data");
  const Place place = runtime.domain(0).place();
  const Stream stream = place.stream();
  std::vector<Operand> list;
  for (std::size_t i = 0; i < operands; ++i) {
    const Region tile = data.tile<double>(0, i * kOrder, kOrder, kOrder, kOrder);
    list.push_back(i + 1 == operands ? readwrite(tile) : read(tile));
  }
  const double before = microseconds(runtime);
  stream.compute(runtime.kernel(name), list, scalars);
  stream.synchronize();
  return microseconds(runtime) - before;
}

TEST(SimCosts, TileLoss_SlowsSmallTilesMoreOnMoreCores) {
  const Runtime runtime = device("kernels=skip,tile_loss=50");
  const std::vector<Scalar> scalars{'N', 'N', 1.0, 0.0};
  // 2e6 flops; on one core the loss is 50 / 100, on four twice that.
  EXPECT_DOUBLE_EQ(tile_time(runtime, "blas.dgemm", 3, scalars), 2000 * 1.5);
  EXPECT_DOUBLE_EQ(tile_time(runtime, "blas.dgemm.team", 3, scalars), 500 * 2.0);
}

TEST(SimCosts, EfficiencyOfATileKernel_ScalesItsTime) {
  const Runtime runtime = device("kernels=skip,trsm=0.5,potrf=0.25");
  EXPECT_DOUBLE_EQ(tile_time(runtime, "blas.dtrsm", 2, {'R', 'L', 'T', 'N', 1.0}), 1000 / 0.5);
  EXPECT_NEAR(tile_time(runtime, "lapack.dpotrf", 1, {'L', 0}), 1e3 / 3 / 0.25, 1e-3);
}

TEST(SimCosts, HostInVirtualTime_ComputesInHostMemoryWithoutCopies) {
  const Runtime runtime(
      "host:clock=virtual,cores=4,gflops=1,sim:clock=virtual,gbps=1,latency_us=0,gflops=1");
  const Domain host = runtime.domain(0);
  EXPECT_EQ(host.info().name, std::string("host"));
  EXPECT_TRUE(host.info().aliases_host);
  EXPECT_TRUE(host.info().virtual_time);
  EXPECT_EQ(host.info().cores, 4u);
  const Kernel kernel = costing(runtime, "kernel");
  const Buffer data = runtime.buffer(kMegabyte, "data");
  const Place on_host = host.place(), on_device = runtime.domain(1).place();
  const Stream here = on_host.stream(), there = on_device.stream();
  here.upload(data.all());  // nothing to copy
  here.compute(kernel, {readwrite(data.all())}, {1e6, 0.0});
  here.synchronize();
  EXPECT_DOUBLE_EQ(microseconds(runtime), 1000);
  there.upload(data.all());
  there.compute(kernel, {readwrite(data.all())}, {1e6, 0.0});
  there.download(data.all());
  there.synchronize();
  EXPECT_DOUBLE_EQ(microseconds(runtime), 1000 + 3000);
}

TEST(SimPresets, EachPreset_OpensInVirtualTimeAndNamesItsSources) {
  for (const rt::DomainPreset& preset : rt::simulated_presets()) {
    SCOPED_TRACE(preset.domain);
    const Runtime runtime(preset.domain);
    EXPECT_TRUE(runtime.domain(0).info().virtual_time);
    EXPECT_GT(runtime.domain(0).info().cores, 1u);
    EXPECT_GT(std::string(preset.sources).size(), 40u);
  }
}

TEST(SimPresets, Description_ListsTileEfficienciesWithoutEmptyFields) {
  const Runtime runtime("sim:phi-31sp");
  const std::string description = runtime.domain(0).info().description;
  EXPECT_NE(description.find(", tile loss 158, syrk at 0.9, trsm at 0.8, potrf at 0.35, "),
            std::string::npos)
      << description;
  EXPECT_EQ(description.find(" ,"), std::string::npos) << description;
}

TEST(SimPresets, ExplicitSettings_OverrideThePreset) {
  const Runtime runtime("sim:phi-31sp,cores=3,memory=1GiB");
  EXPECT_EQ(runtime.domain(0).info().cores, 2u * 4);  // one is reserved
  EXPECT_EQ(runtime.domain(0).info().memory_bytes, std::uint64_t{1} << 30);
}

void expect_refusal(const char* domains, const char* words) {
  const std::string why =
      thrown_by([&] { const Runtime runtime(domains); }, WEIR_STATUS_INVALID_ARGUMENT);
  EXPECT_NE(why.find(words), std::string::npos) << domains << ": " << why;
}

TEST(SimPresets, UnknownPresetsAndMixedClocks_AreRejectedWithReason) {
  expect_refusal("sim:phi",
                 "'phi' is not a setting KEY=VALUE nor a preset; there are sim:phi-31sp");
  expect_refusal("host:phi-31sp", "there are host:hsw-e5-2697v3");
  expect_refusal("opencl:phi-31sp", "'phi-31sp' is not a setting KEY=VALUE");
  expect_refusal("host,sim:phi-31sp", "mixes real and virtual time");
  expect_refusal("host:clock=unreal", "one of real, virtual");
  expect_refusal("host:clock=virtual,gbps=6", "has no setting 'gbps'");
  expect_refusal("sim:cores=1,notice_us=3", "need clock=virtual");
}

}  // namespace
}  // namespace weir
