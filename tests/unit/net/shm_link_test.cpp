#include "net/shm/shm_link.hpp"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include <gtest/gtest.h>
#include <sys/uio.h>
#include <unistd.h>

namespace weir::rt {
namespace {

TEST(ShmLink, HasNoMemoryForMoreThanItsHeap) {
  ShmLink link(std::make_unique<Segment>(1), 0);
  for (const std::size_t bytes : {SIZE_MAX, SIZE_MAX - Segment::kPage + 2}) {
    EXPECT_EQ(link.allocate(bytes), nullptr) << bytes;
  }
  void* const memory = link.allocate(1);
  ASSERT_NE(memory, nullptr);
  EXPECT_TRUE(link.release(memory));
  EXPECT_FALSE(link.release(memory));
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

TEST_F(TwoLinks, MoveRunsOfWindows) {
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
