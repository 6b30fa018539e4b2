// Waits for events: any and all, deadlines, and callbacks.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "gate.hpp"

namespace weir {
namespace {

using namespace std::chrono_literals;

class WaitingTest : public testing::Test {
 protected:
  void TearDown() override { gate_.open(); }

  weir_status wait(std::initializer_list<Event> events, weir_wait_mode mode,
                   std::chrono::nanoseconds timeout, std::size_t* index = nullptr) {
    std::vector<weir_event> handles;
    for (const Event& event : events) handles.push_back(event.handle());
    return weir_event_wait(runtime_.handle(), handles.data(), handles.size(), mode, timeout.count(),
                           index);
  }

  Gate gate_;
  Runtime runtime_{"host"};
  Place place_ = runtime_.domain(0).place(1);
  Stream stream_ = place_.stream();
  Kernel nothing_ = runtime_.kernel("nothing", [](const Call&) {});
  Kernel bad_ = runtime_.kernel("bad", [](const Call&) { throw std::runtime_error("no luck"); });
};

TEST_F(WaitingTest, TimeoutBeforeCompletion_IsReportedAndActionContinues) {
  const Event event = gate_.close(runtime_, stream_);
  EXPECT_EQ(wait({event}, WEIR_WAIT_MODE_ALL, 0ns), WEIR_STATUS_TIMEOUT);
  EXPECT_EQ(wait({event}, WEIR_WAIT_MODE_ALL, 2ms), WEIR_STATUS_TIMEOUT);
  EXPECT_EQ(wait({event}, WEIR_WAIT_MODE_ANY, 2ms), WEIR_STATUS_TIMEOUT);
  EXPECT_EQ(status_of([&] { stream_.synchronize(1ms); }), WEIR_STATUS_TIMEOUT);
  EXPECT_EQ(status_of([&] { runtime_.synchronize(1ms); }), WEIR_STATUS_TIMEOUT);
  EXPECT_FALSE(event.complete());
  gate_.open();
  EXPECT_EQ(wait({event}, WEIR_WAIT_MODE_ALL, forever), WEIR_STATUS_OK);
  EXPECT_TRUE(event.complete());
}

TEST_F(WaitingTest, SynchronizeThatTimesOut_KeepsTheFailureForTheNext) {
  const Buffer buffer = runtime_.buffer(8);
  gate_.close(runtime_, stream_);
  stream_.compute(bad_, {weir::write(buffer.all())});
  EXPECT_EQ(status_of([&] { stream_.synchronize(1ms); }), WEIR_STATUS_TIMEOUT);
  EXPECT_EQ(status_of([&] { runtime_.synchronize(1ms); }), WEIR_STATUS_TIMEOUT);
  const Event late = stream_.compute(nothing_, {weir::read(buffer.all())});
  gate_.open();
  EXPECT_EQ(wait({late}, WEIR_WAIT_MODE_ALL, forever), WEIR_STATUS_POISONED);
  EXPECT_EQ(status_of([&] { stream_.synchronize(); }), WEIR_STATUS_KERNEL_ERROR);
  EXPECT_EQ(status_of([&] { stream_.synchronize(); }), WEIR_STATUS_OK);
}

TEST_F(WaitingTest, RepeatedZeroTimeoutSynchronize_ReportsFailureOnce) {
  for (const char* const domains :
       {"host", "sim:order=device,latency_us=0", "sim:latency_us=0", "sim:clock=virtual"}) {
    Runtime runtime(domains);
    const Place place = runtime.domain(0).place(1);
    const Stream stream = place.stream();
    const Kernel bad = runtime.kernel("bad", [](const Call&) { throw std::runtime_error("no"); });
    const Buffer buffer = runtime.buffer(8);
    for (int round = 0; round < 20; ++round) {
      stream.compute(bad, {weir::write(buffer.all())});
      weir_status status = WEIR_STATUS_TIMEOUT;
      while (status == WEIR_STATUS_TIMEOUT) status = status_of([&] { stream.synchronize(0ns); });
      EXPECT_EQ(status, WEIR_STATUS_KERNEL_ERROR) << domains;
      EXPECT_EQ(status_of([&] { stream.synchronize(); }), WEIR_STATUS_OK) << domains;
    }
  }
}

TEST_F(WaitingTest, FailureAfterAbandonedDrains_IsReportedOnce) {
  const Buffer buffer = runtime_.buffer(8);
  gate_.close(runtime_, stream_);
  stream_.compute(bad_, {weir::write(buffer.all())});
  EXPECT_EQ(status_of([&] { stream_.synchronize(0ns); }), WEIR_STATUS_TIMEOUT);
  const Event between = stream_.compute(nothing_, {});
  EXPECT_EQ(status_of([&] { stream_.synchronize(0ns); }), WEIR_STATUS_TIMEOUT);
  gate_.open();
  EXPECT_EQ(status_of([&] { stream_.synchronize(); }), WEIR_STATUS_KERNEL_ERROR);
  EXPECT_TRUE(between.complete());
  const Event again = stream_.compute(nothing_, {weir::read(buffer.all())});
  EXPECT_EQ(status_of([&] { stream_.synchronize(); }), WEIR_STATUS_OK);
  EXPECT_EQ(wait({again}, WEIR_WAIT_MODE_ALL, forever), WEIR_STATUS_OK);
}

TEST_F(WaitingTest, WaitAny_ReturnsTheLowestCompleteIndex) {
  const Event done = stream_.compute(nothing_, {});
  const Event also_done = stream_.compute(nothing_, {});
  stream_.synchronize();
  const Event running = gate_.close(runtime_, stream_);
  std::size_t index = 99;
  EXPECT_EQ(wait({running, done, also_done}, WEIR_WAIT_MODE_ANY, forever, &index), WEIR_STATUS_OK);
  EXPECT_EQ(index, 1u);
  EXPECT_EQ(wait({running, done}, WEIR_WAIT_MODE_ALL, 0ns), WEIR_STATUS_TIMEOUT);
}

TEST_F(WaitingTest, WaitAll_WaitsForEveryEventAndReportsTheFirstFailure) {
  const Event good = stream_.compute(nothing_, {});
  const Event bad = stream_.compute(bad_, {});
  const Event last = stream_.compute(nothing_, {});
  EXPECT_EQ(wait({good, bad, last}, WEIR_WAIT_MODE_ALL, forever), WEIR_STATUS_KERNEL_ERROR);
  EXPECT_NE(std::string(weir_last_error()).find("no luck"), std::string::npos) << weir_last_error();
  EXPECT_TRUE(last.complete());
  EXPECT_EQ(status_of([&] { stream_.synchronize(); }), WEIR_STATUS_KERNEL_ERROR);
  stream_.synchronize();
}

TEST_F(WaitingTest, WaitForNoEventsOrNullEvent_ReturnsAtOnce) {
  EXPECT_EQ(wait({}, WEIR_WAIT_MODE_ALL, forever), WEIR_STATUS_OK);
  const weir_event null = WEIR_EVENT_INIT;
  EXPECT_EQ(weir_event_wait(runtime_.handle(), &null, 1, WEIR_WAIT_MODE_ANY, -1, nullptr),
            WEIR_STATUS_OK);
}

TEST_F(WaitingTest, ManyThreadsWaitingForOneEvent_AreAllWoken) {
  const Event event = gate_.close(runtime_, stream_);
  std::atomic<int> woken{0};
  std::vector<std::jthread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      event.wait();
      ++woken;
    });
  }
  gate_.open();
  threads.clear();
  EXPECT_EQ(woken, 8);
}

