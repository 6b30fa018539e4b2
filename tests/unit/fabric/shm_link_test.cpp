#include "fabric/shm/shm_link.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/threads.hpp"
#include "fabric/shm/launch.hpp"
#include "thrown.hpp"

namespace weir::rt {
namespace {

TEST(ShmLink, AllocationBeyondTheHeap_ReturnsNull) {
  ShmLink link(std::make_unique<Segment>(1), 0);
  for (const std::size_t bytes : {SIZE_MAX, SIZE_MAX - Segment::kPage + 2}) {
    EXPECT_EQ(link.allocate(bytes), nullptr) << bytes;
  }
  void* const memory = link.allocate(1);
  ASSERT_NE(memory, nullptr);
  EXPECT_TRUE(link.release(memory));
  EXPECT_FALSE(link.release(memory));
}

TEST(ShmLink, CommitOfMemory_StopsAtItsDeadlineAndCanBeRepeated) {
  constexpr std::size_t kBytes = 64u << 20;
  Segment segment(1);
  ShmLink link(Segment::attach(dup(segment.descriptor()), 1), 0);
  const auto pages = [&] {
    struct stat status {};
    EXPECT_EQ(fstat(segment.descriptor(), &status), 0);
    return static_cast<std::size_t>(status.st_blocks) * 512 / Segment::kPage;
  };
  const std::size_t before = pages();
  void* const memory = link.allocate(kBytes);
  ASSERT_NE(memory, nullptr);
  EXPECT_LT(pages(), before + 64) << "it has been brought under the lock of the port";
  EXPECT_EQ(link.commit(memory, kBytes, sys::now_ns()), WEIR_STATUS_TIMEOUT);
  EXPECT_LT(pages(), before + kBytes / Segment::kPage);
  EXPECT_EQ(link.commit(memory, kBytes, sys::kNever), WEIR_STATUS_OK);
  EXPECT_GE(pages(), before + kBytes / Segment::kPage);
  EXPECT_TRUE(link.release(memory));
  EXPECT_LT(pages(), before + 64);
}

TEST(Segment, FileSizeLimitIsTooSmall_ErrorNamesTheLimit) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = std::min<rlim_t>(before.rlim_max, 1u << 20);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string why = thrown_by<Error>([] { const Segment segment(2); });
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_NE(why.find("for 2 ranks: it is a file of 32 GiB"), std::string::npos) << why;
  EXPECT_NE(why.find("limited to 1024 KiB (ulimit -f)"), std::string::npos) << why;
}

/// What the child says after its parent, which made the segment, has ended.
std::string joining_without_a_launcher(const Segment& segment, pid_t launcher) {
  while (kill(launcher, 0) == 0) sys::yield();
  setenv("WEIR_RANK", "0", 1);
  setenv("WEIR_RANKS", "1", 1);
  setenv("WEIR_SEGMENT", std::to_string(dup(segment.descriptor())).c_str(), 1);
  return thrown_by<Error>([] { launched_link(); });
}

TEST(ShmLink, LauncherHasEnded_RankDoesNotJoin) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t launcher = fork();
  if (launcher == 0) {
    const Segment segment(1);
    const pid_t own = getpid();
    if (fork() == 0) {
      const std::string said = joining_without_a_launcher(segment, own);
      _exit(::write(ends[1], said.data(), said.size()) < 0 ? 1 : 0);
    }
    _exit(0);
  }
  close(ends[1]);
  waitpid(launcher, nullptr, 0);
  std::string said(200, '\0');
  said.resize(static_cast<std::size_t>(std::max<ssize_t>(0, ::read(ends[0], said.data(), 200))));
  close(ends[0]);
  EXPECT_EQ(said,
            "process " + std::to_string(launcher) + ", which has started this rank, has ended");
}

/// Two ranks of this process.
class TwoLinks : public testing::Test {
 protected:
  std::unique_ptr<ShmLink> link(Rank rank) const {
    return std::make_unique<ShmLink>(Segment::attach(dup(segment_.descriptor()), 2), rank);
  }
  static bool may_copy_across() {
    char from = 'a', to = 'b';
    const iovec there{&from, 1}, here{&to, 1};
    return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == 1;
  }

  const Segment segment_{2};
};

