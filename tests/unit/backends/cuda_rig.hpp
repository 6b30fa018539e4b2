// A CUDA device on the fake driver, and jobs for it.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/cuda/cuda_backend.hpp"
#include "fake_cuda.h"
#include "open_device.hpp"
#include "scripted_feed.hpp"
#include "surroundings.hpp"

namespace weir::rt {

/// The arguments of a job, which must stay until it is over.
struct CudaCall {
  std::vector<weir_view> views;
  std::vector<weir_scalar> scalars;
};

class CudaTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    setenv("WEIR_CUDA_DRIVER", WEIR_TEST_FAKE_CUDA, 1);
    setenv("WEIR_NVRTC", WEIR_TEST_FAKE_CUDA, 1);
  }
  void SetUp() override { fake_cuda_reset(); }
  void TearDown() override {
    device_.reset();
    EXPECT_EQ(fake_cuda_objects(), 0u);
    if (!misuse_expected_) {
      EXPECT_EQ(fake_cuda_misuses(), 0u);
    }
  }

  Device& device(KeyValues settings = {}) {
    if (device_ == nullptr) device_ = open_device(*backend_, std::move(settings));
    return *device_;
  }
  std::unique_ptr<PlaceDriver> place(ScriptedFeed& feed,
                                     std::vector<unsigned> cores = {0, 1, 2, 3}) {
    return device().open_place({"place", std::move(cores)}, feed);
  }

  /// Copies what a device has there to the host, once new memory is clear.
  static std::vector<char> bytes_of(Device& device, const Memory& memory) {
    std::vector<char> bytes(memory.bytes);
    const Region all{.offset = 0, .row = bytes.size()};
    Copies sink;
    device.copy({{&device, static_cast<std::byte*>(memory.address), all},
                 {nullptr, reinterpret_cast<std::byte*>(bytes.data()), all},
                 &sink,
                 nullptr});
    EXPECT_TRUE(sink.wait_for(1)[0].outcome.ok());
    return bytes;
  }

  /// A call of a kernel whose text the fake compiler takes.
  const KernelSource& source(const std::string& entry, const std::string& parameters,
                             const std::string& more = "") {
    KernelSource made;
    made.entry = entry;
    made.text = "extern \"C\" __global__ void " + entry + "()\n" + more;
    made.file = entry + ".cu";
    made.parameters = parameters;
    return sources_.emplace_back(std::move(made));
  }
  Job job(const KernelSource& source, std::vector<void*> operands,
          std::vector<weir_scalar> scalars = {}, unsigned groups = 1) {
    CudaCall& call = calls_.emplace_back();
    for (void* operand : operands) {
      call.views.push_back({operand, {8, 1, 1}, {8, 8}, WEIR_ACCESS_READ_WRITE});
    }
    call.scalars = std::move(scalars);
    Job made;
    made.source = &source;
    made.groups = {groups, 1, 1};
    made.call.operands = call.views.data();
    made.call.operand_count = call.views.size();
    made.call.scalars = call.scalars.data();
    made.call.scalar_count = call.scalars.size();
    made.call.name = source.entry.c_str();
    return made;
  }
  Job copy(CopyEnd from, CopyEnd to) {
    Job made;
    made.is_copy = true;
    made.from = from;
    made.to = to;
    made.call.name = "copy";
    return made;
  }
  CopyEnd here(void* base, Region region) const {
    return {nullptr, static_cast<std::byte*>(base), region};
  }
  CopyEnd there(void* base, Region region) {
    return {&device(), static_cast<std::byte*>(base), region};
  }

  std::unique_ptr<Backend> backend_ = make_cuda_backend();
  std::unique_ptr<Device> device_;
  const CacheFolder cache_;
  std::deque<KernelSource> sources_;
  std::deque<CudaCall> calls_;
  bool misuse_expected_ = false;
};

}  // namespace weir::rt
