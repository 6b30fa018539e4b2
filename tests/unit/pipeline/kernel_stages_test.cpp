// Stages that are kernels, on devices with and without time of their own.
#include <weir/pipeline.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "thrown.hpp"

namespace kernel_stages {
namespace {

using weir::Call;
using weir::into;
using weir::Kernel;
using weir::Outlet;
using weir::Pipeline;
using weir::Runtime;
using weir::StageContext;
using weir::thrown_by;
using Number = std::uint64_t;

auto numbers(Number count) {
  return [count, next = Number{0}](const Outlet<Number>& out) mutable {
    if (next < count) out.put(next++);
    return next < count;
  };
}

/// A device of its own for kernels, and a host for workers where time is real.
struct Rig {
  explicit Rig(const std::string& domains)
      : runtime(domains),
        place(runtime.domain(runtime.domain_count() - 1).place(1)),
        square(runtime.kernel("square",
                              [](const Call& call) {
                                const auto in = call.span<const Number>(0);
                                const auto out = call.span<Number>(1);
                                ASSERT_EQ(in.size(), call.scalar<Number>(0));
                                for (std::size_t i = 0; i < in.size(); ++i) out[i] = in[i] * in[i];
                              })),
        repeat(runtime.kernel("repeat",
                              [](const Call& call) {
                                // i % 3 times, at most 2.
                                const auto in = call.span<const Number>(0);
                                const auto out = call.span<Number>(1);
                                const auto numbers = call.span<std::uint32_t>(2);
                                for (std::size_t i = 0; i < in.size(); ++i) {
                                  numbers[i] = static_cast<std::uint32_t>(in[i] % 3);
                                  for (std::uint32_t k = 0; k < numbers[i]; ++k)
                                    out[2 * i + k] = 2 * in[i] + k;
                                }
                              })),
        pick(runtime.kernel("pick", [](const Call& call) {
          const auto in = call.span<const Number>(0);
          const auto out = call.span<Number>(1);
          std::uint32_t& put = call.span<std::uint32_t>(2)[0];
          for (const Number each : in) {
            if (each % call.scalar<Number>(1) == 0) out[put++] = each;
          }
        })) {}

