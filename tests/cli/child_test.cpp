// Child processes of the tool: none keeps it waiting.
#include <cerrno>
#include <csignal>
#include <string>

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "child.hpp"

namespace weir::cli {
namespace {

using End = ChildResult::End;
constexpr std::chrono::milliseconds kSoon{50};
constexpr std::chrono::hours kNever{1};

ChildResult run_shell(const std::string& script, std::chrono::milliseconds limit = kNever) {
  return run_child({"/bin/sh", "-c", script}, limit);
}

TEST(Child, ExitedChild_ReturnsStatusAndBothOutputStreams) {
  const ChildResult result = run_shell("echo one; echo two >&2; exit 3");
  EXPECT_EQ(result.end, End::exited);
  EXPECT_EQ(result.status, 3);
  EXPECT_EQ(result.output, "one\ntwo\n");
  EXPECT_EQ(in_words(result), "ended with status 3");
}

TEST(Child, StandardInput_IsEmpty) { EXPECT_TRUE(run_shell("! read line").succeeded()); }

TEST(Child, SleepingChild_IsKilledAtTheTimeLimit) {
  const ChildResult result = run_shell("echo begun; exec sleep 3600", kSoon);
  EXPECT_EQ(result.end, End::timed_out);
  EXPECT_EQ(in_words(result), "did not end in time");
}

TEST(Child, WritingChild_IsKilledAtTheTimeLimit) {
  const ChildResult result = run_shell("while :; do echo more; done", kSoon);
  EXPECT_EQ(result.end, End::timed_out);
  EXPECT_LE(result.output.size(), std::size_t{64} << 10);
}

TEST(Child, BackgroundProcessOfAChild_IsKilledAndNotWaitedFor) {
  const ChildResult result = run_shell("sleep 3600 & echo $!");
  ASSERT_TRUE(result.succeeded());
  const pid_t left = std::stoi(result.output);
  const auto process = static_cast<int>(syscall(SYS_pidfd_open, left, 0));
  if (process < 0 && errno == ENOSYS) GTEST_SKIP() << "this kernel has no descriptors of processes";
  if (process < 0) {
    EXPECT_EQ(errno, ESRCH);  // over already
    return;
  }
  pollfd ended{.fd = process, .events = POLLIN, .revents = 0};
  EXPECT_EQ(poll(&ended, 1, -1), 1);
  close(process);
}

TEST(Child, ChildThatSignalsItself_EndsBySignal) {
  const ChildResult result = run_shell("kill -TERM $$; sleep 3600");
  EXPECT_EQ(result.end, End::signalled);
  EXPECT_EQ(result.status, SIGTERM);
}

TEST(Child, MissingProgram_IsReportedAsNotStarted) {
  const ChildResult result = run_child({"/nonexistent"});
  EXPECT_EQ(result.end, End::not_started);
  EXPECT_EQ(in_words(result), "cannot be started: No such file or directory");
}

TEST(ChildCall, LongText_IsReturnedCutTo64KiB) {
  const ChildResult result = call_in_child([] { return std::string(100'000, 'x'); });
  EXPECT_TRUE(result.succeeded());
  EXPECT_EQ(result.output, std::string(64u << 10, 'x'));
}

TEST(ChildCall, CrashOrException_EndsOnlyTheChild) {
  const ChildResult crash = call_in_child([]() -> std::string {
    std::raise(SIGKILL);
    return {};
  });
  EXPECT_EQ(crash.end, End::signalled);
  const ChildResult thrown = call_in_child([]() -> std::string { throw 1; });
  EXPECT_EQ(thrown.end, End::exited);
  EXPECT_EQ(thrown.status, 1);
}

TEST(ChildCall, FunctionThatNeverReturns_IsKilledAtTheTimeLimit) {
  const ChildResult result = call_in_child(
      []() -> std::string {
        for (;;) pause();
      },
      kSoon);
  EXPECT_EQ(result.end, End::timed_out);
}

}  // namespace
}  // namespace weir::cli
