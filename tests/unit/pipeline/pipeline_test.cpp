// Pipelines by the public interface, on the host.
#include <weir/pipeline.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "thrown.hpp"

namespace {

using weir::into;
using weir::Outlet;
using weir::Pipeline;
using weir::PipelineOptions;
using weir::Runtime;
using weir::StageContext;
using weir::thrown_by;

struct Pipelines : testing::Test {
  Runtime runtime{"host"};
};

/// A source of 0, 1, ... count - 1.
auto numbers(std::uint64_t count) {
  return [count, next = std::uint64_t{0}](const Outlet<std::uint64_t>& out) mutable {
    if (next < count) out.put(next++);
    return next < count;
  };
}

TEST_F(Pipelines, ThreeStagesSeeEveryItemOnce) {
  constexpr std::uint64_t kCount = 100'000;
  std::atomic<std::uint64_t> sum{0}, count{0};
  const Pipeline pipeline(runtime);
  const auto raw = pipeline.tunnel<std::uint64_t>("raw");
  const auto squares = pipeline.tunnel<std::uint64_t>("squares");
  pipeline.source("numbers", into(raw), numbers(kCount));
  pipeline.stage("square", raw, into(squares),
                 [](std::uint64_t x, const Outlet<std::uint64_t>& out) { out.put(x * x); });
  pipeline.stage("sum", squares, [&](std::uint64_t x) {
    sum += x;
    ++count;
  });
  pipeline.run();
  EXPECT_EQ(count, kCount);
  EXPECT_EQ(sum, (kCount - 1) * kCount * (2 * kCount - 1) / 6);
  for (const weir_stage_info& stage : pipeline.stages()) {
    EXPECT_EQ(stage.created, kCount) << stage.name;
    EXPECT_EQ(stage.complete, kCount) << stage.name;
    EXPECT_TRUE(stage.at_end);
  }
}

TEST_F(Pipelines, RecursiveStage_KeepsAtMostBatchTimesDepthItems) {
  struct Task {
    std::uint32_t depth, unused[7];
  };
  constexpr std::uint32_t kRoots = 64, kDepth = 10, kBatch = 16;
  std::atomic<std::uint64_t> leaves{0};
  PipelineOptions options;
  options.batch = kBatch;
  const Pipeline pipeline(runtime, options);
  const auto tasks = pipeline.tunnel<Task>("tasks", {.capacity = 4});
  const auto done = pipeline.tunnel<Task>("done", {.capacity = 4});
  pipeline.source("roots", into(tasks), [n = 0u](const Outlet<Task>& out) mutable {
    out.put({0, {}});
    return ++n < kRoots;
  });
  pipeline.stage("split", tasks, into(tasks, done),
                 [](const Task& task, const Outlet<Task>& again, const Outlet<Task>& leaf) {
                   if (task.depth == kDepth) return leaf.put(task);
                   again.put({task.depth + 1, {}});
                   again.put({task.depth + 1, {}});
                 });
  pipeline.stage("count", done, [&](const Task&) { ++leaves; });
  pipeline.run();
  EXPECT_EQ(leaves, std::uint64_t{kRoots} << kDepth);
  const auto stages = pipeline.stages();
  EXPECT_EQ(stages[0].complete, kRoots * ((std::uint64_t{2} << kDepth) - 1));
  EXPECT_LE(stages[0].most_kept, kBatch * (kDepth + 1));
}

TEST_F(Pipelines, TwoFeedsIntoASmallTunnel_LoseNoItems) {
  constexpr std::uint64_t kEach = 5'000;
  std::atomic<std::uint64_t> sum{0};
  const Pipeline pipeline(runtime);
  const auto numbers = pipeline.tunnel<std::uint64_t>("numbers", {.capacity = 3});
  pipeline.stage("sum", numbers, [&](std::uint64_t x) { sum += x; });
  auto one = pipeline.feed(numbers), two = pipeline.feed(numbers);
  pipeline.start();
  const auto put_all = [&](weir::Feed<std::uint64_t>& feed) {
    for (std::uint64_t i = 1; i <= kEach; ++i) feed.put(i);
    feed.close();
  };
  std::thread other([&] { put_all(one); });
  put_all(two);
  other.join();
  pipeline.wait();
  EXPECT_EQ(sum, kEach * (kEach + 1));
}

/// What workers keep for a stage that is busy holds back what comes.
TEST_F(Pipelines, SlowStageDownstream_PropagatesBackpressureToTheFeed) {
  constexpr int kRoom = 32;  // more than the tunnels and two workers hold
  const Runtime two("host:cores=2");
  std::atomic<bool> open{false};
  std::atomic<int> seen{0};
  const Pipeline pipeline(two, {.batch = 1});
  const auto raw = pipeline.tunnel<int>("raw", {.capacity = 4});
  const auto done = pipeline.tunnel<int>("done", {.capacity = 4});
  pipeline.stage("pass", raw, into(done), [](int x, const Outlet<int>& out) { out.put(x); });
  pipeline.stage("gate", done,
                 [&](int) {
                   open.wait(false);
                   ++seen;
                 },
                 {.workers = 1});
  auto feed = pipeline.feed(raw);
  pipeline.start();
  int put = 0;
  for (int i = 0; i < 5'000 && put <= kRoom; ++i) {
    put += feed.try_put(put) ? 1 : 0;
    std::this_thread::yield();
  }
  open = true;
  open.notify_all();
  feed.close();
  pipeline.wait();
  EXPECT_LE(put, kRoom);
  EXPECT_EQ(seen, put);
}

TEST_F(Pipelines, PutsBeforeTheStart_FillTheTunnelAndAreProcessed) {
  std::atomic<std::uint64_t> sum{0};
  const Pipeline pipeline(runtime);
  const auto numbers = pipeline.tunnel<std::uint64_t>("numbers", {.capacity = 4});
  auto feed = pipeline.feed(numbers);
  for (std::uint64_t i = 1; i <= 4; ++i) feed.put(i);
  EXPECT_FALSE(feed.try_put(5));
  pipeline.stage("sum", numbers, [&](std::uint64_t x) { sum += x; });
  pipeline.start();
  feed.close();
  pipeline.wait();
  EXPECT_EQ(sum, 10u);
}

TEST_F(Pipelines, FeedClosesDuringTheStart_ItsItemIsProcessed) {
  for (std::uint64_t round = 0; round < 200; ++round) {
    std::atomic<std::uint64_t> sum{0};
    const Pipeline pipeline(runtime);
    const auto numbers = pipeline.tunnel<std::uint64_t>("numbers");
    auto open = pipeline.feed(numbers);  // until there is another
    auto feed = pipeline.feed(numbers);
    pipeline.stage("sum", numbers, [&](std::uint64_t x) { sum += x; });
    std::thread feeder([&] {
      feed.put(round);
      feed.close();
    });
    pipeline.start();
    open.close();
    pipeline.wait();
    feeder.join();
    EXPECT_EQ(sum, round);
  }
}

/// A feed that could be opened beside one that closes just then holds the pipeline.
TEST_F(Pipelines, OpenRacesWithTheLastClose_FeedWorksOrOpenIsBusy) {
  for (int round = 0; round < 200; ++round) {
    const Pipeline pipeline(runtime);
    const auto numbers = pipeline.tunnel<int>("numbers");
    pipeline.stage("see", numbers, [](int) {});
    auto last = pipeline.feed(numbers);
    pipeline.start();
    std::thread closer([&] { last.close(); });
    weir_feed* late = nullptr;
    const weir_status opened = weir_feed_open(numbers.handle(), &late);
    if (opened == WEIR_STATUS_OK) {
      EXPECT_EQ(weir_feed_put(late, &round, 1, WEIR_FOREVER, nullptr), WEIR_STATUS_OK);
      weir_feed_close(late);
    } else {
      EXPECT_EQ(opened, WEIR_STATUS_BUSY);
    }
    closer.join();
    pipeline.wait();
  }
}

/// Feeds that are closed are counted together.
TEST_F(Pipelines, ManyShortLivedFeeds_ItemsCountInTheirEpoch) {
  constexpr std::uint64_t kEpochs = 6, kFeeds = 300;
  std::vector<std::uint64_t> sums(kEpochs);
  std::uint64_t ended = 0;
  const Pipeline pipeline(
      runtime, {.epochs = 2, .on_epoch = [&](std::uint64_t epoch) { EXPECT_EQ(epoch, ended++); }});
  const auto numbers = pipeline.tunnel<std::uint64_t>("numbers");
  pipeline.stage(
      "sum", numbers,
      [&](std::uint64_t x, weir::StageContext context) { sums.at(context.epoch()) += x; },
      {.workers = 1});
  auto open = pipeline.feed(numbers);
  pipeline.start();
  for (std::uint64_t epoch = 0; epoch < kEpochs; ++epoch) {
    for (std::uint64_t i = 0; i < kFeeds; ++i) {
      auto feed = pipeline.feed(numbers);
      feed.put(1);
      feed.close();
    }
    open.put(1'000'000);
    open.next_epoch();
    while (pipeline.info().epochs <= epoch) std::this_thread::yield();
  }
  open.close();
  pipeline.wait();
  EXPECT_EQ(ended, kEpochs);
  for (const std::uint64_t sum : sums) EXPECT_EQ(sum, 1'000'000 + kFeeds);
  EXPECT_EQ(pipeline.stages()[0].created, kEpochs * (kFeeds + 1));
}

/// What is put while on_epoch reports the end of an epoch does not belong to it.
TEST_F(Pipelines, FeedsOpenedAtTheEndOfAnEpochPutIntoTheNext) {
  std::atomic<bool> told{false}, opened{false};
  std::atomic<std::uint64_t> found{0};
  PipelineOptions options;
  options.epochs = 2;
  options.on_epoch = [&](std::uint64_t) {
    told = true;
    while (!opened) std::this_thread::yield();
  };
  const Pipeline pipeline(runtime, std::move(options));
  const auto numbers = pipeline.tunnel<int>("numbers");
  pipeline.stage("see", numbers, [&](int x, weir::StageContext context) {
    if (x == 2) found = context.epoch();
  });
  auto feed = pipeline.feed(numbers);
  pipeline.start();
  feed.put(1);
  feed.next_epoch();
  while (!told) std::this_thread::yield();
  auto late = pipeline.feed(numbers);
  late.put(2);
  opened = true;
  late.close();
  feed.close();
  pipeline.wait();
  EXPECT_EQ(found, 1u);
}

/// An epoch into which nothing could be put has not been.
TEST_F(Pipelines, PutBeyondTheEpochLimit_TimesOutNamingTheEpoch) {
  std::atomic<bool> open{false};
  std::vector<std::uint64_t> ended;
  const Pipeline pipeline(runtime,
                          {.name = "pictures", .epochs = 1, .on_epoch = [&](std::uint64_t epoch) {
                             ended.push_back(epoch);
                           }});
  const auto numbers = pipeline.tunnel<int>("numbers");
  pipeline.stage("gate", numbers, [&](int) { open.wait(false); });
  auto feed = pipeline.feed(numbers);
  pipeline.start();
  feed.put(1);
  feed.next_epoch();
  EXPECT_EQ(thrown_by([&] { feed.put(2, std::chrono::nanoseconds(0)); }),
            "epoch 1 did not begin before the deadline, 1 item for tunnel 'numbers' is left: "
            "epoch 0 is not complete, and pipeline 'pictures' has 1 in flight at most");
  feed.put(std::span<const int>());  // nothing waits for nothing
  feed.close();
  open = true;
  open.notify_all();
  pipeline.wait();
  EXPECT_EQ(ended, std::vector<std::uint64_t>{0});
}

TEST_F(Pipelines, AStageThatThrowsStopsThePipeline) {
  const Pipeline pipeline(runtime);
  const auto items = pipeline.tunnel<std::uint64_t>("items");
  pipeline.source("numbers", into(items), numbers(1'000));
  pipeline.stage("check", items, [](std::uint64_t x) {
    if (x == 123) throw std::runtime_error("123 is bad");
  });
  EXPECT_EQ(thrown_by([&] { pipeline.run(); }), "stage 'check': 123 is bad");
}

TEST_F(Pipelines, StageThatThrowsWithKeepGoing_LosesOnlyThatItem) {
  std::vector<std::string> reports;
  std::mutex mutex;
  PipelineOptions options;
  options.keep_going = true;
  options.on_failure = [&](const weir_item_failure& failure) {
    const std::lock_guard lock(mutex);
    reports.push_back(std::string(failure.stage) + ' ' +
                      std::to_string(*static_cast<const std::uint64_t*>(failure.item)) + ' ' +
                      failure.message);
  };
  std::atomic<std::uint64_t> good{0};
  const Pipeline pipeline(runtime, std::move(options));
  const auto items = pipeline.tunnel<std::uint64_t>("items");
  pipeline.source("numbers", into(items), numbers(1'000));
  pipeline.stage("check", items, [&](std::uint64_t x) {
    if (x % 400 == 7) throw std::runtime_error("bad");
    ++good;
  });
  EXPECT_EQ(thrown_by([&] { pipeline.run(); }), "stage 'check': bad");
  std::sort(reports.begin(), reports.end());
  EXPECT_EQ(reports, (std::vector<std::string>{"check 407 bad", "check 7 bad", "check 807 bad"}));
  EXPECT_EQ(good, 997u);
  EXPECT_EQ(pipeline.stages()[0].failed, 3u);
  EXPECT_EQ(pipeline.stages()[0].complete, 1'000u);
}

TEST_F(Pipelines, OnFailureCancels_WaitStillReportsTheFailure) {
  const Pipeline* whole = nullptr;
  PipelineOptions options;
  options.on_failure = [&](const weir_item_failure&) { whole->cancel(); };
  const Pipeline pipeline(runtime, std::move(options));
  whole = &pipeline;
  const auto items = pipeline.tunnel<std::uint64_t>("items");
  pipeline.source("numbers", into(items), numbers(10));
  pipeline.stage("check", items, [](std::uint64_t x) {
    if (x == 7) throw std::runtime_error("7 is bad");
  });
  EXPECT_EQ(thrown_by([&] { pipeline.run(); }), "stage 'check': 7 is bad");
}

TEST_F(Pipelines, LoopWithoutAnExit_FailsNamingTheStage) {
  PipelineOptions options;
  options.keep_bytes = 1 << 16;
  const Pipeline pipeline(runtime, options);
  const auto items = pipeline.tunnel<std::uint64_t>("items");
  pipeline.source("numbers", into(items), numbers(10));
  pipeline.stage("double", items, into(items),
                 [](std::uint64_t x, const Outlet<std::uint64_t>& again) {
                   again.put(x);
                   again.put(x);
                 });
  const std::string message = thrown_by([&] { pipeline.run(); });
  EXPECT_NE(message.find("stage 'double': a worker keeps 8192 items"), std::string::npos)
      << message;
  EXPECT_NE(message.find("has the loop it is in an exit?"), std::string::npos) << message;
}

TEST_F(Pipelines, KeepLatestOverflow_CountsDropsAndKeepsTheLatest) {
  std::vector<std::uint64_t> seen;
  std::atomic<bool> go{false};
  const Pipeline pipeline(runtime);
  const auto frames =
      pipeline.tunnel<std::uint64_t>("frames", {.overflow = WEIR_OVERFLOW_KEEP_LATEST});
  pipeline.stage("show", frames,
                 [&](std::uint64_t x) {
                   seen.push_back(x);
                   while (!go) std::this_thread::yield();
                 },
                 {.workers = 1});
  auto camera = pipeline.feed(frames);
  pipeline.start();
  for (std::uint64_t i = 1; i <= 100; ++i) camera.put(i);
  go = true;
  camera.close();
  pipeline.wait();
  ASSERT_FALSE(seen.empty());
  EXPECT_EQ(seen.back(), 100u);
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
  const weir_stage_info stage = pipeline.stages()[0];
  EXPECT_EQ(stage.dropped + seen.size(), 100u);
  EXPECT_EQ(stage.complete, 100u);
}

TEST_F(Pipelines, EpochsEndInOrder) {
  constexpr std::uint64_t kPictures = 20, kTiles = 50;
  std::vector<std::uint64_t> ended;
  std::array<std::atomic<std::uint64_t>, kPictures> tiles{};
  PipelineOptions options;
  options.epochs = 3;
  options.on_epoch = [&](std::uint64_t picture) {
    EXPECT_EQ(tiles[picture], 2 * kTiles);
    ended.push_back(picture);
  };
  const Pipeline pipeline(runtime, std::move(options));
  const auto parts = pipeline.tunnel<std::uint64_t>("parts");
  const auto halves = pipeline.tunnel<std::uint64_t>("halves");
  pipeline.source(
      "pictures", into(parts),
      [n = std::uint64_t{0}](const Outlet<std::uint64_t>& out, StageContext context) mutable {
        out.put(n / kTiles);
        if (++n % kTiles == 0) context.end_epoch();
        return n < kPictures * kTiles;
      });
  pipeline.stage("halve", parts, into(halves),
                 [](std::uint64_t picture, const Outlet<std::uint64_t>& out) {
                   out.put(picture);
                   out.put(picture);
                 });
  pipeline.stage("count", halves, [&](std::uint64_t picture, StageContext context) {
    EXPECT_EQ(context.epoch(), picture);
    ++tiles[picture];
  });
  pipeline.run();
  ASSERT_EQ(ended.size(), kPictures);
  EXPECT_TRUE(std::is_sorted(ended.begin(), ended.end()));
}

/// What a stage puts at its end belongs to the last epoch, whose end waits for it.
TEST_F(Pipelines, ItemsPutAtTheEndOfAStage_BelongToTheLastEpoch) {
  struct Seen {
    std::vector<std::uint64_t> ended, epochs;  // that are over; of the items that came
  } seen;
  const Pipeline pipeline(runtime, {.epochs = 2, .on_epoch = [&](std::uint64_t epoch) {
                                      seen.ended.push_back(epoch);
                                    }});
  const auto numbers = pipeline.tunnel<int>("numbers"), sums = pipeline.tunnel<int>("sums");
  weir_tunnel* const output = sums.handle();
  weir_stage_options options = WEIR_STAGE_OPTIONS_INIT;
  options.name = "add";
  options.input = numbers.handle();
  options.outputs = &output;
  options.output_count = 1;
  options.function = [](weir_batch*) { return WEIR_STATUS_OK; };
  options.at_end = [](weir_batch* batch) {
    void* const room = weir_outlet_add(batch->outlets[0]);
    if (room == nullptr) return WEIR_STATUS_OUT_OF_MEMORY;
    *static_cast<int*>(room) = 1;
    return WEIR_STATUS_OK;
  };
  weir::check(weir_pipeline_add_stage(pipeline.handle(), &options));
  pipeline.stage("see", sums, [&](int, StageContext context) {
    EXPECT_EQ(seen.ended, std::vector<std::uint64_t>{0});
    seen.epochs.push_back(context.epoch());
  });
  auto feed = pipeline.feed(numbers);
  pipeline.start();
  feed.put(1);
  feed.next_epoch();
  while (pipeline.info().epochs == 0) std::this_thread::yield();
  feed.put(2);
  feed.close();
  pipeline.wait();
  EXPECT_EQ(seen.epochs, std::vector<std::uint64_t>{1});
  EXPECT_EQ(seen.ended, (std::vector<std::uint64_t>{0, 1}));
}

TEST_F(Pipelines, OrderedStagesKeepTheOrderOnAllWorkers) {
  std::vector<std::uint64_t> seen;
  const Pipeline pipeline(runtime);
  const auto raw = pipeline.tunnel<std::uint64_t>("raw", {.capacity = 16});
  const auto out = pipeline.tunnel<std::uint64_t>("out", {.capacity = 16});
  pipeline.source("numbers", into(raw), numbers(10'000));
  pipeline.stage("pass", raw, into(out),
                 [](std::uint64_t x, const Outlet<std::uint64_t>& to) { to.put(x); },
                 {.ordered = true});
  pipeline.stage("write", out, [&](std::uint64_t x) { seen.push_back(x); }, {.workers = 1});
  pipeline.run();
  ASSERT_EQ(seen.size(), 10'000u);
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
}

weir_status put_numbers(weir_batch* batch, int from, int to) {
  for (int i = from; i < to; ++i) {
    void* const room = weir_outlet_add(batch->outlets[0]);
    if (room == nullptr) return WEIR_STATUS_OUT_OF_MEMORY;
    *static_cast<int*>(room) = i;
  }
  return WEIR_STATUS_OK;
}

/// What a serial stage puts at its end comes last, though there was no room for all before it.
TEST_F(Pipelines, ItemsPutAtTheEndOfAStage_ReachOrderedStagesLast) {
  constexpr int kItems = 20;
  const Runtime two("host:cores=2");
  for (int round = 0; round < 100; ++round) {
    std::vector<int> seen;
    const Pipeline pipeline(two);
    const auto start = pipeline.tunnel<int>("start"),
               many = pipeline.tunnel<int>("many", {.capacity = 2}),
               done = pipeline.tunnel<int>("done");
    weir_tunnel* const output = many.handle();
    weir_stage_options options = WEIR_STAGE_OPTIONS_INIT;
    options.input = start.handle();
    options.outputs = &output;
    options.output_count = 1;
    options.workers = 1;
    options.function = [](weir_batch* batch) { return put_numbers(batch, 0, kItems); };
    options.at_end = [](weir_batch* batch) { return put_numbers(batch, kItems, kItems + 1); };
    weir::check(weir_pipeline_add_stage(pipeline.handle(), &options));
    pipeline.stage("pass", many, into(done),
                   [](int x, const Outlet<int>& out) {
                     std::this_thread::yield();
                     out.put(x);
                   },
                   {.ordered = true});
    pipeline.stage("see", done, [&](int x) { seen.push_back(x); }, {.workers = 1});
    auto feed = pipeline.feed(start);
    feed.put(0);
    pipeline.start();
    feed.close();
    pipeline.wait();
    ASSERT_EQ(seen.size(), std::size_t{kItems + 1});
    ASSERT_TRUE(std::is_sorted(seen.begin(), seen.end()));
  }
}

TEST_F(Pipelines, MoveAssignment_DestroysStagesBeforeTheCallbacks) {
  std::vector<std::string> gone;
  const auto note = [&gone](const char* what) {
    return std::shared_ptr<void>(nullptr, [&gone, what](void*) { gone.emplace_back(what); });
  };
  Pipeline pipeline(runtime, {.on_failure = [held = note("callbacks")](const auto&) {}});
  const auto items = pipeline.tunnel<int>("items");
  pipeline.stage("take", items, [held = note("stage")](int) {});
  pipeline = Pipeline(runtime);
  EXPECT_EQ(gone, (std::vector<std::string>{"stage", "callbacks"}));
}

/// A stage reports its end though the only worker always has something to do.
TEST_F(Pipelines, BusyWorker_StillCallsAtEndOfAnotherStage) {
  constexpr std::uint64_t kEnough = 2'000'000;
  const Runtime one("host:cores=1");
  std::atomic<bool> ended{false};
  const Pipeline pipeline(one);
  const auto few = pipeline.tunnel<std::uint64_t>("few"),
             many = pipeline.tunnel<std::uint64_t>("many");
  pipeline.source("few", into(few), numbers(10));
  weir_stage_options options = WEIR_STAGE_OPTIONS_INIT;
  options.name = "ends";
  options.input = few.handle();
  options.payload = &ended;
  options.function = [](weir_batch*) { return WEIR_STATUS_OK; };
  options.at_end = [](weir_batch* batch) {
    *static_cast<std::atomic<bool>*>(batch->payload) = true;
    return WEIR_STATUS_OK;
  };
  weir::check(weir_pipeline_add_stage(pipeline.handle(), &options));
  std::uint64_t put = 0;
  pipeline.source("many", into(many), [&](const Outlet<std::uint64_t>& out) {
    out.put(++put);
    return !ended && put < kEnough;
  });
  pipeline.stage("see", many, [](std::uint64_t) {});
  pipeline.run();
  EXPECT_LT(put, kEnough);
}

TEST_F(Pipelines, WrongCalls_AreRefusedWithTheReason) {
  const Pipeline pipeline(runtime);
  const auto items = pipeline.tunnel<int>("items");
  EXPECT_EQ(thrown_by([&] { pipeline.wait(); }),
            "pipeline 'pipeline 0' has not started: nothing to wait for");
  EXPECT_EQ(thrown_by([&] { pipeline.start(); }), "pipeline 'pipeline 0' has no stages");
  pipeline.stage("take", items, [](int) {});
  EXPECT_EQ(thrown_by([&] { pipeline.stage("other", items, [](int) {}); }),
            "tunnel 'items' leads to stage 'take' already, and cannot lead to 'other'");
  EXPECT_NE(thrown_by([&] { pipeline.start(); }).find("nothing puts items into tunnel 'items'"),
            std::string::npos);
  weir_feed* feed = nullptr;
  ASSERT_EQ(weir_feed_open(items.handle(), &feed), WEIR_STATUS_OK);
  pipeline.start();
  EXPECT_EQ(thrown_by([&] { pipeline.wait(std::chrono::nanoseconds(0)); }),
            "pipeline 'pipeline 0' is not at its end: tunnel 'items' has 1 open feed");
  EXPECT_EQ(thrown_by([&] { pipeline.start(); }),
            "pipeline 'pipeline 0' has started: it gets no more workers");
  weir_feed_close(feed);
  const int item = 1;
  EXPECT_EQ(weir_feed_put(feed, &item, 1, WEIR_FOREVER, nullptr), WEIR_STATUS_INVALID_ARGUMENT);
  EXPECT_STREQ(weir_last_error(), "feed 'items' has been destroyed");
  pipeline.wait();
  EXPECT_EQ(weir_feed_open(items.handle(), &feed), WEIR_STATUS_BUSY);
}

TEST_F(Pipelines, ALoopThatNothingFeedsIsRefused) {
  const auto forward = [](int, const Outlet<int>&) {};
  const Pipeline pipeline(runtime, {.name = "lonely"});
  const auto raw = pipeline.tunnel<int>("raw");
  const auto ping = pipeline.tunnel<int>("ping");
  const auto pong = pipeline.tunnel<int>("pong");
  const auto end = pipeline.tunnel<int>("end");
  pipeline.source("numbers", into(raw), [](const Outlet<int>&) { return false; });
  pipeline.stage("use", raw, [](int) {});
  pipeline.stage("left", ping, into(pong, end), [](int, const Outlet<int>&, const Outlet<int>&) {});
  pipeline.stage("right", pong, into(ping), forward);
  pipeline.stage("last", end, [](int) {});
  weir_status status = WEIR_STATUS_OK;
  const std::string message = thrown_by([&] {
    status = weir_pipeline_start(pipeline.handle());
    weir::check(status);
  });
  EXPECT_EQ(status, WEIR_STATUS_INVALID_ARGUMENT);
  EXPECT_NE(
      message.find("loop of pipeline 'lonely': stage 'left' with tunnel 'ping', stage 'right' "
                   "with tunnel 'pong'"),
      std::string::npos)
      << message;
  auto feed = pipeline.feed(pong);  // and then it is in order
  pipeline.start();
  feed.put(1);
  feed.close();
  pipeline.wait();
  EXPECT_EQ(pipeline.stages()[2].complete, 1u);
}

TEST_F(Pipelines, AStageThatFeedsOnlyItselfIsRefused) {
  const Pipeline pipeline(runtime);
  const auto again = pipeline.tunnel<int>("again");
  pipeline.stage("circle", again, into(again), [](int, const Outlet<int>&) {});
  EXPECT_NE(thrown_by([&] { pipeline.run(); }).find("stage 'circle' with tunnel 'again'"),
            std::string::npos);
}

/// What a call of a stage takes, and how much of that is work.
struct Waiting {
  std::int64_t busy_ns;
  std::size_t calls = 0;

  static weir_status stage(weir_batch* batch) {
    auto& self = *static_cast<Waiting*>(batch->payload);
    ++self.calls;
    const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(50);
    while (std::chrono::steady_clock::now() < until) continue;
    batch->busy_ns = self.busy_ns;
    return WEIR_STATUS_OK;
  }
};

/// A stage that waits for others says what of its call was work: batches grow by that.
TEST_F(Pipelines, ReportedBusyTime_DeterminesTheBatchSize) {
  constexpr std::size_t kItems = 640, kBatch = 64;
  const auto place = runtime.domain(std::size_t{0}).place(1);
  for (const std::int64_t busy_ns : {std::int64_t{100}, std::int64_t{-1}}) {
    Waiting waiting{busy_ns};
    const Pipeline pipeline(runtime, {.place = &place, .batch = kBatch});
    const auto items = pipeline.tunnel<int>("items");
    weir_stage_options options = WEIR_STAGE_OPTIONS_INIT;
    options.input = items.handle();
    options.function = Waiting::stage;
    options.payload = &waiting;
    weir::check(weir_pipeline_add_stage(pipeline.handle(), &options));
    auto feed = pipeline.feed(items);
    for (std::size_t i = 0; i < kItems; ++i) feed.put(0);
    pipeline.start();
    feed.close();
    pipeline.wait();
    if (busy_ns < 0) {
      EXPECT_EQ(waiting.calls, kItems);
      continue;
    }
    // 1, 2, 4, ... 32, 64, 64, ...
    EXPECT_LE(waiting.calls, 6 + kItems / kBatch + 1);
    EXPECT_LE(pipeline.state().stages[0].busy_ns, waiting.calls * 100u);
  }
}

TEST_F(Pipelines, CancelEndsAFeedThatWaits) {
  std::atomic<bool> inside{false};
  const Pipeline pipeline(runtime);
  const auto items = pipeline.tunnel<int>("items", {.capacity = 1});
  pipeline.stage("hold", items, [&](int) {
    inside = true;
    while (pipeline.info().workers > 0 && inside) std::this_thread::yield();
  });
  auto feed = pipeline.feed(items);
  pipeline.start();
  feed.put(1);
  while (!inside) std::this_thread::yield();
  pipeline.cancel();
  EXPECT_NE(thrown_by([&] {
              for (;;) feed.put(2);
            }).find("was stopped with 1 item left for tunnel 'items'"),
            std::string::npos);
  inside = false;
  EXPECT_EQ(thrown_by([&] { pipeline.wait(); }), "the pipeline was cancelled");
}

/// A feeder whose second item went in has not found room at once, and none comes for the third.
TEST_F(Pipelines, DestroyedWhileAFeedWaits_PutIsCancelled) {
  for (int round = 0; round < 20; ++round) {
    std::atomic<bool> go{false};
    std::optional<Pipeline> pipeline(std::in_place, runtime);
    const auto items = pipeline->tunnel<int>("items", {.capacity = 1});
    pipeline->stage("hold", items,
                    [&](int) {
                      while (!go) std::this_thread::yield();
                      throw std::runtime_error("enough");
                    },
                    {.workers = 1});
    weir_feed* feed = nullptr;
    ASSERT_EQ(weir_feed_open(items.handle(), &feed), WEIR_STATUS_OK);
    pipeline->start();
    weir_status status = WEIR_STATUS_OK;
    std::size_t put = 0;
    std::thread feeder([&] {
      constexpr int kItems[] = {1, 2, 3};
      status = weir_feed_put(feed, kItems, 3, WEIR_FOREVER, &put);
    });
    while (pipeline->stages()[0].created < 2) std::this_thread::yield();
    go = true;
    pipeline.reset();
    feeder.join();
    EXPECT_EQ(status, WEIR_STATUS_CANCELLED);
    EXPECT_EQ(put, 2u);
  }
}

/// Returns the virtual time of 100 items through a source of 1 us, a stage of 0.5 us and one of a
/// quarter of a nanosecond that only one core may work on.
std::int64_t time_of_100_items(const char* domains) {
  const Runtime runtime(domains);
  const Pipeline pipeline(runtime);
  const auto raw = pipeline.tunnel<std::uint64_t>("raw");
  const auto squares = pipeline.tunnel<std::uint64_t>("squares");
  pipeline.source("numbers", into(raw), numbers(100), {.item_ns = 1000});
  pipeline.stage("square", raw, into(squares),
                 [](std::uint64_t x, const Outlet<std::uint64_t>& out) { out.put(x * x); },
                 {.item_ns = 500});
  pipeline.stage("last", squares, [](std::uint64_t) {}, {.workers = 1, .item_ns = 0.25});
  const auto begin = runtime.now();
  pipeline.run();
  const std::int64_t taken = (runtime.now() - begin).count();
  std::uint64_t busy = 0;
  for (const auto& stage : pipeline.state().stages) busy += stage.busy_ns;
  EXPECT_EQ(busy, static_cast<std::uint64_t>(taken));
  return taken;
}

TEST(VirtualPipelines, FunctionsTakeTheTimeOfTheirItems) {
  EXPECT_EQ(time_of_100_items("sim:clock=virtual,gbps=6"), 100 * 1500 + 25);
  EXPECT_EQ(time_of_100_items("sim:clock=virtual,host:clock=virtual,cores=4,gflops=1"),
            100 * (1000 + 500 / 4) + 25);
}

TEST(VirtualPipelines, TimeThatCannotBe_IsRefused) {
  const Runtime runtime("sim:clock=virtual,gbps=6");
  const Pipeline pipeline(runtime);
  const auto raw = pipeline.tunnel<std::uint64_t>("raw");
  for (const double ns : {-1.0, std::nan(""), 1e300}) {
    const auto add = [&] { pipeline.source("numbers", into(raw), numbers(1), {.item_ns = ns}); };
    EXPECT_NE(thrown_by(add, WEIR_STATUS_INVALID_ARGUMENT).find("'numbers'"), std::string::npos);
  }
}

}  // namespace