  Runtime runtime;
  weir::Place place;
  Kernel square, repeat, pick;
};

struct KernelStages : testing::TestWithParam<const char*> {
  Rig rig{GetParam()};
};

TEST_P(KernelStages, SeeEveryItemOnceAndInOrder) {
  constexpr Number kCount = 20'000;
  const Pipeline pipeline(rig.runtime);
  const auto raw = pipeline.tunnel<Number>("raw");
  const auto squares = pipeline.tunnel<Number>("squares");
  pipeline.source("numbers", into(raw), numbers(kCount));
  pipeline.kernel("square", raw, into(squares), rig.square, rig.place,
                  {.batch = 500, .ordered = true});
  Number next = 0;
  bool right = true;
  pipeline.stage("check", squares, [&](Number x) { right = right && x == next * next, ++next; },
                 {.workers = 1});
  pipeline.run();
  EXPECT_TRUE(right);
  EXPECT_EQ(next, kCount);
  for (const weir_stage_info& stage : pipeline.stages()) {
    EXPECT_EQ(stage.created, kCount);
    EXPECT_EQ(stage.complete, kCount);
    EXPECT_TRUE(stage.at_end);
  }
}

TEST_P(KernelStages, CountsPerItemAndPerTunnel_DetermineTheItemsPut) {
  constexpr Number kCount = 3'000;
  const Pipeline pipeline(rig.runtime);
  const auto raw = pipeline.tunnel<Number>("raw");
  const auto some = pipeline.tunnel<Number>("some");
  const auto few = pipeline.tunnel<Number>("few");
  pipeline.source("numbers", into(raw), numbers(kCount));
  pipeline.kernel("repeat", raw, into(some), rig.repeat, rig.place,
                  {.outputs = {{2, WEIR_STAGE_COUNTING_PER_ITEM}}, .batch = 64});
  pipeline.kernel("pick", some, into(few), rig.pick, rig.place,
                  {.scalars = {Number{5}},
                   .outputs = {{1, WEIR_STAGE_COUNTING_PER_TUNNEL}},
                   .batch = 100,
                   .in_flight = 2});
  std::vector<Number> found, expected;
  pipeline.stage("keep", few, [&](Number x) { found.push_back(x); }, {.workers = 1});
  pipeline.run();
  for (Number i = 0; i < kCount; ++i) {
    for (Number k = 0; k < i % 3; ++k) {
      if ((2 * i + k) % 5 == 0) expected.push_back(2 * i + k);
    }
  }
  std::sort(found.begin(), found.end());
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(found, expected);
}

TEST_P(KernelStages, TableOperands_AreReadByEveryBatch) {
  constexpr Number kCount = 1'000, kSides = 7;
  const Kernel look_up = rig.runtime.kernel("look_up", [](const Call& call) {
    const auto in = call.span<const Number>(0);
    const auto out = call.span<Number>(1);
    const auto table = call.span<const Number>(2), shift = call.span<const Number>(3);
    for (std::size_t i = 0; i < in.size(); ++i) out[i] = table[in[i] % table.size()] + shift[0];
  });
  const weir::Buffer table = rig.runtime.buffer((kSides + 1) * sizeof(Number));
  for (Number i = 0; i <= kSides; ++i) table.data<Number>()[i] = 100 * i;
  std::vector<Number> found;
  const Pipeline pipeline(rig.runtime);
  const auto raw = pipeline.tunnel<Number>("raw");
  const auto found_there = pipeline.tunnel<Number>("found");
  pipeline.source("numbers", into(raw), numbers(kCount));
  pipeline.kernel("look up", raw, into(found_there), look_up, rig.place,
                  {.batch = 64,
                   .tables = {weir::read(table.elements<Number>(0, kSides)),
                              weir::read(table.elements<Number>(kSides, 1))}});
  pipeline.stage("keep", found_there, [&](Number x) { found.push_back(x); }, {.workers = 1});
  pipeline.run();
  ASSERT_EQ(found.size(), kCount);
  for (Number i = 0; i < kCount; ++i) ASSERT_EQ(found[i], 100 * (i % kSides) + 100 * kSides);
}

/// Memory of a batch's own, 0 again for each.
TEST_P(KernelStages, Scratch_IsZeroedForEachBatch) {
  static constexpr Number kCount = 1'000, kWords = 40;
  const Kernel add_up = rig.runtime.kernel("add_up", [](const Call& call) {
    const auto in = call.span<const Number>(0);
    const auto out = call.span<Number>(1), scratch = call.span<Number>(2);
    ASSERT_EQ(scratch.size(), kWords);
    for (std::size_t i = 0; i < in.size(); ++i) {
      out[i] = scratch[i]++;
      if (in[i] % 100 == 99) throw std::runtime_error("the device is on fire");
    }
  });
  Number failed = 0;
  const Pipeline pipeline(
      rig.runtime, {.keep_going = true,
                    .on_failure = [&](const weir_item_failure& each) { failed += each.count; }});
  const auto raw = pipeline.tunnel<Number>("raw");
  const auto sums = pipeline.tunnel<Number>("sums");
  pipeline.source("numbers", into(raw), numbers(kCount));
  pipeline.kernel("add up", raw, into(sums), add_up, rig.place,
                  {.batch = kWords, .scratch_bytes = kWords * sizeof(Number)});
  Number found = 0, wrong = 0;
  pipeline.stage("keep", sums,
                 [&](Number x) {
                   ++found;
                   wrong += x > 0;
                 },
                 {.workers = 1});
  EXPECT_THROW(pipeline.run(), weir::Error);
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(found + failed, kCount);
  EXPECT_GT(found, 0u);
}

/// Each number below the limit has two children.
TEST_P(KernelStages, RecursiveKernelStage_SeesEveryNodeOnceAndEnds) {
  constexpr Number kLimit = 4'000;
  const Kernel split = rig.runtime.kernel("split", [](const Call& call) {
    const auto in = call.span<const Number>(0);
    const auto again = call.span<Number>(1), out = call.span<Number>(3);
    const auto numbers = call.span<std::uint32_t>(2);
    for (std::size_t i = 0; i < in.size(); ++i) {
      numbers[i] = 0;
      for (Number child = 2 * in[i]; child <= 2 * in[i] + 1; ++child) {
        if (child < kLimit) again[2 * i + numbers[i]++] = child;
      }
      out[i] = in[i];
    }
  });
  const Pipeline pipeline(rig.runtime);
  const auto nodes = pipeline.tunnel<Number>("nodes", {.capacity = 16});
  const auto seen = pipeline.tunnel<Number>("seen", {.capacity = 16});
  pipeline.source("root", into(nodes), [](const Outlet<Number>& out) {
    out.put(1);
    return false;
  });
  pipeline.kernel(
      "split", nodes, into(nodes, seen), split, rig.place,
      {.outputs = {{2, WEIR_STAGE_COUNTING_PER_ITEM}, {1, WEIR_STAGE_COUNTING_ALL}}, .batch = 32});
  std::vector<int> times(kLimit, 0);
  pipeline.stage("note", seen, [&](Number node) { ++times[node]; }, {.workers = 1});
  pipeline.run();
  EXPECT_EQ(std::count(times.begin() + 1, times.end(), 1), static_cast<long>(kLimit - 1));
}

TEST_P(KernelStages, KernelThatThrowsWithKeepGoing_ReportsTheLostBatch) {
  const Kernel picky = rig.runtime.kernel("picky", [](const Call& call) {
    const auto in = call.span<const Number>(0);
    const auto out = call.span<Number>(1);
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (in[i] == 777) throw std::runtime_error("777 is bad");
      out[i] = in[i];
    }
  });
  constexpr Number kCount = 3'000;
  std::string message, stage;
  std::size_t lost = 0;
  std::atomic<bool> held{false};
  const Pipeline pipeline(rig.runtime,
                          {.keep_going = true, .on_failure = [&](const weir_item_failure& failure) {
                             message = failure.message;
                             stage = failure.stage;
                             lost = failure.count;
                             const auto* const items = static_cast<const Number*>(failure.item);
                             held = std::find(items, items + lost, Number{777}) != items + lost;
                           }});
  const auto raw = pipeline.tunnel<Number>("raw");
  const auto good = pipeline.tunnel<Number>("good");
  pipeline.source("numbers", into(raw), numbers(kCount));
  pipeline.kernel("picky", raw, into(good), picky, rig.place, {.batch = 50});
  std::vector<Number> found;
  pipeline.stage("keep", good, [&](Number x) { found.push_back(x); }, {.workers = 1});
  EXPECT_THROW(pipeline.run(), weir::Error);
  EXPECT_TRUE(held);
  EXPECT_EQ(stage, "picky");
  EXPECT_NE(message.find("777 is bad"), std::string::npos) << message;
  EXPECT_EQ(message.rfind("items ", 0), 0u) << message;
  EXPECT_EQ(found.size() + lost, kCount);
  EXPECT_EQ(pipeline.stages()[0].failed, lost);
  EXPECT_TRUE(pipeline.info().at_end);
}

/// Of a kernel that counts for the whole tunnel, and of one that puts nothing.
TEST_P(KernelStages, FailedBatchWithKeepGoing_LosesNoOtherItems) {
  const Kernel picky = rig.runtime.kernel("picky", [](const Call& call) {
    std::uint32_t& put = call.span<std::uint32_t>(2)[0];
    for (const Number each : call.span<const Number>(0)) {
      if (each == 100) throw std::runtime_error("100 is bad");
      call.span<Number>(1)[put++] = each;
    }
  });
  std::atomic<Number> sunk{0};
  const Kernel sink = rig.runtime.kernel("sink", [&](const Call& call) {
    for (const Number each : call.span<const Number>(0)) {
      if (each == 300) throw std::runtime_error("300 is bad");
    }
    sunk += call.span<const Number>(0).size();
  });
  constexpr Number kCount = 3'000;
  std::atomic<std::size_t> lost{0}, failures{0};
  const Pipeline pipeline(rig.runtime,
                          {.keep_going = true, .on_failure = [&](const weir_item_failure& failure) {
                             lost += failure.count;
                             ++failures;
                           }});
  const auto raw = pipeline.tunnel<Number>("raw");
  const auto good = pipeline.tunnel<Number>("good");
  pipeline.source("numbers", into(raw), numbers(kCount));
  pipeline.kernel("picky", raw, into(good), picky, rig.place,
                  {.outputs = {{1, WEIR_STAGE_COUNTING_PER_TUNNEL}}, .batch = 20, .in_flight = 2});
  pipeline.kernel("sink", good, into(), sink, rig.place, {.batch = 20, .in_flight = 2});
  EXPECT_THROW(pipeline.run(), weir::Error);
  EXPECT_LE(failures, 2u);
  EXPECT_EQ(sunk + lost, kCount);
  EXPECT_EQ(pipeline.stages()[1].complete + pipeline.stages()[0].failed, kCount);
}

TEST_P(KernelStages, KernelCountsMoreItemsThanItsRoom_FailsThePipeline) {
  const Kernel liar = rig.runtime.kernel("liar", [](const Call& call) {
    for (std::uint32_t& number : call.span<std::uint32_t>(2)) number = 3;
  });
  const Pipeline pipeline(rig.runtime);
  const auto raw = pipeline.tunnel<Number>("raw");
  const auto some = pipeline.tunnel<Number>("some");
  pipeline.source("numbers", into(raw), numbers(10));
  pipeline.kernel("liar", raw, into(some), liar, rig.place,
                  {.outputs = {{2, WEIR_STAGE_COUNTING_PER_ITEM}}});
  pipeline.stage("use", some, [](Number) {});
  const std::string why = thrown_by([&] { pipeline.run(); });
  EXPECT_NE(why.find("put 3 items for item 0"), std::string::npos) << why;
}

/// A slow stage fills its tunnel, that the device, and that the source.
TEST_P(KernelStages, PropagateBackpressure) {
  std::atomic<Number> put{0}, taken{0};
  Number most = 0;
  const Pipeline pipeline(rig.runtime, {.batch = 4});
  const auto raw = pipeline.tunnel<Number>("raw", {.capacity = 8});
  const auto squares = pipeline.tunnel<Number>("squares", {.capacity = 8});
  pipeline.source("numbers", into(raw), [&](const Outlet<Number>& out) {
    out.put(put++);
    return put < 2'000;
  });
  pipeline.kernel("square", raw, into(squares), rig.square, rig.place,
                  {.batch = 8, .in_flight = 3});
  pipeline.stage("slow", squares, [&](Number) { most = std::max(most, put - ++taken); },
                 {.workers = 1});
  pipeline.run();
  EXPECT_EQ(taken, 2'000u);
  const std::size_t workers = pipeline.info().workers;
  // Two tunnels, the batches of the device, and what each worker holds and keeps.
  EXPECT_LE(most, 8 + 8 + 3 * 8 + workers * (4 + 3 * 8));
}

TEST_P(KernelStages, EpochEnd_IsReportedAfterAllItsItems) {
  std::vector<std::uint64_t> over;
  std::atomic<bool> early{false};
  std::vector<std::atomic<int>> seen(40);
  const Pipeline pipeline(rig.runtime, {.epochs = 3, .on_epoch = [&](std::uint64_t epoch) {
                                          over.push_back(epoch);
                                          if (seen[epoch] != 7) early = true;
                                        }});
  const auto raw = pipeline.tunnel<Number>("raw");
  const auto squares = pipeline.tunnel<Number>("squares");
  pipeline.source("numbers", into(raw),
                  [next = 0u](const Outlet<Number>& out, StageContext context) mutable {
                    out.put(next++);
                    if (next % 7 == 0) context.end_epoch();
                    return next < 280;
                  });
  pipeline.kernel("square", raw, into(squares), rig.square, rig.place, {.batch = 10});
  pipeline.stage("count", squares, [&](Number, StageContext context) { ++seen[context.epoch()]; });
  pipeline.run();
  EXPECT_EQ(over.size(), 40u);
  EXPECT_FALSE(early);
}

TEST_P(KernelStages, CancelWhileBatchesAreInFlight_RunReportsCancelled) {
  Pipeline pipeline(rig.runtime);
  const auto raw = pipeline.tunnel<Number>("raw");
  const auto squares = pipeline.tunnel<Number>("squares");
  pipeline.source("numbers", into(raw), [](const Outlet<Number>& out) {
    out.put(1);
    return true;
  });
  pipeline.kernel("square", raw, into(squares), rig.square, rig.place);
  std::atomic<int> seen{0};
  pipeline.stage("stop", squares, [&](Number) {
    if (++seen == 1'000) pipeline.cancel();
  });
  EXPECT_NE(thrown_by([&] { pipeline.run(); }, WEIR_STATUS_CANCELLED), "");
}

std::string name_of(const testing::TestParamInfo<const char*>& info) {
  return std::vector<std::string>{"Sim", "Ordered", "Virtual", "Host"}[info.index];
}
INSTANTIATE_TEST_SUITE_P(Domains, KernelStages,
                         testing::Values("host,sim", "host,sim:order=device,cores=1",
                                         "sim:clock=virtual,gbps=6", "host:cores=1,host:cores=1"),
                         name_of);

TEST(KernelStagesOfTheHost, KernelOnASecondHostDomain_ProcessesEveryItem) {
  const Runtime runtime("host:cores=1,host:cores=1");
  const Kernel twice = runtime.kernel("twice", [](const Call& call) {
    const auto in = call.span<const Number>(0);
    const auto out = call.span<Number>(1);
    for (std::size_t i = 0; i < in.size(); ++i) out[i] = 2 * in[i];
  });
  const weir::Place place = runtime.domain(1).place();
  const Pipeline pipeline(runtime);
  const auto raw = pipeline.tunnel<Number>("raw");
  const auto doubled = pipeline.tunnel<Number>("doubled");
  pipeline.source("numbers", into(raw), numbers(10'000));
  pipeline.kernel("twice", raw, into(doubled), twice, place);
  std::atomic<Number> sum{0};
  pipeline.stage("sum", doubled, [&](Number x) { sum += x; });
  pipeline.run();
  EXPECT_EQ(sum, 9'999u * 10'000);
}

TEST(KernelStagesOfTheHost, PlaceThatHasWorkers_IsRefused) {
  const Runtime runtime("host");
  const Kernel kernel = runtime.kernel("nothing", [](const Call&) {});
  const weir::Place place = runtime.domain(0).place();
  const Pipeline pipeline(runtime, {.name = "p", .place = &place});
  const auto a = pipeline.tunnel<Number>("a");
  pipeline.source("numbers", into(a), numbers(1));
  pipeline.kernel("k", a, into(), kernel, place);
  EXPECT_NE(thrown_by([&] { pipeline.run(); }).find("has workers of pipeline 'p'"),
            std::string::npos);
}

TEST(KernelStagesOfTheHost, RefuseBatchesThatAreTooLarge) {
  const Runtime runtime("host:cores=1,host:cores=1");
  const Kernel kernel = runtime.kernel("nothing", [](const Call&) {});
  const weir::Place place = runtime.domain(1).place();
  const Pipeline pipeline(runtime);
  struct Large {
    unsigned char bytes[1 << 16];
  };
  const auto large = pipeline.tunnel<Large>("large");
  EXPECT_NE(thrown_by([&] {
              pipeline.kernel("k", large, into(), kernel, place, {.batch = std::size_t{1} << 24});
            }).find("batches of 16777216 items of 65536 bytes are too large"),
            std::string::npos);
}

/// Tables and scratch that a kernel stage cannot use.
TEST(KernelStagesOfTheHost, InvalidTablesAndScratch_AreRefused) {
  Rig rig("host,sim");
  const weir::Buffer table = rig.runtime.buffer(64);
  const Pipeline pipeline(rig.runtime);
  const auto raw = pipeline.tunnel<Number>("raw");
  const auto squares = pipeline.tunnel<Number>("squares");
  const auto refusal = [&](const weir::Operand& operand) {
    return thrown_by([&] {
      pipeline.kernel("square", raw, into(squares), rig.square, rig.place, {.tables = {operand}});
    });
  };
  EXPECT_NE(refusal(weir::write(table.all())).find("only read"), std::string::npos);
  EXPECT_NE(refusal(weir::read(table.range(60, 8))).find("64"), std::string::npos);
  EXPECT_NE(refusal(weir::read({nullptr, table.all().region})), "");
  EXPECT_NE(thrown_by([&] {
              pipeline.kernel("square", raw, into(squares), rig.square, rig.place,
                              {.scratch_bytes = (std::size_t{1} << 32) + 1});
            }).find("4294967297 bytes of scratch"),
            std::string::npos);
  weir_tunnel* const output = squares.handle();
  weir_stage_kernel kernel = WEIR_STAGE_KERNEL_INIT;
  kernel.kernel = rig.square.handle();
  kernel.table_count = 1;
  weir_stage_options options = WEIR_STAGE_OPTIONS_INIT;
  options.input = raw.handle();
  options.outputs = &output;
  options.output_count = 1;
  options.place = rig.place.handle();
  options.kernel = &kernel;
  EXPECT_EQ(weir_pipeline_add_stage(pipeline.handle(), &options), WEIR_STATUS_INVALID_ARGUMENT);
  EXPECT_NE(std::string(weir_last_error()).find("given as NULL"), std::string::npos);
}

/// What the kernels of Priced saw.
std::atomic<std::size_t> batches_seen{0}, largest_seen{0};
std::atomic<Number> first_picked{0};

/// A device whose kernels and copies take known times, and one worker, in virtual time.
struct Priced {
  explicit Priced(const char* domains)
      : runtime(domains), place(runtime.domain(std::size_t{0}).place(1)) {
    batches_seen = largest_seen = 0;
    copy = made("copy", [](const weir_call* call) {
      const weir::Call batch(call);
      const auto in = batch.span<const Number>(0);
      const auto out = batch.span<Number>(1);
      std::copy(in.begin(), in.end(), out.begin());
      note(in.size());
      return WEIR_STATUS_OK;
    });
    pick = made("pick from", [](const weir_call* call) {
      const weir::Call batch(call);
      std::uint32_t& put = batch.span<std::uint32_t>(2)[0];
      for (const Number each : batch.span<const Number>(0)) {
        if (each >= first_picked) batch.span<Number>(1)[put++] = each;
      }
      note(batch.span<const Number>(0).size());
      return WEIR_STATUS_OK;
    });
  }
  static void note(std::size_t items) {
    ++batches_seen;
    largest_seen = std::max(largest_seen.load(), items);
  }
  /// A kernel with one operation for each item.
  Kernel made(const char* name, weir_host_function code) const {
    const weir_implementation implementation = {"host", code, nullptr};
    weir_kernel_options options = WEIR_KERNEL_OPTIONS_INIT;
    options.name = name;
    options.implementations = &implementation;
    options.implementation_count = 1;
    options.cost = [](const weir_call* call) {
      return weir_cost{weir::Call(call).scalar<double>(0), 0};
    };
    weir::check(weir_kernel_register(runtime.handle(), &options, nullptr));
    return runtime.kernel(name);
  }

  Runtime runtime;
  weir::Place place;
  Kernel copy, pick;
};

/// Batches grow until the cost of a copy, 100 us, is small beside that of their items, 8 ns each;
/// or have the size that the program wants.
TEST(KernelStagesThatAreSlow, CostlyCopies_GrowBatchesUnlessTheSizeIsSet) {
  constexpr Number kCount = 100'000;
  for (const std::size_t wanted : {std::size_t{0}, std::size_t{1'000}}) {
    const Priced rig("sim:clock=virtual,latency_us=100,gbps=1,gflops=1");
    const Pipeline pipeline(rig.runtime);
    const auto raw = pipeline.tunnel<Number>("raw");
    const auto copied = pipeline.tunnel<Number>("copied");
    pipeline.source("numbers", into(raw), numbers(kCount));
    pipeline.kernel("copy", raw, into(copied), rig.copy, rig.place, {.batch = wanted});
    Number sum = 0;
    pipeline.stage("sum", copied, [&](Number x) { sum += x; });
    pipeline.run();
    EXPECT_EQ(sum, kCount * (kCount - 1) / 2);
    if (wanted > 0) {
      EXPECT_EQ(largest_seen, wanted);
      EXPECT_EQ(batches_seen, kCount / wanted);
    } else {
      EXPECT_GE(largest_seen, std::size_t{1} << 13);
    }
  }
}

/// The nanoseconds of virtual time that a pipeline with the kernel takes for many items.
std::int64_t time_of(const Priced& rig, Number count, std::vector<std::size_t>* batches = nullptr) {
  const std::int64_t begin = weir_runtime_now(rig.runtime.handle());
  const std::size_t seen = batches_seen;
  const Pipeline pipeline(rig.runtime);
  const auto raw = pipeline.tunnel<Number>("raw");
  const auto copied = pipeline.tunnel<Number>("copied");
  pipeline.source("numbers", into(raw), numbers(count));
  pipeline.kernel("copy", raw, into(copied), rig.copy, rig.place);
  Number sum = 0;
  pipeline.stage("sum", copied, [&](Number x) { sum += x; });
  pipeline.run();
  EXPECT_EQ(sum, count * (count - 1) / 2);
  if (batches != nullptr) batches->push_back(batches_seen - seen);
  return weir_runtime_now(rig.runtime.handle()) - begin;
}

/// The second pipeline neither allocates memory of the device nor begins with small batches.
TEST(KernelStagesOfLaterPipelines, SameKernelAndPlace_BatchesAndMemoryAreThoseOfTheFirst) {
  const Priced rig("sim:clock=virtual,latency_us=10,gbps=1,gflops=1,allocation_us=1000");
  std::vector<std::size_t> batches;
  const std::int64_t first = time_of(rig, 100'000, &batches);
  const std::int64_t second = time_of(rig, 100'000, &batches);
  EXPECT_LT(batches[1], batches[0]);
  EXPECT_LT(second, first - 2'000'000);  // at least three buffers were allocated
  const auto used = [&] { return rig.runtime.domain(std::size_t{0}).info().memory_used; };
  const std::uint64_t before = used();
  time_of(rig, 100'000);
  EXPECT_EQ(used(), before);
}

/// Memory of a failed batch would fail the batches of the next pipeline.
TEST_P(KernelStages, PipelineAfterAFailedOne_GetsAllItems) {
  std::atomic<bool> bad{true};
  const Kernel moody = rig.runtime.kernel("moody", [&](const Call& call) {
    if (bad) throw std::runtime_error("not today");
    std::ranges::copy(call.span<const Number>(0), call.span<Number>(1).begin());
  });
  for (int i = 0; i < 3; ++i) {
    const Pipeline pipeline(rig.runtime);
    const auto raw = pipeline.tunnel<Number>("raw");
    const auto good = pipeline.tunnel<Number>("good");
    pipeline.source("numbers", into(raw), numbers(2'000));
    pipeline.kernel("moody", raw, into(good), moody, rig.place);
    std::atomic<Number> seen{0};
    pipeline.stage("count", good, [&](Number) { ++seen; });
    if (bad) {
      EXPECT_NE(thrown_by([&] { pipeline.run(); }).find("not today"), std::string::npos);
    } else {
      pipeline.run();
      EXPECT_EQ(seen, 2'000u);
    }
    bad = false;
  }
}

/// An item that comes alone does not wait for others, though batches were large before.
TEST(KernelStagesThatAreIdle, SingleItemAfterLargeBatches_IsLaunchedAtOnce) {
  constexpr Number kCount = 50'000, kRounds = 100;
  std::chrono::nanoseconds took[2];
  for (const Number rounds : {Number{0}, kRounds}) {
    const Priced rig("sim:clock=virtual,latency_us=100,gbps=1,gflops=1");
    const Pipeline pipeline(rig.runtime);
    const auto raw = pipeline.tunnel<Number>("raw");
    const auto copied = pipeline.tunnel<Number>("copied");
    pipeline.source("numbers", into(raw), numbers(kCount));
    pipeline.kernel("copy", raw, into(copied), rig.copy, rig.place);
    Number seen = 0, round = 0;
    pipeline.stage("again", copied, into(raw),
                   [&](Number x, const Outlet<Number>& again) {
                     if (++seen >= kCount && round++ < rounds) again.put(x);
                   },
                   {.workers = 1});
    const auto begin = rig.runtime.now();
    pipeline.run();
    took[rounds > 0] = rig.runtime.now() - begin;
    EXPECT_EQ(seen, kCount + rounds);
  }
  const std::chrono::nanoseconds each = (took[1] - took[0]) / kRounds;
  EXPECT_LT(each, std::chrono::microseconds(201));  // two copies of an item
}

/// Counts travel with items, both ways: a batch is a copy, a kernel and a copy.
TEST(KernelStagesThatAreSlow, BatchWithCounts_NeedsOneCopyEachWay) {
  constexpr Number kCount = 200'000, kBatch = 20'000;
  first_picked = 0;
  const Priced rig("sim:clock=virtual,latency_us=100,gbps=1,gflops=1");
  const Pipeline pipeline(rig.runtime);
  const auto raw = pipeline.tunnel<Number>("raw");
  const auto picked = pipeline.tunnel<Number>("picked");
  pipeline.source("numbers", into(raw), numbers(kCount));
  pipeline.kernel(
      "pick", raw, into(picked), rig.pick, rig.place,
      {.outputs = {{1, WEIR_STAGE_COUNTING_PER_TUNNEL}}, .batch = kBatch, .in_flight = 1});
  Number sum = 0;
  pipeline.stage("sum", picked, [&](Number x) { sum += x; });
  const std::uint64_t before = rig.runtime.stats().actions_enqueued;
  pipeline.run();
  EXPECT_EQ(sum, kCount * (kCount - 1) / 2);
  // Of the first batch nothing is known: its items follow their count.
  EXPECT_EQ(rig.runtime.stats().actions_enqueued - before, 3 * batches_seen + 1);
}

/// Batches that put more, or fewer, than those before lose nothing.
TEST(KernelStagesThatAreSlow, ItemCountsThatChangeBetweenBatches_LoseNoItems) {
  constexpr Number kCount = 200'000, kBatch = 20'000;
  first_picked = 110'000;  // in the middle of a batch
  const Priced rig("sim:clock=virtual,latency_us=100,gbps=1,gflops=1");
  const Pipeline pipeline(rig.runtime);
  const auto raw = pipeline.tunnel<Number>("raw");
  const auto picked = pipeline.tunnel<Number>("picked");
  pipeline.source("numbers", into(raw), numbers(kCount));
  pipeline.kernel(
      "pick", raw, into(picked), rig.pick, rig.place,
      {.outputs = {{1, WEIR_STAGE_COUNTING_PER_TUNNEL}}, .batch = kBatch, .in_flight = 2});
  Number sum = 0, seen = 0;
  pipeline.stage("sum", picked, [&](Number x) { sum += x, ++seen; });
  pipeline.run();
  EXPECT_EQ(seen, kCount - 110'000);
  EXPECT_EQ(sum, kCount * (kCount - 1) / 2 - Number{110'000} * 109'999 / 2);
}

/// A domain that shares the memory of the host.
TEST(KernelStagesOfTheHost, SharedHostMemory_NoTransfersAreEnqueued) {
  const Runtime runtime("host:cores=1,host:cores=1");
  const Kernel twice = runtime.kernel("twice", [](const Call& call) {
    const auto in = call.span<const Number>(0);
    for (std::size_t i = 0; i < in.size(); ++i) call.span<Number>(1)[i] = 2 * in[i];
  });
  const weir::Place place = runtime.domain(1).place();
  const Pipeline pipeline(runtime);
  const auto raw = pipeline.tunnel<Number>("raw");
  const auto doubled = pipeline.tunnel<Number>("doubled");
  pipeline.source("numbers", into(raw), numbers(10'000));
  pipeline.kernel("twice", raw, into(doubled), twice, place);
  std::atomic<Number> sum{0};
  pipeline.stage("sum", doubled, [&](Number x) { sum += x; });
  pipeline.run();
  EXPECT_EQ(sum, 9'999u * 10'000);
  EXPECT_EQ(runtime.stats().transfers_elided, 0u);
}

TEST(KernelStagesOfTheSameName, HaveKernelsOfTheirOwn) {
  const Runtime runtime("host:cores=1,sim:cores=1");
  const weir::Place place = runtime.domain(1).place();
  runtime.kernel("count", [](const Call&) {});
  for (int i = 0; i < 2; ++i) {
    const Pipeline pipeline(runtime);
    const auto raw = pipeline.tunnel<Number>("raw");
    pipeline.source("numbers", into(raw), numbers(10));
    std::size_t seen = 0;
    pipeline.kernel(
        "count", raw, into(), [&seen](std::span<const Number> items) { seen += items.size(); },
        place);
    pipeline.run();
    EXPECT_EQ(seen, 10u);
  }
  EXPECT_NE(runtime.kernel("count 2").handle(), runtime.kernel("count 3").handle());
  const Pipeline pipeline(runtime);
  const auto raw = pipeline.tunnel<Number>("raw");
  const auto count_items = [](std::span<const Number>) {};
  EXPECT_EQ(thrown_by([&] { pipeline.kernel("", raw, into(), count_items, place); }),
            "kernel has no name");
}

TEST(KernelStagesOfATunnelThatIsTooSmall, BatchLargerThanTheTunnel_IsRefused) {
  const Runtime runtime("host:cores=1,sim:cores=1");
  const weir::Place card = runtime.domain(1).place();
  const Kernel none = runtime.kernel("none", [](const Call&) {});
  {
    const Pipeline pipeline(runtime);
    const auto raw = pipeline.tunnel<Number>("raw", {.capacity = 100});
    pipeline.source("numbers", into(raw), numbers(1));
    pipeline.kernel("look", raw, into(), none, card, {.batch = 101});
    const std::string message = thrown_by([&] { pipeline.run(); });
    EXPECT_NE(message.find("batches of 101 items of stage 'look' are never full: tunnel 'raw' has "
                           "room for 100"),
              std::string::npos)
        << message;
  }
  {
    const Pipeline pipeline(runtime);
    const auto raw = pipeline.tunnel<Number>("raw");
    auto feed = pipeline.feed(raw);
    feed.put(1);
    pipeline.kernel("look", raw, into(), none, card, {.batch = 2000});
    const std::string message = thrown_by([&] { pipeline.start(); });
    EXPECT_NE(message.find("before a feed is opened"), std::string::npos) << message;
  }
  const Pipeline pipeline(runtime);  // what is usual takes what there is room for
  const auto raw = pipeline.tunnel<Number>("raw", {.capacity = 100});
  pipeline.source("numbers", into(raw), numbers(1000));
  pipeline.kernel("look", raw, into(), none, card);
  pipeline.run();
  EXPECT_EQ(pipeline.stages()[0].complete, 1000u);
}

TEST(KernelStagesOfOtherTypes, SpanOfAnotherElementSize_FailsWithTheByteCounts) {
  const Runtime runtime("host:cores=1,sim:cores=1");
  const weir::Place card = runtime.domain(1).place();
  const Kernel wide = runtime.kernel(
      "wide", [](const Call& call) { static_cast<void>(call.span<const double>(0)); });
  const Pipeline pipeline(runtime);
  const auto raw = pipeline.tunnel<std::int32_t>("raw");
  pipeline.source("numbers", into(raw), [](const Outlet<std::int32_t>& out) {
    for (int i = 0; i < 3; ++i) out.put(i);
    return false;
  });
  pipeline.kernel("wide", raw, into(), wide, card, {.batch = 3});
  const std::string message = thrown_by([&] { pipeline.run(); });
  EXPECT_NE(message.find("operand 0 has 12 bytes, which are not whole elements of 8 bytes"),
            std::string::npos)
      << message;
}

TEST_P(KernelStages, TypedFunctionWithThreeOutputs_PutsTheRightItems) {
  constexpr Number kCount = 3'000;
  const weir::Buffer table = rig.runtime.buffer(sizeof(Number));
  *table.data<Number>() = 7;
  std::array<Number, 4> found{};
  for (int round = 0; round < 2; ++round) {  // weir distinguishes their kernel names
    found = {};
    const Pipeline pipeline(rig.runtime);
    const auto raw = pipeline.tunnel<std::uint32_t>("raw");
    const auto doubled = pipeline.tunnel<Number>("doubled");
    const auto some = pipeline.tunnel<std::uint32_t>("some");
    const auto few = pipeline.tunnel<Number>("few");
    pipeline.source("numbers", into(raw),
                    [next = std::uint32_t{0}](const Outlet<std::uint32_t>& out) mutable {
                      out.put(next++);
                      return next < kCount;
                    });
    pipeline.kernel(
        "split", raw, into(doubled, some, few),
        [](std::span<const std::uint32_t> items, const weir::KernelOutput<Number>& twice,
           const weir::KernelOutput<std::uint32_t>& odd, const weir::KernelOutput<Number>& rare,
           const Call& call) {
          const Number every = call.span<const Number>(6)[0];
          for (std::size_t i = 0; i < items.size(); ++i) {
            twice.of(i)[0] = items[i];
            twice.of(i)[1] = items[i];
            if (items[i] % 2 == 1) odd.put(i, items[i]);
            if (items[i] % every == call.scalar<Number>(1)) rare.put(items[i]);
          }
        },
        rig.place,
        {.scalars = {Number{3}},
         .outputs = {{2, WEIR_STAGE_COUNTING_ALL},
                     {1, WEIR_STAGE_COUNTING_PER_ITEM},
                     {1, WEIR_STAGE_COUNTING_PER_TUNNEL}},
         .batch = 100,
         .tables = {weir::read(table.all())}});
    pipeline.stage("doubled", doubled, [&](Number x) { found[0] += x; }, {.workers = 1});
    pipeline.stage("some", some, [&](std::uint32_t x) { found[1] += x; }, {.workers = 1});
    pipeline.stage("few", few, [&](Number x) { found[2] += x, ++found[3]; }, {.workers = 1});
    pipeline.run();
    const Number all = kCount * (kCount - 1) / 2;
    EXPECT_EQ(found[0], 2 * all);
    EXPECT_EQ(found[1], kCount / 2 * (kCount / 2));
    Number sum = 0, count = 0;
    for (Number x = 3; x < kCount; x += 7, ++count) sum += x;
    EXPECT_EQ(found[2], sum);
    EXPECT_EQ(found[3], count);
  }
}

TEST_P(KernelStages, TypedFunctionPutsTooManyItems_FailsThePipeline) {
  const Pipeline pipeline(rig.runtime);
  const auto raw = pipeline.tunnel<Number>("raw");
  const auto some = pipeline.tunnel<Number>("some");
  pipeline.source("numbers", into(raw), numbers(1));
  pipeline.kernel("twice", raw, into(some),
                  [](std::span<const Number> items, const weir::KernelOutput<Number>& out) {
                    out.put(0, items[0]);
                    out.put(0, items[0]);
                  },
                  rig.place, {.outputs = {{1, WEIR_STAGE_COUNTING_PER_ITEM}}});
  pipeline.stage("use", some, [](Number) {});
  EXPECT_NE(thrown_by([&] { pipeline.run(); }).find("there is room for 1 items"),
            std::string::npos);
}

TEST(KernelStagesOfTheHost, BatchOnTheDevice_WaitTimeoutNamesItsStage) {
  const Runtime runtime("host:cores=1,host:cores=1");
  std::atomic<bool> open{false};
  const Kernel gate = runtime.kernel("gate", [&](const Call&) { open.wait(false); });
  const weir::Place place = runtime.domain(1).place();
  const Pipeline pipeline(runtime);
  const auto raw = pipeline.tunnel<Number>("raw");
  pipeline.source("numbers", into(raw), numbers(3));
  pipeline.kernel("gate", raw, into(), gate, place, {.batch = 3});
  pipeline.start();
  std::string message;
  while (message.find("batches of stage 'gate' are on its device") == std::string::npos) {
    message = thrown_by([&] { pipeline.wait(std::chrono::nanoseconds(0)); });
    ASSERT_NE(message, "");
  }
  open = true;
  open.notify_all();
  pipeline.wait();
  EXPECT_EQ(pipeline.stages()[0].complete, 3u);
}

/// Where many items may come back their number does first, and then they: the end waits for these,
/// too.
TEST(KernelStagesThatAreGivenUp, CancelWithABatchInFlight_CompletesItsCopiesBack) {
  Rig rig("sim:clock=virtual,gbps=6");
  {
    Pipeline pipeline(rig.runtime);
    const auto raw = pipeline.tunnel<Number>("raw");
    const auto few = pipeline.tunnel<Number>("few");
    pipeline.source("numbers", into(raw), [&, calls = 0](const Outlet<Number>& out) mutable {
      if (++calls == 1) {
        for (Number i = 0; i < 5; ++i) out.put(i);
      } else if (calls == 5) {
        EXPECT_EQ(rig.runtime.stats().bytes_d2h, 0u);  // time has not passed
        pipeline.cancel();
      }
      return true;
    });
    pipeline.kernel(
        "pick", raw, into(few), rig.pick, rig.place,
        {.scalars = {Number{1}}, .outputs = {{40'000, WEIR_STAGE_COUNTING_PER_TUNNEL}}});
    pipeline.stage("use", few, [](Number) {});
    EXPECT_THROW(pipeline.run(), weir::Error);
  }
  const weir_stats stats = rig.runtime.stats();
  EXPECT_GT(stats.bytes_h2d, 0u);
  EXPECT_EQ(stats.bytes_d2h, sizeof(std::uint32_t) + 5 * sizeof(Number));
}

/// A device that is lost ends the pipeline, or costs its items; nothing hangs.
TEST(KernelStagesOfABrokenCard, DeviceLost_FailsTheStageNamingItsItems) {
  for (const bool keep_going : {false, true}) {
    Rig rig("host,sim:lost_at=20");
    const Pipeline pipeline(rig.runtime, {.keep_going = keep_going});
    const auto raw = pipeline.tunnel<Number>("raw");
    const auto squares = pipeline.tunnel<Number>("squares");
    pipeline.source("numbers", into(raw), numbers(5'000));
    pipeline.kernel("square", raw, into(squares), rig.square, rig.place, {.batch = 100});
    std::atomic<Number> seen{0};
    pipeline.stage("count", squares, [&](Number) { ++seen; });
    EXPECT_NE(thrown_by([&] { pipeline.run(); }).find("stage 'square': items "), std::string::npos);
    if (!keep_going) continue;
    EXPECT_EQ(seen + pipeline.stages()[0].failed, 5'000u);
    EXPECT_TRUE(pipeline.info().at_end);
  }
}

/// The only worker is in a call that waits for what only that failure brings.
TEST(KernelStagesOfABrokenCard, KernelFailsWhileTheOnlyWorkerIsBusy_FailureIsReported) {
  const Runtime runtime("host:cores=1,sim:cores=1");
  const weir::Place card = runtime.domain(1).place();
  std::atomic<bool> begun{false}, go{false}, told{false}, waited{false};
  const Kernel bad = runtime.kernel("bad", [&](const Call&) {
    begun = true;
    while (!go) std::this_thread::yield();
    throw std::runtime_error("the device is on fire");
  });
  const Pipeline pipeline(runtime, {.on_failure = [&](const weir_item_failure& failure) {
                            told = failure.count == 1 && std::string(failure.stage) == "bad";
                          }});
  const auto raw = pipeline.tunnel<Number>("raw");
  const auto other = pipeline.tunnel<Number>("other");
  pipeline.kernel("bad", raw, into(), bad, card);
  pipeline.stage("wait", other, [&](Number) {
    go = true;
    const auto late = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!told && std::chrono::steady_clock::now() < late) std::this_thread::yield();
    waited = told.load();
  });
  auto to_card = pipeline.feed(raw), to_host = pipeline.feed(other);
  pipeline.start();
  to_card.put(1);
  while (!begun) std::this_thread::yield();
  to_host.put(2);
  EXPECT_NE(thrown_by([&] { pipeline.wait(); }).find("items 0 to 0: "), std::string::npos);
  EXPECT_TRUE(waited);
  EXPECT_EQ(pipeline.stages()[0].failed, 1u);
}

/// A thread that cancels meanwhile and waits may end what on_failure uses.
TEST(KernelStagesOfABrokenCard, CancelWhileOnFailureRuns_WaitReturnsAfterIt) {
  const Runtime runtime("host:cores=1,sim:cores=1");
  const weir::Place card = runtime.domain(1).place();
  const Kernel bad =
      runtime.kernel("bad", [](const Call&) { throw std::runtime_error("the device is on fire"); });
  std::atomic<bool> telling{false}, go{false}, told{false};
  const Pipeline pipeline(runtime, {.on_failure = [&](const weir_item_failure&) {
                            telling = true;
                            while (!go) std::this_thread::yield();
                            told = true;
                          }});
  const auto raw = pipeline.tunnel<Number>("raw");
  pipeline.kernel("bad", raw, into(), bad, card);
  auto to_card = pipeline.feed(raw);
  pipeline.start();
  to_card.put(1);
  while (!telling) std::this_thread::yield();
  pipeline.cancel();
  const std::string early = thrown_by([&] { pipeline.wait(std::chrono::milliseconds(200)); });
  EXPECT_NE(early.find("is not at its end"), std::string::npos) << early;
  go = true;
  EXPECT_NE(thrown_by([&] { pipeline.wait(); }).find("items 0 to 0: "), std::string::npos);
  EXPECT_TRUE(told);
}

}  // namespace
}  // namespace kernel_stages
