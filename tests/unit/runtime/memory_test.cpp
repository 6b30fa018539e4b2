// Programs that need more memory than a card has: instances leave and come back with their
// contents.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "gate.hpp"

namespace weir {
namespace {

constexpr std::size_t kNumbers = 1024;
constexpr std::size_t kBuffers = 12;

class MemoryTest : public testing::TestWithParam<const char*> {
 protected:
  Runtime runtime_{std::string(GetParam()) + ",memory=32KiB"};
  Domain domain_ = runtime_.domain(0);
  Place place_ = domain_.place();
  Stream stream_ = place_.stream();
  Kernel add_ = runtime_.kernel("add", [](const Call& call) {
    for (std::int64_t& number : call.span<std::int64_t>(0)) number += call.scalar<std::int64_t>(0);
  });

  std::vector<Buffer> make_buffers() {
    std::vector<Buffer> buffers;
    for (std::size_t i = 0; i < kBuffers; ++i) {
      buffers.push_back(runtime_.buffer(kNumbers * sizeof(std::int64_t)));
      std::fill_n(buffers.back().data<std::int64_t>(), kNumbers, static_cast<std::int64_t>(i));
    }
    return buffers;
  }
};

INSTANTIATE_TEST_SUITE_P(Clocks, MemoryTest,
                         testing::Values("sim:latency_us=0,gbps=100", "sim:clock=virtual"),
                         [](const auto& info) { return info.index == 0 ? "real" : "virtual"; });

TEST_P(MemoryTest, DirtyInstancesAreEvictedAndComeBackWithTheirContents) {
  const std::vector<Buffer> buffers = make_buffers();
  for (const Buffer& buffer : buffers) stream_.upload(buffer.all());
  for (int round = 0; round < 3; ++round) {
    for (const Buffer& buffer : buffers) {
      stream_.compute(add_, {readwrite(buffer.all())}, {std::int64_t{100}});
    }
  }
  stream_.synchronize();
  EXPECT_LE(domain_.info().memory_used, domain_.info().memory_bytes);
  EXPECT_EQ(buffers[3].data<std::int64_t>()[5], 3) << "the host's instance changed by itself";
  for (const Buffer& buffer : buffers) stream_.download(buffer.all());
  stream_.synchronize();
  for (std::size_t i = 0; i < kBuffers; ++i) {
    const auto* const numbers = buffers[i].data<std::int64_t>();
    EXPECT_EQ(std::count(numbers, numbers + kNumbers, static_cast<std::int64_t>(i) + 300),
              static_cast<std::ptrdiff_t>(kNumbers));
  }
  EXPECT_GT(runtime_.stats().bytes_evicted, 0u);
  EXPECT_EQ(runtime_.stats().bytes_h2d, kBuffers * kNumbers * sizeof(std::int64_t));
}

TEST_P(MemoryTest, NothingIsEvictedWhileEverythingFits) {
  const std::vector<Buffer> buffers = make_buffers();
  for (int round = 0; round < 5; ++round) {
    for (std::size_t i = 0; i < 4; ++i) {
      stream_.compute(add_, {readwrite(buffers[i].all())}, {std::int64_t{1}});
    }
  }
  stream_.synchronize();
  EXPECT_EQ(domain_.info().memory_used, domain_.info().memory_bytes);
  EXPECT_EQ(runtime_.stats().bytes_evicted, 0u);
}

TEST_P(MemoryTest, DestroyedBuffersGiveTheirMemoryBack) {
  for (std::size_t i = 0; i < kBuffers; ++i) {
    const Buffer buffer = runtime_.buffer(32 << 10);
    stream_.upload(buffer.all());
  }
  stream_.synchronize();
  EXPECT_EQ(domain_.info().memory_used, 0u);
}

TEST_P(MemoryTest, SeveralStreamsShareTheCapacity) {
  const std::vector<Buffer> buffers = make_buffers();
  std::vector<Stream> streams;
  for (std::size_t i = 0; i < 4; ++i) streams.push_back(place_.stream());
  for (std::size_t i = 0; i < kBuffers; ++i) {
    const Stream& stream = streams[i % streams.size()];
    stream.upload(buffers[i].all());
    for (int j = 0; j < 4; ++j) {
      stream.compute(add_, {readwrite(buffers[i].all())}, {std::int64_t{1}});
    }
    stream.download(buffers[i].all());
  }
  runtime_.synchronize();
  for (std::size_t i = 0; i < kBuffers; ++i) {
    EXPECT_EQ(buffers[i].data<std::int64_t>()[kNumbers - 1], static_cast<std::int64_t>(i) + 4);
  }
}

TEST_P(MemoryTest, ActionThatNeedsMoreThanThereIsFailsAndTheRestGoesOn) {
  const std::vector<Buffer> buffers = make_buffers();
  const Kernel all = runtime_.kernel("all", [](const Call&) { FAIL() << "cannot run"; });
  std::vector<Operand> operands;
  for (std::size_t i = 0; i < 5; ++i) operands.push_back(read(buffers[i].all()));
  stream_.compute(all, operands, std::span<const Scalar>());
  const Event other = stream_.upload(buffers[6].all());
  other.wait();
  EXPECT_EQ(status_of([&] { stream_.synchronize(); }), WEIR_STATUS_OUT_OF_MEMORY);
}

}  // namespace
}  // namespace weir
