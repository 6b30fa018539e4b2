#include <algorithm>

#include "cuda_rig.hpp"
#include "thrown.hpp"

namespace weir::rt {
namespace {

using CudaBackendTest = CudaTest;

TEST_F(CudaBackendTest, DeviceInfo_ReportsNameCoresMemoryAndCapabilities) {
  const DeviceInfo& info = device().info();
  EXPECT_EQ(info.backend, "cuda");
  EXPECT_EQ(info.description, "Fake GPU (compute capability 9.0, driver for CUDA 13.0)");
  EXPECT_EQ(info.cores, 4u) << "groups of eight multiprocessors";
  EXPECT_EQ(info.memory_bytes, (1u << 30) - (1u << 27)) << "all but an eighth";
  EXPECT_TRUE(info.resolves_dependences);
  EXPECT_TRUE(info.compiles_source);
  EXPECT_FALSE(info.runs_host_code);
  EXPECT_FALSE(info.aliases_host);
  EXPECT_EQ(open_device(*backend_, {{"memory", "1MiB"}})->info().memory_bytes, 1u << 20);
  EXPECT_TRUE(device().reaches(nullptr));
  EXPECT_TRUE(device().reaches(open_device(*backend_, {{"device", "1"}}).get()));
}

TEST_F(CudaBackendTest, UnknownDeviceNumber_ErrorListsTheDevices) {
  const auto open = [&] { open_device(*backend_, {{"device", "7"}}); };
  EXPECT_EQ(status_of(open), WEIR_STATUS_NOT_FOUND);
  EXPECT_NE(
      thrown_by<Error>(open).find("no device 7; CUDA has: 0 Fake GPU (compute capability 9.0"),
      std::string::npos)
      << thrown_by<Error>(open);
}

TEST_F(CudaBackendTest, InvalidSettings_AreRejected) {
  for (const KeyValues& wrong : {KeyValues{{"device", "x"}},
                                 {{"streams", "9"}},
                                 {{"streams", "0"}},
                                 {{"memory", "-1"}},
                                 {{"cores", "1"}}}) {
    EXPECT_EQ(status_of([&] { open_device(*backend_, wrong); }), WEIR_STATUS_INVALID_ARGUMENT)
        << wrong[0].first;
  }
}

TEST_F(CudaBackendTest, Allocation_IsZeroedAndFailsBeyondFreeMemory) {
  Memory memory = device().allocate(1000);
  EXPECT_EQ(bytes_of(device(), memory), std::vector<char>(1000, 0));
  const std::string message = thrown_by<Error>([&] { device().allocate(std::size_t{1} << 40); });
  EXPECT_EQ(message, "domain 'test' was asked for 1 TiB, and its device has 1024 MiB free")
      << message;
  EXPECT_EQ(status_of([&] { device().allocate(std::size_t{1} << 40); }), WEIR_STATUS_OUT_OF_MEMORY);
  device().release(memory);
  EXPECT_EQ(memory.address, nullptr);
}

TEST_F(CudaBackendTest, FailedOpen_LeaksNoDriverObjects) {
  const char* const calls[] = {"cuDevicePrimaryCtxRetain", "cuMemPoolCreate", "cuStreamCreate",
                               "cuEventCreate", "cuMemGetInfo"};
  for (const char* call : calls) {
    fake_cuda_fail(call, 1, 2);  // out of memory
    EXPECT_NE(status_of([&] { open_device(*backend_, {}); }), WEIR_STATUS_OK) << call;
    EXPECT_EQ(fake_cuda_objects(), 0u) << call;
  }
}

TEST_F(CudaBackendTest, DeviceThatCannotBePartitioned_HasOneCore) {
  fake_cuda_fail("cuDeviceGetDevResource", 1, 801);
  EXPECT_EQ(device().info().cores, 1u);
  ScriptedFeed feed;
  EXPECT_NO_THROW(place(feed, {0}));
}

TEST_F(CudaBackendTest, NoGreenContexts_PartialPlaceIsUnsupported) {
  device();
  fake_cuda_fail("cuGreenCtxCreate", 1, 801);
  ScriptedFeed feed;
  const std::string why = thrown_by<Error>([&] { place(feed, {1, 2}); }, WEIR_STATUS_UNSUPPORTED);
  EXPECT_NE(why.find("place 'place' cannot be a part of domain 'test'"), std::string::npos) << why;
}

/// What a program without a driver sees, in a process of its own: the driver is opened once.
TEST_F(CudaBackendTest, MissingDriverOldDriverOrNoDevice_IsUnavailableWithReason) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto open = [](const char* driver) {
    setenv("WEIR_CUDA_DRIVER", driver, 1);
    const auto backend = make_cuda_backend();
    try {
      open_device(*backend, {});
    } catch (const Error& error) {
      std::fprintf(stderr, "%s: %s\n", status_name(error.status()), error.what());
      std::exit(3);
    }
    std::exit(0);
  };
  EXPECT_EXIT(open("/nowhere/libcuda.so.1"), testing::ExitedWithCode(3),
              "unavailable: there is no CUDA on this machine: .*/nowhere/libcuda.so.1.*; install "
              "NVIDIA's driver");
  EXPECT_EXIT(open("libm.so.6"), testing::ExitedWithCode(3),
              "unavailable: the CUDA driver libm.so.6 has no cuCtxFromGreenCtx: driver 570");
  const auto without_devices = [&] {
    fake_cuda_fail("cuInit", 1, 100);
    open(WEIR_TEST_FAKE_CUDA);
  };
  EXPECT_EXIT(without_devices(), testing::ExitedWithCode(3),
              "unavailable: the CUDA driver .* finds no device that it can use: "
              "CUDA_ERROR_NO_DEVICE");
}

TEST_F(CudaBackendTest, LargeCopyWithoutPlace_RoundTripsTheBytes) {
  constexpr std::size_t kBytes = (std::size_t{9} << 20) + 7;  // three pieces
  std::vector<char> out(kBytes), in(kBytes);
  for (std::size_t i = 0; i < kBytes; ++i) out[i] = static_cast<char>(i * 7);
  Memory memory = device().allocate(kBytes);
  const Region all{.offset = 0, .row = kBytes};
  Copies sink;
  device().copy({here(out.data(), all), there(memory.address, all), &sink, nullptr});
  ASSERT_TRUE(sink.wait_for(1)[0].outcome.ok());
  device().copy({there(memory.address, all), here(in.data(), all), &sink, nullptr});
  const auto ending = sink.wait_for(2)[1];
  EXPECT_TRUE(ending.outcome.ok()) << ending.outcome.message;
  EXPECT_LE(ending.started_ns, ending.ended_ns);
  EXPECT_EQ(in, out);
  device().release(memory);
}

TEST_F(CudaBackendTest, PinnedMemory_IsCopiedWithoutStaging) {
  std::vector<char> bytes(std::size_t{9} << 20, 'w');
  Memory memory = device().allocate(bytes.size());
  ASSERT_TRUE(device().pin_host(bytes.data(), bytes.size()));
  EXPECT_FALSE(device().pin_host(bytes.data(), bytes.size())) << "it is locked already";
  const Region all{.offset = 0, .row = bytes.size()};
  Copies sink;
  device().copy({here(bytes.data(), all), there(memory.address, all), &sink, nullptr});
  EXPECT_TRUE(sink.wait_for(1)[0].outcome.ok());
  EXPECT_EQ(fake_cuda_calls("cuMemcpyHtoDAsync"), 1u) << "not in pieces";
  device().unpin_host(bytes.data());
  device().copy({there(memory.address, all), here(bytes.data(), all), &sink, nullptr});
  EXPECT_TRUE(sink.wait_for(2)[1].outcome.ok());
  EXPECT_EQ(fake_cuda_calls("cuMemcpyDtoHAsync"), 3u) << "in pieces of 4 MiB";
  device().release(memory);
}

TEST_F(CudaBackendTest, MemoryPinnedOnlyAtItsEnds_IsCopiedThroughStaging) {
  constexpr std::size_t kLocked = std::size_t{1} << 20;
  std::vector<char> bytes(std::size_t{9} << 20, 'w');
  char* const last = bytes.data() + bytes.size() - kLocked;
  Memory memory = device().allocate(bytes.size());
  ASSERT_TRUE(device().pin_host(bytes.data(), kLocked));
  ASSERT_TRUE(device().pin_host(last, kLocked));
  const Region all{.offset = 0, .row = bytes.size()};
  Copies sink;
  device().copy({here(bytes.data(), all), there(memory.address, all), &sink, nullptr});
  const Outcome outcome = sink.wait_for(1)[0].outcome;
  EXPECT_TRUE(outcome.ok()) << outcome.message;
  EXPECT_EQ(fake_cuda_calls("cuMemcpyHtoDAsync"), 3u) << "in pieces of 4 MiB";
  device().unpin_host(bytes.data());
  device().unpin_host(last);
  device().release(memory);
}

TEST_F(CudaBackendTest, CopyBetweenDevices_MovesTheBytes) {
  const auto other = open_device(*backend_, {{"device", "1"}});
  Memory one = device().allocate(64), two = other->allocate(64);
  bytes_of(device(), one);
  static_cast<char*>(one.address)[5] = 42;
  const Region row{.offset = 5, .row = 8}, target{.offset = 16, .row = 8};
  Copies sink;
  device().copy({{&device(), static_cast<std::byte*>(one.address), row},
                 {other.get(), static_cast<std::byte*>(two.address), target},
                 &sink,
                 nullptr});
  EXPECT_TRUE(sink.wait_for(1)[0].outcome.ok());
  EXPECT_EQ(static_cast<char*>(two.address)[16], 42);
  device().release(one);
  other->release(two);
}

/// The driver walks all memory of a pool to open it to another GPU.
TEST_F(CudaBackendTest, RepeatedPeerCopies_SetPoolAccessUntilItSucceedsOnce) {
  const auto other = open_device(*backend_, {{"device", "1"}});
  Memory one = device().allocate(64), two = other->allocate(64);
  const Region all{.offset = 0, .row = 64};
  Copies sink;
  fake_cuda_fail("cuMemPoolSetAccess", 1, 2);
  for (std::size_t i = 1; i <= 4; ++i) {
    device().copy({{&device(), static_cast<std::byte*>(one.address), all},
                   {other.get(), static_cast<std::byte*>(two.address), all},
                   &sink,
                   nullptr});
    EXPECT_TRUE(sink.wait_for(i)[i - 1].outcome.ok());
    EXPECT_EQ(fake_cuda_calls("cuMemPoolSetAccess"), std::min<std::size_t>(i, 2))
        << "a second time, as the first failed";
  }
  device().release(one);
  other->release(two);
}

TEST_F(CudaBackendTest, FailedCopy_NamesTheErrorAndStickyErrorLosesTheDevice) {
  char here_bytes[8] = {};
  Memory memory = device().allocate(8);
  const Region all{.offset = 0, .row = 8};
  Copies sink;
  fake_cuda_fail("cuMemcpyHtoDAsync", 1, 1);
  device().copy({here(here_bytes, all), there(memory.address, all), &sink, nullptr});
  EXPECT_EQ(sink.wait_for(1)[0].outcome.message,
            "domain 'test': a copy: CUDA_ERROR_INVALID_VALUE (1: as the test wants it)");
  fake_cuda_fail("cuMemcpyHtoDAsync", 1, 700);
  device().copy({here(here_bytes, all), there(memory.address, all), &sink, nullptr});
  const std::string lost =
      "domain 'test' is lost: CUDA_ERROR_ILLEGAL_ADDRESS (700: as the test wants it) while 'a "
      "copy' was in flight";
  EXPECT_EQ(sink.wait_for(2)[1].outcome.message, lost);
  device().copy({there(memory.address, all), here(here_bytes, all), &sink, nullptr});
  EXPECT_EQ(sink.wait_for(3)[2].outcome.message, lost);
  EXPECT_EQ(thrown_by<Error>([&] { device().allocate(8); }), lost);
  device().release(memory);
  device_.reset();
  EXPECT_NO_THROW(open_device(*backend_, {})) << "a new context";
}

TEST_F(CudaBackendTest, OpenOfLostDevice_SaysToRestartUntilItsContextIsReleased) {
  device();  // keeps the context
  fake_cuda_fail("cuMemGetInfo", 1, 719);
  const auto again = [&] { open_device(*backend_, {}); };
  EXPECT_EQ(
      thrown_by<Error>(again),
      "domain 'test': this process has lost its GPU before, CUDA_ERROR_LAUNCH_FAILED (719: as "
      "the test wants it): start the program again");
  EXPECT_EQ(status_of(again), WEIR_STATUS_DEVICE_ERROR) << "every time";
  device_.reset();
  EXPECT_NO_THROW(open_device(*backend_, {})) << "no device keeps it open";
}

}  // namespace
}  // namespace weir::rt
