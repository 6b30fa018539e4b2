// A device that is lost, or fails once, at any of its operations.
//
// The walk of the whole interface (walk.cpp) runs once for each operation of a device that can
// fail; its oracle checks every status and every byte, that other domains go on, and that the
// runtime is of use afterwards.
//
//   WEIR_TEST_OPERATION=N   at the Nth only
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <ostream>
#include <string>

#include <unistd.h>

#include "walk.hpp"
#include "walk_flows.hpp"

namespace faults {
namespace {

/// A specification of domains, without the setting that breaks a device.
struct Card {
  const char* name;
  const char* before;
  const char* after;
  bool virtual_time;
  std::size_t domain;  ///< of the device
};

void PrintTo(const Card& card, std::ostream* out) { *out << card.name; }

constexpr Card kCards[] = {
    {"Real", "host:cores=2,sim:cores=1,latency_us=0,memory=40KiB,", "", false, 1},
    {"Virtual", "sim:clock=virtual,cores=2,gflops=1,sim:clock=virtual,latency_us=1,memory=40KiB,",
     "", true, 1},
    {"Busiest", "sim:clock=virtual,cores=2,gflops=1,",
     ",sim:clock=virtual,latency_us=1,memory=40KiB", true, 0},
};

class DeviceFaults : public testing::TestWithParam<Card> {
 protected:
  void SetUp() override { ASSERT_NE(mkdtemp(folder_), nullptr); }
  void TearDown() override { rmdir(folder_); }

  /// Walks with the Nth operation failing. Returns whether the walk came that far.
  bool walk_with(const std::string& setting, std::size_t number, bool lasts) {
    const Card& card = GetParam();
    const std::string fault = setting + "=" + std::to_string(number);
    const std::string domains = card.before + fault + card.after;
    const Route route{card.name, domains.c_str(), card.virtual_time, true,
                      lasts ? 1 - card.domain : card.domain};
    static Report report;
    report = {};
    walk_flows(route, folder_, report);
    report.errors = 0;  // those of its own devices
    walk(route, folder_, report);
    finish(route, report);
    const bool reached = report.errors + report.device_errors > 0;
    if (reached) ++reached_;
    const auto* const test = testing::UnitTest::GetInstance()->current_test_info();
    EXPECT_EQ(report.wrong, 0u) << domains << "\n"
                                << report.text << "again: WEIR_TEST_OPERATION=" << number
                                << " device_faults --gtest_filter='" << test->test_suite_name()
                                << "." << test->name() << "'";
    return reached;
  }

  void walk_with_each(const char* setting, bool lasts) {
    if (const char* const single = std::getenv("WEIR_TEST_OPERATION")) {
      walk_with(setting, std::strtoull(single, nullptr, 10), lasts);
      return;
    }
    std::size_t number = 1;
    while (walk_with(setting, number, lasts) && !HasFailure()) ++number;
    EXPECT_GT(number, 1u) << "nothing failed: the walk does not use the device";
    std::printf("proof: %s of device '%s': %zu operations\n", setting, GetParam().name, reached_);
  }

 private:
  char folder_[20] = "/tmp/weir-XXXXXX";
  std::size_t reached_ = 0;
};

TEST_P(DeviceFaults, DeviceLostAtAnyOperation_IsContained) { walk_with_each("lost_at", true); }
TEST_P(DeviceFaults, AnyFailedAllocation_IsContained) { walk_with_each("fail_allocation", false); }
TEST_P(DeviceFaults, AnyFailedTransfer_IsContained) { walk_with_each("fail_copy", false); }
TEST_P(DeviceFaults, AnyRefusedKernel_IsContained) { walk_with_each("fail_kernel", false); }

INSTANTIATE_TEST_SUITE_P(Cards, DeviceFaults, testing::ValuesIn(kCards),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace faults
