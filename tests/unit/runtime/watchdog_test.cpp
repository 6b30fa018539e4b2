// What is said when nothing ends. That nothing else is said: tests/scheduled/watchdog_test.cpp.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <latch>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <weir/pipeline.hpp>

#include "gate.hpp"
#include "standard_error.hpp"

namespace weir {
namespace {

constexpr char kReport[] = "no action has ended";

class WatchdogTest : public testing::Test {
 protected:
  void SetUp() override { watch("0.1"); }
  void TearDown() override { unsetenv("WEIR_WATCHDOG_S"); }
  static void watch(const char* seconds) { setenv("WEIR_WATCHDOG_S", seconds, 1); }

  Gate gate_;
};

#define EXPECT_SAYS(text, words) \
  EXPECT_NE((text).find(words), std::string::npos) << "no \"" << (words) << "\" in:\n" << (text)

TEST_F(WatchdogTest, NamesTheKernelThatBlocks) {
  Runtime runtime("host");
  const Place place = runtime.domain(0).place(1);
  const Stream stream = place.stream({.name = "work"});
  StandardError said;
  gate_.close(runtime, stream);
  stream.compute(runtime.kernel("after", [](const Call&) {}), {});
  const std::string text = said.wait_for(kReport, 1);
  EXPECT_SAYS(text, "no action has ended for 0.");
  EXPECT_SAYS(text, "2 in flight");
  EXPECT_SAYS(text, "worker 0 of place 'host/p0' runs 'gate', action 1 of stream 'work', for 0.");
  EXPECT_SAYS(text, "no worker has time");
  gate_.open();
  stream.synchronize();
  std::atomic<bool> opened{false};
  stream.compute(runtime.kernel("again", [&](const Call&) { opened.wait(false); }), {});
  EXPECT_SAYS(said.wait_for(kReport, 2), "runs 'again', action");
  opened = true;
  opened.notify_all();
  stream.synchronize();
}

TEST_F(WatchdogTest, EventThatNeverCompletes_NamesItAndItsWaiters) {
  Runtime runtime("sim:cores=2");
  const Domain domain = runtime.domain(0);
  const Place first = domain.place(1), second = domain.place(1);
  const Stream giver = first.stream({.name = "giver"}), taker = second.stream({.name = "taker"});
  const Buffer x = runtime.buffer(64, "x");
  const Kernel use = runtime.kernel("use", [](const Call&) {});
  StandardError said;
  const Event never = gate_.close(runtime, giver);
  taker.wait(never, x.all());
  taker.compute(use, {readwrite(x.all())});
  taker.upload(x.all());
  taker.barrier();
  for (int i = 0; i < 20; ++i) taker.compute(use, {});
  const std::string text = said.wait_for(kReport, 1);
  EXPECT_SAYS(text, "25 in flight");
  EXPECT_SAYS(text, "stream 'taker' of place 'sim:0/p1': 24 in flight");
  EXPECT_SAYS(text, "'sync', action 1, waits for 1, the event of action 1 of stream 'giver'");
  EXPECT_SAYS(text, "'use', action 2, waits for 1: 'sync', action 1");
  EXPECT_SAYS(text, "'h2d', action 3, waits for 1: 'use', action 2");
  EXPECT_SAYS(text, "'sync', action 4, waits for everything before it");
  EXPECT_SAYS(text, "and 20 more");
  EXPECT_SAYS(text, "'gate', action 1, has been given to a worker");
  gate_.open();
}

TEST_F(WatchdogTest, WaitForDeviceMemory_NamesTheDevice) {
  Runtime runtime("sim:cores=1,memory=1MiB");
  const Place place = runtime.domain(0).place();
  const Stream stream = place.stream();
  const Buffer x = runtime.buffer(700 << 10, "x"), y = runtime.buffer(700 << 10, "y");
  std::atomic<bool> opened{false};
  std::latch started{1};
  const Kernel blocking = runtime.kernel("blocking", [&](const Call&) {
    started.count_down();
    opened.wait(false);
  });
  StandardError said;
  stream.compute(blocking, {readwrite(x.all())});
  started.wait();
  stream.upload(y.all());
  EXPECT_SAYS(said.wait_for(kReport, 1), "'h2d', action 2, waits for memory of 'sim:0'");
  opened = true;
  opened.notify_all();
  stream.synchronize();
}

TEST_F(WatchdogTest, NamesTasksWithoutAPlace) {
  Runtime runtime("host:cores=1,sim:cores=1");
  std::atomic<bool> opened{false};
  std::latch started{1};
  const Buffer x = runtime.buffer(64, "x");
  const Kernel blocking = runtime.kernel("blocking", [&](const Call&) {
    started.count_down();
    opened.wait(false);
  });
  const Kernel use = runtime.kernel("use", [](const Call&) {});
  weir_queue_options options = WEIR_QUEUE_OPTIONS_INIT;
  options.name = "tasks";
  options.no_models = true;
  const Queue queue = runtime.queue(options);
  StandardError said;
  queue.submit(blocking, {readwrite(x.all())});
  started.wait();
  for (int i = 0; i < 100; ++i) queue.submit(use, {readwrite(x.all())});
  const std::string text = said.wait_for(kReport, 1);
  EXPECT_SAYS(text, "runs 'blocking'");
  EXPECT_SAYS(text, "queue 'tasks': ");
  EXPECT_SAYS(text, " tasks have no place yet, ");
  EXPECT_SAYS(text, "'use', task ");
  EXPECT_SAYS(text, " more");
  opened = true;
  opened.notify_all();
  queue.synchronize();
}

TEST_F(WatchdogTest, NamesTheTaskThatIsWaitedFor) {
  Runtime runtime("host:cores=1,sim:cores=2");
  const Place place = runtime.domain(1).place(1);
  const Stream taker = place.stream({.name = "taker"});
  std::atomic<bool> opened{false};
  const Buffer x = runtime.buffer(64, "x");
  const Kernel blocking = runtime.kernel("blocking", [&](const Call&) { opened.wait(false); });
  weir_queue_options options = WEIR_QUEUE_OPTIONS_INIT;
  options.name = "tasks";
  options.no_models = true;
  const Queue queue = runtime.queue(options);
  StandardError said;
  taker.wait(queue.submit(blocking, {}, {}, {.domains = 1}), x.all());
  EXPECT_SAYS(said.wait_for(kReport, 1),
              "'sync', action 1, waits for 1, the event of task 1 of queue 'tasks'");
  opened = true;
  opened.notify_all();
  taker.synchronize();
  queue.synchronize();
}

TEST_F(WatchdogTest, PolicyThatDoesNotReturn_IsNamed) {
  Runtime runtime("host:cores=1,sim:cores=1");
  std::atomic<bool> opened{false};
  weir_policy_options stuck = WEIR_POLICY_OPTIONS_INIT;
  stuck.name = "stuck";
  stuck.payload = &opened;
  stuck.choose = [](const char*, const weir_candidate*, std::size_t, void* payload) {
    static_cast<std::atomic<bool>*>(payload)->wait(false);
    return std::size_t{0};
  };
  check(weir_policy_register(runtime.handle(), &stuck));
  weir_queue_options options = WEIR_QUEUE_OPTIONS_INIT;
  options.name = "tasks";
  options.policy = "stuck";
  options.no_models = true;
  const Queue queue = runtime.queue(options);
  StandardError said;
  std::thread program([&] { queue.submit(runtime.kernel("use", [](const Call&) {}), {}); });
  const std::string text = said.wait_for(kReport, 1);
  EXPECT_SAYS(text,
              "queue 'tasks': 1 tasks are not over; a thread that chooses places for them "
              "does not return from policy 'stuck'");
  opened = true;
  opened.notify_all();
  program.join();
  queue.synchronize();
}

/// What waits for ever without a deadline, as no thread completes what was kept.
TEST_F(WatchdogTest, NamesTheStageThatHoldsItems) {
  Runtime runtime("host:cores=1");
  Pipeline pipeline(runtime, {.name = "video"});
  const auto frames = pipeline.tunnel<int>("frames");
  pipeline.source("camera", into(frames), [n = 0](const Outlet<int>& out) mutable {
    out.put(n++);
    return n < 3;
  });
  std::mutex mutex;
  std::vector<Item> kept;
  pipeline.stage("write", frames, [&](int, StageContext context) {
    const std::lock_guard lock(mutex);
    kept.push_back(context.keep());
  });
  StandardError said;
  pipeline.start();
  const std::string text = said.wait_for("stage 'write' holds 3 items", 1);
  EXPECT_SAYS(text, "pipeline 'video' is not at its end: ");
  EXPECT_SAYS(text, "are kept");
  {
    const std::lock_guard lock(mutex);
    kept.clear();
  }
  pipeline.wait();
}

TEST_F(WatchdogTest, DrainThatHangsInVirtualTime_IsReported) {
  Runtime runtime("sim:clock=virtual,cores=1");
  const Place place = runtime.domain(0).place();
  const Stream stream = place.stream({.name = "virtual"});
  std::atomic<bool> opened{false};
  const Kernel blocking = runtime.kernel("blocking", [&](const Call&) { opened.wait(false); });
  StandardError said;
  stream.compute(blocking, {});
  std::thread waiter([&] { stream.synchronize(); });
  const std::string text = said.wait_for(kReport, 1);
  EXPECT_SAYS(text, "virtual time passes while a thread waits");
  EXPECT_SAYS(text, "runs 'blocking', action 1 of stream 'virtual'");
  EXPECT_SAYS(text, "'synchronize', action 2, waits for everything before it");
  opened = true;
  opened.notify_all();
  waiter.join();
}

TEST_F(WatchdogTest, InvalidTimeLimit_IsRefused) {
  for (const char* wrong : {"soon", "-1", "nan", "1 s"}) {
    watch(wrong);
    EXPECT_EQ(status_of([] { Runtime runtime("null"); }), WEIR_STATUS_INVALID_ARGUMENT) << wrong;
  }
}

}  // namespace
}  // namespace weir
