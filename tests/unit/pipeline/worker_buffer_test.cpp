// Items that one worker keeps, up to the limit.
#include "pipeline/worker_buffer.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <string>

#include "base/error.hpp"

namespace weir::rt {
namespace {

constexpr std::size_t kMostInts = 64;

struct IntBuffer {
  void put(int item) {
    buffer.put(reinterpret_cast<const unsigned char*>(&item), 1);
    buffer.count({});
  }
  int oldest() const {
    int item = 0;
    std::memcpy(&item, buffer.oldest().items, sizeof item);
    return item;
  }

  const std::string stage = "s";
  WorkerBuffer buffer{sizeof(int), 4, kMostInts * sizeof(int), stage};
};

/// Also when its oldest items have gone, which were first in its memory.
TEST(WorkerBuffer, ItemsUpToTheLimit_FitAndTheNextThrows) {
  IntBuffer ints;
  int next = 0;
  for (std::size_t i = 0; i < kMostInts; ++i) ints.put(next++);
  for (int round = 1; round <= 20; ++round) {
    ints.buffer.drop_oldest(kMostInts / 4);
    for (std::size_t i = 0; i < kMostInts / 4; ++i) ints.put(next++);
    EXPECT_EQ(ints.buffer.size(), kMostInts);
    EXPECT_EQ(ints.oldest(), round * static_cast<int>(kMostInts / 4));
  }
  EXPECT_THROW(ints.put(next), Error);
  EXPECT_EQ(ints.buffer.size(), kMostInts);
}

}  // namespace
}  // namespace weir::rt
