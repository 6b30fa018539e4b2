#include "net/shm/shm_link.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "base/threads.hpp"
#include "net/shm/launch.hpp"

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

/// What the child says after its parent, who made the segment, has ended.
std::string joining_without_a_launcher(const Segment& segment, pid_t launcher) {
  while (kill(launcher, 0) == 0) sys::yield();
  setenv("WEIR_RANK", "0", 1);
  setenv("WEIR_RANKS", "1", 1);
  setenv("WEIR_SEGMENT", std::to_string(dup(segment.descriptor())).c_str(), 1);
  try {
    launched_link();
    return "joined";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(ShmLink, ARankWhoseLauncherHasEndedDoesNotJoin) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t launcher = fork();
  if (launcher == 0) {
    const Segment segment(1);
    const pid_t own = getpid();
    if (fork() == 0) {
      const std::string said = joining_without_a_launcher(segment, own);
      _exit(write(ends[1], said.data(), said.size()) < 0 ? 1 : 0);
    }
    _exit(0);
  }
  close(ends[1]);
  waitpid(launcher, nullptr, 0);
  std::string said(200, '\0');
  said.resize(static_cast<std::size_t>(std::max<ssize_t>(0, read(ends[0], said.data(), 200))));
  close(ends[0]);
  EXPECT_EQ(said,
            "process " + std::to_string(launcher) + ", which has started this rank, has ended");
}

}  // namespace
}  // namespace weir::rt
