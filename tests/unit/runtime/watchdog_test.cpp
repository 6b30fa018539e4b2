// What is said when nothing ends, and that nothing is said while things move.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <latch>
#include <string>
#include <thread>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "gate.hpp"

namespace weir {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kHang = 60s;

/// Reads what this process writes to standard error, while it lives.
class StandardError {
 public:
  StandardError() : before_(dup(STDERR_FILENO)) {
    std::fflush(stderr);
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    read_ = ends[0];
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
  }
  StandardError(const StandardError&) = delete;
  StandardError& operator=(const StandardError&) = delete;
  ~StandardError() {
    std::fflush(stderr);
    dup2(before_, STDERR_FILENO);
    close(before_);
    close(read_);
  }

  /// Waits until the end of a report of this many streams has come; returns all that came.
  const std::string& wait_for(std::size_t reports) {
    const auto limit = Clock::now() + kHang;
    while (count("no action has ended") < reports && Clock::now() < limit) take(100);
    take(0);
    return text_;
  }
  const std::string& text() {
    take(0);
    return text_;
  }
  std::size_t count(const std::string& words) const {
    std::size_t found = 0;
    for (std::size_t at = text_.find(words); at != std::string::npos;
         at = text_.find(words, at + 1)) {
      ++found;
    }
    return found;
  }

 private:
  void take(int timeout_ms) {
    pollfd source{.fd = read_, .events = POLLIN, .revents = 0};
    char part[4096];
    while (poll(&source, 1, timeout_ms) == 1) {
      const ssize_t bytes = ::read(read_, part, sizeof part);
      if (bytes <= 0) return;
      text_.append(part, static_cast<std::size_t>(bytes));
      timeout_ms = 0;
    }
  }

  int before_, read_ = -1;
  std::string text_;
};

class WatchdogTest : public testing::Test {
 protected:
  void SetUp() override { watch("0.1"); }
  void TearDown() override { unsetenv("WEIR_WATCHDOG_S"); }
  static void watch(const char* seconds) { setenv("WEIR_WATCHDOG_S", seconds, 1); }

  Gate gate_;
};

#define EXPECT_SAYS(text, words) \
  EXPECT_NE((text).find(words), std::string::npos) << "no \"" << (words) << "\" in:\n" << (text)

TEST_F(WatchdogTest, NamesTheKernelThatBlocksOnce) {
  Runtime runtime("host");
  const Place place = runtime.domain(0).place(1);
  const Stream stream = place.stream({.name = "work"});
  StandardError said;
  gate_.close(runtime, stream);
  stream.compute(runtime.kernel("after", [](const Call&) {}), {});
  const std::string text = said.wait_for(1);
  EXPECT_SAYS(text, "no action has ended for 0.");
  EXPECT_SAYS(text, "2 in flight");
  EXPECT_SAYS(text, "worker 0 of place 'host/p0' runs 'gate', action 1 of stream 'work', for 0.");
  EXPECT_SAYS(text, "no worker has time");
  std::this_thread::sleep_for(400ms);  // no longer needed than it takes to be told twice
  said.text();
  EXPECT_EQ(said.count("no action has ended"), 1u);
  gate_.open();
  stream.synchronize();
  std::atomic<bool> opened{false};
  stream.compute(runtime.kernel("again", [&](const Call&) { opened.wait(false); }), {});
  EXPECT_SAYS(said.wait_for(2), "runs 'again', action");
  opened = true;
  opened.notify_all();
  stream.synchronize();
}

TEST_F(WatchdogTest, NamesTheEventThatNeverComes) {
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
  const std::string text = said.wait_for(1);
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

TEST_F(WatchdogTest, NamesTheMemoryThatIsWaitedFor) {
  Runtime runtime("sim:cores=1,memory=1MiB");
  const Place place = runtime.domain(0).place();
  const Stream stream = place.stream();
  const Buffer x = runtime.buffer(700 << 10, "x"), y = runtime.buffer(700 << 10, "y");
  std::atomic<bool> opened{false};
  std::latch started{1};
  const Kernel hold = runtime.kernel("hold", [&](const Call&) {
    started.count_down();
    opened.wait(false);
  });
  StandardError said;
  stream.compute(hold, {readwrite(x.all())});
  started.wait();
  stream.upload(y.all());
  EXPECT_SAYS(said.wait_for(1), "'h2d', action 2, waits for memory of 'sim:0'");
  opened = true;
  opened.notify_all();
  stream.synchronize();
}

TEST_F(WatchdogTest, SeesADrainThatHangsInVirtualTime) {
  Runtime runtime("sim:clock=virtual,cores=1");
  const Place place = runtime.domain(0).place();
  const Stream stream = place.stream({.name = "virtual"});
  std::atomic<bool> opened{false};
  const Kernel hold = runtime.kernel("hold", [&](const Call&) { opened.wait(false); });
  StandardError said;
  stream.compute(hold, {});
  std::thread waiter([&] { stream.synchronize(); });
  const std::string text = said.wait_for(1);
  EXPECT_SAYS(text, "virtual time passes while a thread waits");
  EXPECT_SAYS(text, "runs 'hold', action 1 of stream 'virtual'");
  EXPECT_SAYS(text, "'synchronize', action 2, waits for everything before it");
  opened = true;
  opened.notify_all();
  waiter.join();
}

TEST_F(WatchdogTest, SaysNothingWhileThingsMove) {
  constexpr auto kLimit = 500ms, kRun = 1500ms;
  watch("0.5");
  std::size_t alarms = 0, actions = 0;
  Clock::duration longest{0};  // without an end, by the program's own clock
  for (const char* domains : {"host", "sim:cores=1", "sim:clock=virtual,cores=1"}) {
    Runtime runtime(domains);
    const Place place = runtime.domain(0).place();
    const Stream stream = place.stream();
    const Buffer x = runtime.buffer(1 << 16, "x");
    const Kernel nap =
        runtime.kernel("nap", [](const Call&) { std::this_thread::sleep_for(100us); });
    StandardError said;
    Clock::time_point last = Clock::now();
    for (const auto end = last + kRun; last < end;) {
      for (int i = 0; i < 10; ++i, actions += 2) {
        stream.upload(x.all());
        stream.compute(nap, {readwrite(x.all())});
      }
      stream.synchronize();
      longest = std::max(longest, Clock::now() - last);
      last = Clock::now();
    }
    said.text();
    alarms += said.count("no action has ended");
  }
  if (longest >= kLimit) GTEST_SKIP() << "the machine gave the program no time: alarms are right";
  EXPECT_EQ(alarms, 0u);
  std::printf("proof: %zu actions in three runs of %lld ms: no false alarm\n", actions,
              static_cast<long long>(kRun.count()));
}

TEST_F(WatchdogTest, NothingIsInFlightNothingIsSaid) {
  Runtime runtime("host");
  const Place place = runtime.domain(0).place(1);
  const Stream stream = place.stream();
  stream.compute(runtime.kernel("nothing", [](const Call&) {}), {});
  stream.synchronize();
  StandardError said;
  std::this_thread::sleep_for(400ms);
  EXPECT_EQ(said.text(), "");
}

TEST_F(WatchdogTest, RefusesALimitThatIsNone) {
  for (const char* wrong : {"soon", "-1", "nan", "1 s"}) {
    watch(wrong);
    EXPECT_EQ(status_of([] { Runtime runtime("null"); }), WEIR_STATUS_INVALID_ARGUMENT) << wrong;
  }
}

}  // namespace
}  // namespace weir