using Callback = std::function<void(weir_status, const std::string&)>;

/// Calls `callback`, which outlives the event, when the event is complete.
void on_complete(const Runtime& runtime, const Event& event, Callback& callback) {
  const auto call = [](weir_status status, const char* message, void* payload) {
    (*static_cast<Callback*>(payload))(status, message);
  };
  check(weir_event_on_complete(runtime.handle(), &event.handle(), call, &callback));
}

TEST_F(WaitingTest, CallbackThatReturnsAValue_IsCalledWithTheStatus) {
  weir_status told = WEIR_STATUS_INTERNAL;
  Event().on_complete([&](weir_status status, const char*) { return told = status; });
  EXPECT_EQ(told, WEIR_STATUS_OK);
}

TEST_F(WaitingTest, CallbackOfAPendingEvent_GetsStatusAndMessageOnCompletion) {
  const Event bad = gate_.close(runtime_, stream_);
  const Event after = stream_.compute(bad_, {});
  std::latch called(2);
  Callback failed = [&](weir_status status, const std::string& message) {
    EXPECT_EQ(status, WEIR_STATUS_KERNEL_ERROR);
    EXPECT_NE(message.find("no luck"), std::string::npos);
    called.count_down();
  };
  Callback fine = [&](weir_status status, const std::string& message) {
    EXPECT_EQ(status, WEIR_STATUS_OK);
    EXPECT_EQ(message, "");
    called.count_down();
  };
  on_complete(runtime_, bad, fine);
  on_complete(runtime_, after, failed);
  EXPECT_FALSE(called.try_wait());
  gate_.open();
  called.wait();
  EXPECT_EQ(status_of([&] { stream_.synchronize(); }), WEIR_STATUS_KERNEL_ERROR);
}

TEST_F(WaitingTest, CallbackOfACompleteEventRunsAtOnceOnTheCaller) {
  const Event event = stream_.compute(nothing_, {});
  event.wait();
  std::thread::id where;
  Callback note = [&](weir_status, const std::string&) { where = std::this_thread::get_id(); };
  on_complete(runtime_, event, note);
  EXPECT_EQ(where, std::this_thread::get_id());
}

TEST_F(WaitingTest, Callback_MayEnqueueAndAllocateButNotWait) {
  const Event event = gate_.close(runtime_, stream_);
  std::latch enqueued(1);
  Event next;
  Callback busy = [&](weir_status, const std::string&) {
    next = stream_.compute(nothing_, {});
    const Buffer buffer = runtime_.buffer(64);
    runtime_.stats();
    runtime_.describe();
    EXPECT_EQ(wait({next}, WEIR_WAIT_MODE_ALL, forever), WEIR_STATUS_BUSY);
    EXPECT_EQ(status_of([&] { stream_.synchronize(); }), WEIR_STATUS_BUSY);
    enqueued.count_down();
  };
  on_complete(runtime_, event, busy);
  gate_.open();
  enqueued.wait();
  next.wait();
}

TEST(Waiting, CppWaitAnyAndOnComplete_HandleCompleteAndPendingEvents) {
  Gate gate;
  const Runtime runtime("host:cores=1");
  const Place place = runtime.domain(0).place();
  const Stream held = place.stream(), free = place.stream();
  const Event soon = free.mark();
  free.synchronize();
  const Event never = gate.close(runtime, held);
  const Event events[] = {never, soon};
  EXPECT_EQ(runtime.wait_any(events), 1u);
  std::atomic<int> calls{0};
  const auto count = [&](weir_status status, const char*) {
    calls += status == WEIR_STATUS_OK;
    calls.notify_all();
  };
  soon.on_complete(count);
  Event().on_complete(count);
  EXPECT_EQ(calls, 2);
  never.on_complete(count);
  EXPECT_EQ(calls, 2);
  gate.open();
  calls.wait(2);
  EXPECT_EQ(calls, 3);
}

}  // namespace
}  // namespace weir