/// Memory of a window that an operation stays in: as of a process that is stopped.
TEST_F(TwoLinks, WithdrawnWindowInUse_ItsMemoryAndSlotAreNotReused) {
  const std::int64_t no_time = 0;
  ShmLink mine(Segment::attach(dup(segment_.descriptor()), 2), 0, no_time);
  const auto other = link(1);
  void* const memory = mine.allocate(Segment::kPage);
  ASSERT_NE(memory, nullptr);
  std::memset(memory, 'x', Segment::kPage);
  mine.expose(3, memory, Segment::kPage);
  ShmWindow& slot = segment_.rank(0).windows[3];
  slot.users.fetch_add(1);
  mine.withdraw(3);
  EXPECT_EQ(slot.users.load(), 1u) << "the user inside has been forgotten";
  EXPECT_TRUE(mine.release(memory));
  EXPECT_FALSE(mine.release(memory));
  EXPECT_EQ(*static_cast<const char*>(memory), 'x');
  void* const another = mine.allocate(1);
  EXPECT_NE(another, memory);

  std::byte byte{};
  const OneSided put{.kind = OneSidedKind::put, .target = 0, .local = &byte, .bytes = 1};
  const auto reached = [&](WindowId window) {
    OneSided operation = put;
    operation.window = window;
    std::uint64_t cursor = 0;
    std::int64_t old = 0;
    return other->direct(operation, cursor, old).has_value();
  };
  constexpr WindowId kSameSlot = 3 + ShmRank::kWindows;
  mine.expose(kSameSlot, another, 1);
  EXPECT_FALSE(reached(kSameSlot)) << "its slot is in use";
  mine.withdraw(kSameSlot);

  slot.users.fetch_sub(1);
  mine.expose(kSameSlot, another, 1);
  EXPECT_TRUE(reached(kSameSlot));
  EXPECT_EQ(mine.allocate(1), memory);
  EXPECT_EQ(*static_cast<const char*>(memory), '\0') << "it was not given back before";
}

/// As of a process that is stopped just before it calls the system.
TEST_F(TwoLinks, WithdrawnWindow_ItsPreparedCopiesBecomeEmpty) {
  const std::int64_t no_time = 0;
  ShmLink mine(Segment::attach(dup(segment_.descriptor()), 2), 0, no_time);
  char memory = 'a', late = 'b';
  mine.expose(3, &memory, 1);
  mine.expose(4, &memory, 1);
  auto& copies = segment_.rank(1).copies;
  for (const WindowId window : {3u, 4u}) {
    segment_.rank(0).windows[window].users.fetch_add(1);
    ShmCopy& copy = copies[window];
    copy.window.store(ShmCopy::id_of(0, window));
    copy.there[0] = {&memory, 1};
  }
  mine.withdraw(3);
  EXPECT_EQ(copies[3].there[0].iov_len, 0u);
  EXPECT_EQ(copies[4].there[0].iov_len, 1u);
  const iovec here{&late, 1};
  process_vm_writev(getpid(), &here, 1, copies[3].there.data(), 1, 0);
  EXPECT_EQ(memory, 'a');
}

TEST_F(TwoLinks, StridedRuns_AreMovedAndRefusedOutsideTheWindow) {
  if (!may_copy_across()) GTEST_SKIP() << "the system copies nothing between processes";
  constexpr std::size_t kRuns = 150, kBytes = 24, kStride = 40;
  const auto mine = link(0), other = link(1);
  std::vector<char> window(kRuns * kStride), memory(kRuns * kBytes);
  for (std::size_t i = 0; i < window.size(); ++i) window[i] = static_cast<char>(i * 7);
  const std::vector<char> before = window;
  other->expose(5, window.data(), window.size());
  std::vector<WindowRun> runs;
  for (std::size_t i = 0; i < kRuns; ++i) {
    runs.push_back({i * kStride, reinterpret_cast<std::byte*>(&memory[i * kBytes]), kBytes});
  }
  ASSERT_TRUE(mine->move_runs(OneSidedKind::get, 1, 5, runs));
  for (std::size_t i = 0; i < kRuns; ++i) {
    EXPECT_EQ(std::memcmp(&memory[i * kBytes], &window[i * kStride], kBytes), 0) << i;
  }
  for (char& each : memory) each = static_cast<char>(each + 1);
  ASSERT_TRUE(mine->move_runs(OneSidedKind::put, 1, 5, runs));
  for (std::size_t i = 0; i < window.size(); ++i) {
    const bool within = i % kStride < kBytes;
    EXPECT_EQ(window[i], static_cast<char>(before[i] + (within ? 1 : 0))) << i;
  }
  runs.back().offset = window.size() - kBytes + 1;
  EXPECT_FALSE(mine->move_runs(OneSidedKind::get, 1, 5, runs));
  runs.back().offset = UINT64_MAX;
  EXPECT_FALSE(mine->move_runs(OneSidedKind::get, 1, 5, runs));
  runs.pop_back();
  EXPECT_FALSE(mine->move_runs(OneSidedKind::get, 1, 6, runs));
  other->withdraw(5);
  EXPECT_FALSE(mine->move_runs(OneSidedKind::get, 1, 5, runs));
}

}  // namespace
}  // namespace weir::rt
