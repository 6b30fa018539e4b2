#include "backends/null/null_backend.hpp"

#include <gtest/gtest.h>

#include "open_device.hpp"
#include "scripted_feed.hpp"

namespace weir::rt {
namespace {

TEST(NullBackend, OpensADeviceThatRefusesAllWork) {
  const auto backend = make_null_backend();
  const auto device = open_device(*backend, {});
  EXPECT_EQ(device->info().backend, "null");
  EXPECT_EQ(device->info().name, "test");
  EXPECT_EQ(device->info().cores, 0u);
  EXPECT_FALSE(device->reaches(nullptr));
  EXPECT_FALSE(device->drive());
  EXPECT_EQ(status_of([&] { device->allocate(1); }), WEIR_STATUS_OUT_OF_MEMORY);
  ScriptedFeed feed;
  EXPECT_EQ(status_of([&] { device->open_place({"p", {0}}, feed); }), WEIR_STATUS_UNSUPPORTED);
}

TEST(NullBackend, Copy_EndsAsUnsupported) {
  const auto backend = make_null_backend();
  const auto device = open_device(*backend, {});
  Copies copies;
  device->copy({{}, {}, &copies, nullptr});
  ASSERT_EQ(copies.endings().size(), 1u);
  EXPECT_EQ(copies.endings()[0].outcome.status, WEIR_STATUS_UNSUPPORTED);
}

TEST(NullBackend, UnknownSetting_IsInvalidArgument) {
  const auto backend = make_null_backend();
  EXPECT_EQ(status_of([&] {
              open_device(*backend, {{"cores", "1"}});
            }),
            WEIR_STATUS_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace weir::rt
