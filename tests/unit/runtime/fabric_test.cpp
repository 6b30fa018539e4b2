// Messages of a fabric whose other ranks have left.
#include <weir/fabric.h>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <thread>

#include <weir/weir.hpp>

namespace weir {
namespace {

constexpr std::int64_t kLonely = 100'000'000'000;

void hear_slowly(unsigned, const void*, std::size_t, void* heard) {
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  ++*static_cast<int*>(heard);
}

weir_status hear_oneself(weir_fabric* fabric, void*) {
  EXPECT_EQ(weir_fabric_barrier(fabric, WEIR_FOREVER), WEIR_STATUS_OK);
  if (weir_fabric_rank(fabric) == 1) return WEIR_STATUS_OK;
  int heard = 0;
  EXPECT_EQ(weir_fabric_listen(fabric, hear_slowly, &heard), WEIR_STATUS_OK);
  EXPECT_EQ(weir_fabric_progress(fabric, kLonely), WEIR_STATUS_NETWORK_ERROR);
  EXPECT_EQ(weir_fabric_send(fabric, 0, nullptr, 0), WEIR_STATUS_OK);
  std::this_thread::sleep_for(std::chrono::milliseconds(10));  // the handler runs elsewhere
  EXPECT_EQ(weir_fabric_progress(fabric, kLonely), WEIR_STATUS_OK) << weir_last_error();
  EXPECT_EQ(weir_fabric_listen(fabric, nullptr, nullptr), WEIR_STATUS_OK);
  EXPECT_EQ(heard, 1);
  return WEIR_STATUS_OK;
}

TEST(Fabrics, HearTheirOwnMessagesWhenNobodyElseIsLeft) {
  EXPECT_EQ(weir_fabric_simulate(nullptr, 2, hear_oneself, nullptr), WEIR_STATUS_OK)
      << weir_last_error();
}

}  // namespace
}  // namespace weir
