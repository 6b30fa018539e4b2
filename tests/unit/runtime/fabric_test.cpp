// Messages of a fabric whose other ranks have left.
#include <weir/fabric.h>

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>

#include <weir/weir.hpp>

namespace weir {
namespace {

constexpr std::int64_t kLonely = 100'000'000'000;

/// A handler that is at work, on a thread of the fabric, when its rank asks for news.
struct Hearing {
  const std::thread::id program = std::this_thread::get_id();
  std::atomic<bool> begun{false}, asked{false};
  int heard = 0;
};

void hear_slowly(unsigned, const void*, std::size_t, void* payload) {
  Hearing& hearing = *static_cast<Hearing*>(payload);
  hearing.begun = true;
  if (std::this_thread::get_id() != hearing.program) {
    while (!hearing.asked) std::this_thread::yield();
    for (int i = 0; i < 10'000; ++i) std::this_thread::yield();
  }
  ++hearing.heard;
}

weir_status hear_oneself(weir_fabric* fabric, void*) {
  EXPECT_EQ(weir_fabric_barrier(fabric, WEIR_FOREVER), WEIR_STATUS_OK);
  if (weir_fabric_rank(fabric) == 1) return WEIR_STATUS_OK;
  Hearing hearing;
  EXPECT_EQ(weir_fabric_listen(fabric, hear_slowly, &hearing), WEIR_STATUS_OK);
  EXPECT_EQ(weir_fabric_progress(fabric, kLonely), WEIR_STATUS_NETWORK_ERROR);
  EXPECT_EQ(weir_fabric_send(fabric, 0, nullptr, 0), WEIR_STATUS_OK);
  while (!hearing.begun) std::this_thread::yield();
  hearing.asked = true;
  EXPECT_EQ(weir_fabric_progress(fabric, kLonely), WEIR_STATUS_OK) << weir_last_error();
  EXPECT_EQ(weir_fabric_listen(fabric, nullptr, nullptr), WEIR_STATUS_OK);
  EXPECT_EQ(hearing.heard, 1);
  return WEIR_STATUS_OK;
}

TEST(Fabrics, HearTheirOwnMessagesWhenNobodyElseIsLeft) {
  EXPECT_EQ(weir_fabric_simulate(nullptr, 2, hear_oneself, nullptr), WEIR_STATUS_OK)
      << weir_last_error();
}

std::unique_ptr<Runtime> left_behind;

weir_status leave_a_runtime_behind(weir_fabric* fabric, void* closes) {
  if (weir_fabric_rank(fabric) == 1) {
    weir_runtime_options options = WEIR_RUNTIME_OPTIONS_INIT;
    options.domains = "null";
    options.fabric = fabric;
    left_behind = std::make_unique<Runtime>(options);
    if (closes != nullptr) weir_fabric_close(fabric);
    return WEIR_STATUS_OK;
  }
  std::int64_t one = 1;
  EXPECT_EQ(weir_fabric_reduce_int64(fabric, &one, 1, WEIR_FABRIC_OP_SUM, kLonely),
            WEIR_STATUS_NETWORK_ERROR);
  EXPECT_STREQ(weir_last_error(),
               "sum of 1 integers failed: rank 1 has ended without closing the fabric");
  return WEIR_STATUS_OK;
}

TEST(Fabrics, SimulatedRankReturnsWithRuntimeLeft_CollectivesOfTheOthersFail) {
  int closes = 1;
  for (void* const payload : {static_cast<void*>(nullptr), static_cast<void*>(&closes)}) {
    EXPECT_EQ(weir_fabric_simulate(nullptr, 2, leave_a_runtime_behind, payload), WEIR_STATUS_OK)
        << weir_last_error();
    left_behind.reset();
  }
}

}  // namespace
}  // namespace weir
