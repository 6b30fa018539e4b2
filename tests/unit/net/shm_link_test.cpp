#include "net/shm/shm_link.hpp"

#include <cstdint>
#include <memory>

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace weir::rt
