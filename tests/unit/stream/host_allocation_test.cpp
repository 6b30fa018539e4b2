#include "stream/host_allocation.hpp"

#include <cstring>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "thrown.hpp"

namespace weir::rt {
namespace {

constexpr std::size_t kBytes = 1 << 20;

TEST(HostAllocation, NoHighBandwidthMemory_GivesNormalMemoryUnlessStrict) {
  const HostAllocation memory(kBytes, 64, WEIR_MEMORY_KIND_HIGH_BANDWIDTH, false, {});
  EXPECT_EQ(memory.kind(), WEIR_MEMORY_KIND_NORMAL);
  std::memset(memory.address(), 1, kBytes);
  const std::string why = thrown_by<Error>(
      [] { HostAllocation(kBytes, 64, WEIR_MEMORY_KIND_HIGH_BANDWIDTH, true, {}); },
      WEIR_STATUS_UNAVAILABLE);
  EXPECT_NE(why.find("high-bandwidth"), std::string::npos);
}

TEST(HostAllocation, WithHighBandwidthNode_AllocatesHighBandwidthMemory) {
  // The first node of this machine stands for one.
  for (const bool strict : {false, true}) {
    try {
      const HostAllocation memory(kBytes, 4096, WEIR_MEMORY_KIND_HIGH_BANDWIDTH, strict, {0});
      if (!strict && memory.kind() == WEIR_MEMORY_KIND_NORMAL) {
        GTEST_SKIP() << "the system does not permit binding memory";
      }
      EXPECT_EQ(memory.kind(), WEIR_MEMORY_KIND_HIGH_BANDWIDTH);
      std::memset(memory.address(), 1, kBytes);
    } catch (const Error& error) {
      FAIL() << error.what();
    }
  }
}

}  // namespace
}  // namespace weir::rt
