// What kernels, callbacks and stages destroy is destroyed by a thread that may wait.
#include "stream/reaper.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <weir/pipeline.hpp>

#include "base/thread_role.hpp"
#include "gate.hpp"

namespace weir {
namespace {

/// A stage makes a place of the device and destroys it, again and again.
TEST(PlacesMadeInAStage, DestroyedByThatStage_ReleaseTheirCores) {
  const Runtime runtime("host:cores=1,sim:cores=1");
  const Domain card = runtime.domain(1);
  for (int round = 0; round < 20; ++round) {
    bool made = false;
    const Pipeline pipeline(runtime);
    const auto items = pipeline.tunnel<int>("items");
    pipeline.source("one", into(items), [](const Outlet<int>& out) {
      out.put(1);
      return false;
    });
    pipeline.stage("make", items, [&](int) { made = card.place(1).cores() == 1; });
    pipeline.run();
    EXPECT_TRUE(made);
    EXPECT_EQ(card.place().cores(), 1u);  // waits for the core
    EXPECT_EQ(card.partition(1).size(), 1u);
  }
}

/// Runs code on cores that others may have, too.
template <class Code>
void run_in_kernel(const Runtime& runtime, Code code) {
  const std::vector<Place> places = runtime.domain(0).partition(1, true);
  const Stream stream = places[0].stream();
  stream.compute(runtime.kernel("code", [code](const Call&) { code(); }), {});
  stream.synchronize();
}

/// The kernel of a place destroys it, and so does the program: once is enough.
TEST(PlacesDestroyedByTheirKernels, KernelEnds_PlaceIsDestroyedAndReleasesItsCores) {
  const Runtime runtime("host:cores=1");
  weir_place* place = nullptr;
  check(weir_place_create(runtime.domain(0).handle(), nullptr, &place));
  const Kernel kernel = runtime.kernel("destroy", [&](const Call&) {
    weir_place_destroy(place);
    weir_place_destroy(place);
    EXPECT_EQ(status_of([&] { runtime.domain(0).place(); }), WEIR_STATUS_BUSY);
    EXPECT_NE(std::string(weir_last_error()).find("give theirs back later"), std::string::npos)
        << weir_last_error();
  });
  weir_stream* stream = nullptr;
  check(weir_stream_create(place, nullptr, &stream));
  weir_compute compute = WEIR_COMPUTE_INIT;
  compute.kernel = kernel.handle();
  weir_event event = WEIR_EVENT_INIT;
  check(weir_stream_compute(stream, &compute, &event));
  check(weir_event_wait(runtime.handle(), &event, 1, WEIR_WAIT_MODE_ALL, WEIR_FOREVER, nullptr));
  weir_place_destroy(place);
  EXPECT_EQ(runtime.domain(0).place().cores(), 1u);
  weir_place_info info = WEIR_PLACE_INFO_INIT;
  EXPECT_EQ(weir_place_get_info(place, &info), WEIR_STATUS_INVALID_ARGUMENT);
}

TEST(BuffersDestroyedByKernels, AreNoLongerFoundByAddress) {
  const Runtime runtime("host");
  weir_buffer* buffer = nullptr;
  check(weir_buffer_create(runtime.handle(), 64, nullptr, &buffer));
  weir_buffer_info info = WEIR_BUFFER_INFO_INIT;
  check(weir_buffer_get_info(buffer, &info));
  run_in_kernel(runtime, [&] { weir_buffer_destroy(buffer); });
  weir_buffer* found = nullptr;
  std::size_t offset = 0;
  while (weir_buffer_find(runtime.handle(), info.address, &found, &offset) == WEIR_STATUS_OK) {
    std::this_thread::yield();
  }
}

TEST(StreamsDestroyedByKernels, SecondDestroyByProgram_LeavesAnInvalidHandle) {
  const Runtime runtime("host");
  const std::vector<Place> places = runtime.domain(0).partition(1, true);
  weir_stream* stream = nullptr;
  check(weir_stream_create(places[0].handle(), nullptr, &stream));
  run_in_kernel(runtime, [&] { weir_stream_destroy(stream); });
  weir_stream_destroy(stream);  // waits for the other one
  EXPECT_EQ(weir_stream_synchronize(stream, 0), WEIR_STATUS_INVALID_ARGUMENT);
}

TEST(QueuesDestroyedByKernels, ReleaseTheirCores) {
  const Runtime runtime("host");
  const std::size_t cores = runtime.domain(0).info().cores;
  weir_queue* queue = nullptr;
  check(weir_queue_create(runtime.handle(), nullptr, &queue));
  EXPECT_EQ(status_of([&] { runtime.domain(0).place(cores); }), WEIR_STATUS_BUSY);
  run_in_kernel(runtime, [&] { weir_queue_destroy(queue); });
  EXPECT_EQ(runtime.domain(0).place(cores).cores(), cores);
}

/// A stage ends its own pipeline, which is cancelled then.
TEST(PipelinesDestroyedByTheirStages, ReleaseTheirCores) {
  const Runtime runtime("host:cores=1");
  weir_pipeline* pipeline = nullptr;
  check(weir_pipeline_create(runtime.handle(), nullptr, &pipeline));
  weir_tunnel_options wanted = WEIR_TUNNEL_OPTIONS_INIT;
  wanted.item_bytes = sizeof(int);
  weir_tunnel* tunnel = nullptr;
  check(weir_pipeline_add_tunnel(pipeline, &wanted, &tunnel));
  std::pair<weir_pipeline*, std::atomic<bool>> told{pipeline, false};
  weir_stage_options stage = WEIR_STAGE_OPTIONS_INIT;
  stage.input = tunnel;
  stage.payload = &told;
  stage.function = [](weir_batch* batch) {
    auto& [target, flag] = *static_cast<decltype(told)*>(batch->payload);
    weir_pipeline_destroy(target);
    flag = true;
    return WEIR_STATUS_OK;
  };
  check(weir_pipeline_add_stage(pipeline, &stage));
  weir_feed* feed = nullptr;
  check(weir_feed_open(tunnel, &feed));
  const int item = 1;
  check(weir_feed_put(feed, &item, 1, WEIR_FOREVER, nullptr));
  check(weir_pipeline_start(pipeline));
  while (!told.second) std::this_thread::yield();
  EXPECT_EQ(runtime.domain(0).place(1).cores(), 1u);
}

TEST(RuntimesInKernels, Creation_ReturnsBusy) {
  const Runtime runtime("host:cores=1");
  const Place place = runtime.domain(0).place();
  const Stream stream = place.stream();
  weir_status status = WEIR_STATUS_OK;
  const Kernel kernel = runtime.kernel(
      "nest", [&](const Call&) { status = status_of([] { const Runtime inner("host"); }); });
  stream.compute(kernel, {});
  stream.synchronize();
  EXPECT_EQ(status, WEIR_STATUS_BUSY);
}

/// The end of the runtime does not wait for the kernel longer than its timeout.
TEST(StreamsDestroyedByCallbacks, RuntimeShutdownAfterwards_DoesNotHang) {
  Gate gate;
  {
    const Runtime runtime("host:cores=1");
    const Place place = runtime.domain(0).place();
    weir_stream* stream = nullptr;
    check(weir_stream_create(place.handle(), nullptr, &stream));
    const Stream other = place.stream();
    std::atomic<bool> called{false};
    std::pair<weir_stream*, std::atomic<bool>*> told{stream, &called};
    const Kernel kernel = runtime.kernel("none", [](const Call&) {});
    weir_event event = other.compute(kernel, {}).handle();
    check(weir_event_on_complete(
        runtime.handle(), &event,
        [](weir_status, const char*, void* payload) {
          const auto& [target, flag] =
              *static_cast<std::pair<weir_stream*, std::atomic<bool>*>*>(payload);
          weir_stream_destroy(target);
          *flag = true;
        },
        &told));
    while (!called) std::this_thread::yield();
  }
}

}  // namespace

namespace rt {
namespace {

TEST(Reapers, ObjectAddedTwice_IsDestroyedOnce) {
  Reaper reaper;
  std::atomic<int> destroyed{0};
  std::atomic<bool> begun{false}, go{false};
  const int first = 0, second = 0, third = 0;
  {
    const NoWaitScope in_kernel;
    for (int i = 0; i < 2; ++i) {
      reaper.add(&first, [&] {
        EXPECT_TRUE(reaper.take_back(&first));  // it is the one
        begun = true;
        while (!go) std::this_thread::yield();
        ++destroyed;
      });
      reaper.add(&second, [&] { ++destroyed; });
    }
    reaper.add(&third, [&] { destroyed += 100; });
    reaper.settle();  // does not wait here
    EXPECT_TRUE(reaper.busy());
  }
  while (!begun) std::this_thread::yield();
  EXPECT_TRUE(reaper.take_back(&third));
  std::thread helper([&] {
    static_cast<void>(reaper.take_back(&first));
    EXPECT_GE(destroyed, 1);
  });
  go = true;
  helper.join();
  reaper.settle();
  EXPECT_FALSE(reaper.busy());
  EXPECT_EQ(destroyed, 2);
  reaper.stop(sys::kNever);
  reaper.add(&first, [&] { ++destroyed; });
  EXPECT_FALSE(reaper.busy());
}

TEST(Reapers, StopWhileBusy_ReturnsAtItsDeadlineAndStartsNoMore) {
  std::atomic<bool> begun{false}, go{false};
  Reaper reaper;
  const int object = 0, next = 0;
  reaper.add(&object, [&] {
    begun = true;
    while (!go) std::this_thread::yield();
  });
  reaper.add(&next, [] { ADD_FAILURE() << "begun after the end"; });
  while (!begun) std::this_thread::yield();
  reaper.stop(sys::now_ns());
  EXPECT_TRUE(reaper.busy());
  go = true;
  reaper.join();
}

}  // namespace
}  // namespace rt
}  // namespace weir
