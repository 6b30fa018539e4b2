#include "backends/host/host_backend.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <cstring>
#include <weir/weir.hpp>

#include "open_device.hpp"

namespace weir::rt {
namespace {

unsigned cores_of(KeyValues settings) {
  const auto backend = make_host_backend();
  return open_device(*backend, std::move(settings))->info().cores;
}

TEST(HostBackend, CoresSetting_OverridesMachineCoreCount) {
  EXPECT_EQ(cores_of({}), 4u);
  EXPECT_EQ(cores_of({{"cores", "3"}}), 3u);
}

TEST(HostBackend, SmtOn_CountsHardwareThreadsAsCores) {
  EXPECT_EQ(cores_of({{"smt", "off"}}), 4u);
  EXPECT_EQ(cores_of({{"smt", "on"}}), 8u);
  EXPECT_EQ(cores_of({{"smt", "on"}, {"cores", "2"}}), 4u);
}

TEST(HostBackend, CoresBeyondMachineAndInvalidSettings_AreRejected) {
  EXPECT_EQ(status_of([] { cores_of({{"cores", "5"}}); }), WEIR_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(status_of([] { cores_of({{"cores", "0"}}); }), WEIR_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(status_of([] { cores_of({{"smt", "maybe"}}); }), WEIR_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(status_of([] { cores_of({{"gbps", "6"}}); }), WEIR_STATUS_INVALID_ARGUMENT);
}

TEST(HostBackend, SharesItsMemoryWithTheHost) {
  const auto backend = make_host_backend();
  const auto device = open_device(*backend, {});
  EXPECT_TRUE(device->info().aliases_host);
  EXPECT_TRUE(device->info().copies_by_worker);
  EXPECT_FALSE(device->info().virtual_time);
  EXPECT_EQ(device->info().link_duplex, "none");
  EXPECT_TRUE(device->reaches(nullptr));
  EXPECT_TRUE(device->reaches(device.get()));
}

TEST(HostBackend, AllocatesZeroedMemoryAndCopiesSynchronously) {
  const auto backend = make_host_backend();
  const auto device = open_device(*backend, {});
  Memory memory = device->allocate(4096);
  auto* const bytes = static_cast<std::byte*>(memory.address);
  EXPECT_EQ(std::count(bytes, bytes + 4096, std::byte{0}), 4096);
  std::byte source[64];
  std::memset(source, 7, sizeof source);
  Copies copies;
  const Region part{.offset = 0, .row = sizeof source};
  device->copy({{nullptr, source, part}, {device.get(), bytes, part}, &copies, source});
  ASSERT_EQ(copies.endings().size(), 1u);
  EXPECT_EQ(copies.endings()[0].token, source);
  EXPECT_EQ(std::memcmp(bytes, source, sizeof source), 0);
  device->release(memory);
  EXPECT_EQ(memory.address, nullptr);
}

TEST(HostBackend, RespectsTheAffinityMaskOfTheProcess) {
  cpu_set_t before;
  CPU_ZERO(&before);
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  {
    const weir::Runtime runtime("host");
    EXPECT_EQ(runtime.domain(0).info().cores, 1u);
    const weir::Place place = runtime.domain(0).place();
    const weir::Stream stream = place.stream();
    stream.compute(runtime.kernel("where",
                                  [first](const weir::Call&) {
                                    cpu_set_t mask;
                                    CPU_ZERO(&mask);
                                    sched_getaffinity(0, sizeof mask, &mask);
                                    EXPECT_EQ(CPU_COUNT(&mask), 1);
                                    EXPECT_TRUE(CPU_ISSET(first, &mask));
                                  }),
                   {});
    stream.synchronize();
  }
  sched_setaffinity(0, sizeof before, &before);
}

}  // namespace
}  // namespace weir::rt
