#include "backends/opencl/opencl_backend.hpp"

#include <gtest/gtest.h>

#include <string>

#include "open_device.hpp"

namespace weir::rt {
namespace {

class OpenClBackendTest : public testing::Test {
 protected:
  void SetUp() override {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "the thread sanitizer does not see the locks of the driver";
#endif
    const weir_status status = status_of([&] { open_device(*backend_, {}); });
    if (status == WEIR_STATUS_UNAVAILABLE) GTEST_SKIP() << "there is no OpenCL device";
  }
  std::unique_ptr<Backend> backend_ = make_opencl_backend();
};

TEST_F(OpenClBackendTest, SaysWhatADeviceIs) {
  const auto device = open_device(*backend_, {});
  EXPECT_EQ(device->info().backend, "opencl");
  EXPECT_NE(device->info().description.find(", driver "), std::string::npos);
  EXPECT_GE(device->info().cores, 1u);
  EXPECT_GT(device->info().memory_bytes, 0u);
  EXPECT_TRUE(device->info().aliases_host);
  EXPECT_FALSE(open_device(*backend_, {{"alias", "off"}})->info().aliases_host);
  EXPECT_EQ(open_device(*backend_, {{"memory", "1MiB"}})->info().memory_bytes, 1u << 20);
}

TEST_F(OpenClBackendTest, ListsTheDevicesWhenOneIsNotThere) {
  EXPECT_EQ(status_of([&] { open_device(*backend_, {{"device", "999"}}); }), WEIR_STATUS_NOT_FOUND);
  const std::string message = message_of([&] { open_device(*backend_, {{"device", "999"}}); });
  EXPECT_NE(message.find("no device 999; OpenCL has: 0 "), std::string::npos) << message;
}

TEST_F(OpenClBackendTest, RefusesMoreThanTheDriverAllocatesAtOnce) {
  const auto device = open_device(*backend_, {});
  const std::string message = message_of([&] { device->allocate(std::size_t{1} << 50); });
  EXPECT_NE(message.find("gives at most"), std::string::npos) << message;
  Memory memory = device->allocate(100);
  for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(static_cast<char*>(memory.address)[i], 0);
  device->release(memory);
}

TEST_F(OpenClBackendTest, DividesOnlyIntoUnitsThatFollowEachOther) {
  const auto device = open_device(*backend_, {});
  if (device->info().cores < 4) GTEST_SKIP() << "too few units";
  IdleFeed feed;
  EXPECT_NO_THROW(device->open_place({"p", {1, 2}}, feed));
  EXPECT_EQ(status_of([&] { device->open_place({"p", {0, 2}}, feed); }), WEIR_STATUS_UNSUPPORTED);
}

TEST_F(OpenClBackendTest, ACardHasAMemoryOfItsOwn) {
  const auto card = open_device(*backend_, {{"native", "off"}});
  EXPECT_FALSE(card->info().aliases_host);
  EXPECT_FALSE(card->info().runs_host_code);
  EXPECT_TRUE(card->info().compiles_source);
  EXPECT_EQ(card->info().cores, 1u);
  const auto other = open_device(*backend_, {});
  EXPECT_TRUE(card->reaches(nullptr));
  EXPECT_FALSE(card->reaches(other.get()));
  EXPECT_FALSE(other->reaches(card.get()));
  int program = 0;
  EXPECT_EQ(status_of([&] { card->adopt(&program, sizeof program); }), WEIR_STATUS_UNSUPPORTED);
  EXPECT_EQ(status_of([&] { card->allocate(std::size_t{1} << 50); }), WEIR_STATUS_OUT_OF_MEMORY);
  Memory memory = card->allocate(100);
  EXPECT_NE(memory.address, nullptr);
  card->release(memory);
}

TEST(OpenClSettings, AreChecked) {
  const auto backend = make_opencl_backend();
  for (const KeyValues& wrong : {KeyValues{{"device", "x"}},
                                 {{"alias", "yes"}},
                                 {{"native", "perhaps"}},
                                 {{"cores", "1"}}}) {
    EXPECT_EQ(status_of([&] { open_device(*backend, wrong); }), WEIR_STATUS_INVALID_ARGUMENT)
        << wrong[0].first;
  }
}

}  // namespace
}  // namespace weir::rt
