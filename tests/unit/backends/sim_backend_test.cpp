// A simulated device by itself: settings, memory, and how its link times transfers.
#include "backends/sim/sim_backend.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "base/sys.hpp"
#include "open_device.hpp"

namespace weir::rt {
namespace {

constexpr std::size_t kBytes = 3'000'000;

weir_status opening(KeyValues settings) {
  const auto backend = make_sim_backend();
  return status_of([&] { open_device(*backend, std::move(settings)); });
}

TEST(SimBackend, NoSettings_GivesDocumentedDefaults) {
  const auto backend = make_sim_backend();
  const auto device = open_device(*backend, {});
  const DeviceInfo& info = device->info();
  EXPECT_EQ(info.cores, 1u);
  EXPECT_EQ(info.link_gbps, 6);
  EXPECT_EQ(info.link_latency_us, 10);
  EXPECT_EQ(info.link_duplex, "full");
  EXPECT_EQ(info.memory_bytes, test_machine().memory_bytes);
  EXPECT_FALSE(info.virtual_time);
  EXPECT_FALSE(info.aliases_host);
  EXPECT_FALSE(info.copies_by_worker);
}

TEST(SimBackend, Settings_AppearInDeviceInfo) {
  const auto backend = make_sim_backend();
  const auto device = open_device(*backend, {{"cores", "57"},
                                             {"gbps", "12.5"},
                                             {"latency_us", "2.5"},
                                             {"duplex", "half"},
                                             {"memory", "8MiB"},
                                             {"clock", "virtual"}});
  EXPECT_EQ(device->info().cores, 57u);
  EXPECT_EQ(device->info().link_gbps, 12.5);
  EXPECT_EQ(device->info().link_latency_us, 2.5);
  EXPECT_EQ(device->info().link_duplex, "half");
  EXPECT_EQ(device->info().memory_bytes, std::uint64_t{8} << 20);
  EXPECT_TRUE(device->info().virtual_time);
}

TEST(SimBackend, InvalidOrInconsistentSettings_AreRejected) {
  EXPECT_EQ(opening({{"cores", "5"}}), WEIR_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(opening({{"cores", "5"}, {"clock", "virtual"}}), WEIR_STATUS_OK);
  EXPECT_EQ(opening({{"speed", "2"}}), WEIR_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(opening({{"speed", "2"}, {"clock", "virtual"}}), WEIR_STATUS_OK);
  EXPECT_EQ(opening({{"gbps", "0"}}), WEIR_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(opening({{"latency_us", "-1"}}), WEIR_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(opening({{"kernels", "skip"}}), WEIR_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(opening({{"kernels", "skip"}, {"clock", "virtual"}}), WEIR_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(opening({{"kernels", "skip"}, {"clock", "virtual"}, {"gflops", "1"}}), WEIR_STATUS_OK);
  EXPECT_EQ(opening({{"kernels", "skip"}, {"gflops", "1"}}), WEIR_STATUS_OK);
  EXPECT_EQ(opening({{"cores", "4"}, {"reserved", "4"}}), WEIR_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(opening({{"cores", "4"}, {"reserved", "0"}}), WEIR_STATUS_OK);
  EXPECT_EQ(opening({{"threads", "4"}}), WEIR_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(opening({{"contention", "0.5"}, {"clock", "virtual"}}), WEIR_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(opening({{"smt", "on"}}), WEIR_STATUS_INVALID_ARGUMENT);
}

TEST(SimBackend, Description_DiffersOnlyBySettingsThatChangeSpeed) {
  const auto description = [](KeyValues settings) {
    const auto backend = make_sim_backend();
    return open_device(*backend, std::move(settings))->info().description;
  };
  EXPECT_NE(description({{"clock", "virtual"}, {"gflops", "35"}}),
            description({{"clock", "virtual"}, {"gflops", "70"}}));
  EXPECT_NE(description({{"kernels", "skip"}, {"gflops", "35"}}), description({}));
  EXPECT_EQ(description({{"gflops", "35"}}), description({})) << "measured, not modelled";
  const auto slowed = [&](KeyValues settings) {
    settings.emplace_back("clock", "virtual");
    return description(std::move(settings));
  };
  EXPECT_NE(slowed({{"contention", "1.25"}}), slowed({}));
  EXPECT_NE(slowed({{"contention", "1.25"}}), slowed({{"contention", "1.5"}}));
  EXPECT_NE(slowed({{"slow_by", "10"}}), slowed({}));
  EXPECT_NE(slowed({{"slow_by", "10"}}), slowed({{"slow_by", "10"}, {"slow_at_ms", "5"}}));
  EXPECT_EQ(slowed({{"slow_at_ms", "5"}}), slowed({})) << "as fast as before";
}

TEST(SimBackend, SkippedKernels_NeedNoHostCores) {
  const auto backend = make_sim_backend();
  const auto wanted = [&](KeyValues settings) {
    return backend->cores_wanted(spec_of(*backend, std::move(settings)), test_machine());
  };
  EXPECT_EQ(wanted({{"cores", "2"}}), 2u);
  EXPECT_EQ(wanted({{"cores", "2"}, {"gflops", "1"}, {"kernels", "skip"}}), 0u);
}

TEST(SimBackend, ReservedCores_AreExcludedFromTheThreadCount) {
  const auto backend = make_sim_backend();
  const auto device = open_device(
      *backend, {{"cores", "57"}, {"reserved", "1"}, {"threads", "4"}, {"clock", "virtual"}});
  EXPECT_EQ(device->info().cores, 224u);
  EXPECT_EQ(device->info().threads_per_core, 4u);
  EXPECT_EQ(device->info().description.find("57"), std::string::npos);
}

TEST(SimBackend, ReachesHostAndOtherSimulatedDevices) {
  const auto backend = make_sim_backend();
  const auto one = open_device(*backend, {}), other = open_device(*backend, {});
  EXPECT_TRUE(one->reaches(nullptr));
  EXPECT_TRUE(one->reaches(other.get()));
}

/// A card, memory on it, and transfers of it in both directions.
class SimLinkTest : public testing::Test {
 protected:
  void open(KeyValues settings) {
    device_ = open_device(*backend_, std::move(settings));
    card_ = device_->allocate(kBytes);
  }
  ~SimLinkTest() override {
    if (device_) device_->release(card_);
  }

  void transfer(bool in, std::size_t bytes) {
    const Region part{.offset = 0, .row = bytes};
    const CopyEnd host{nullptr, host_.data(), part};
    const CopyEnd card{device_.get(), static_cast<std::byte*>(card_.address), part};
    device_->copy({in ? host : card, in ? card : host, &copies_, nullptr});
  }

  void expect_times(const std::vector<std::pair<std::int64_t, std::int64_t>>& expected) {
    while (device_->drive()) {
    }
    const auto endings = copies_.endings();
    ASSERT_EQ(endings.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(endings[i].started_ns, expected[i].first) << "transfer " << i;
      EXPECT_EQ(endings[i].ended_ns, expected[i].second) << "transfer " << i;
    }
  }

  const std::unique_ptr<Backend> backend_ = make_sim_backend();
  std::unique_ptr<Device> device_;
  std::vector<std::byte> host_ = std::vector<std::byte>(kBytes);
  Memory card_;
  Copies copies_;
};

TEST_F(SimLinkTest, VirtualTransferTakesLatencyPlusBytesOverBandwidth) {
  open({{"clock", "virtual"}, {"gbps", "3"}, {"latency_us", "10"}});
  transfer(true, kBytes);
  expect_times({{0, 10'000 + 1'000'000}});
  EXPECT_EQ(device_->now_ns(), 1'010'000);
}

TEST_F(SimLinkTest, FullDuplexSendsBothDirectionsAtOnceAndEachInOrder) {
  open({{"clock", "virtual"}, {"gbps", "3"}, {"latency_us", "10"}, {"duplex", "full"}});
  transfer(true, 3'000'000);
  transfer(false, 1'500'000);
  transfer(true, 300'000);
  expect_times({{0, 510'000}, {0, 1'010'000}, {1'010'000, 1'120'000}});
}

TEST_F(SimLinkTest, HalfDuplexSerializesBothDirections) {
  open({{"clock", "virtual"}, {"gbps", "3"}, {"latency_us", "10"}, {"duplex", "half"}});
  transfer(true, 3'000'000);
  transfer(false, 1'500'000);
  transfer(true, 300'000);
  expect_times({{0, 1'010'000}, {1'010'000, 1'520'000}, {1'520'000, 1'630'000}});
}

TEST_F(SimLinkTest, ZeroLatency_TransferTimeIsBytesOverBandwidth) {
  open({{"clock", "virtual"}, {"gbps", "1"}, {"latency_us", "0"}});
  transfer(true, 1);
  transfer(true, 999);
  expect_times({{0, 1}, {1, 1000}});
}

TEST_F(SimLinkTest, RealTransfersMoveTheBytes) {
  open({{"gbps", "1000"}, {"latency_us", "0"}});
  std::memset(host_.data(), 42, kBytes);
  transfer(true, kBytes);
  copies_.wait_for(1);
  EXPECT_EQ(std::memcmp(card_.address, host_.data(), kBytes), 0);
}

TEST_F(SimLinkTest, RealTransfersOccupyTheLinkForAtLeastTheModelledTime) {
  open({{"gbps", "3"}, {"latency_us", "100"}, {"duplex", "half"}});
  const std::int64_t before = sys::now_ns();
  for (int i = 0; i < 4; ++i) transfer(i % 2 == 0, 300'000);
  const auto endings = copies_.wait_for(4);
  std::int64_t free_at = before;
  for (const Copies::Ending& ending : endings) {
    EXPECT_GE(ending.started_ns, free_at);
    EXPECT_GE(ending.ended_ns - ending.started_ns, 200'000);
    free_at = ending.ended_ns;
  }
  EXPECT_GE(sys::now_ns(), endings[3].ended_ns);
}

TEST_F(SimLinkTest, SkippedKernels_RealTransfersTakeTimeAndMoveNoBytes) {
  open({{"gbps", "3"}, {"latency_us", "100"}, {"kernels", "skip"}, {"gflops", "1"}});
  std::memset(host_.data(), 42, kBytes);
  std::memset(card_.address, 7, kBytes);
  const std::int64_t before = sys::now_ns();
  transfer(true, kBytes);
  copies_.wait_for(1);
  EXPECT_GE(sys::now_ns(), before + 1'100'000);
  EXPECT_EQ(static_cast<const char*>(card_.address)[kBytes - 1], 7);
}

}  // namespace
}  // namespace weir::rt
