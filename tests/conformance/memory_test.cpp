// Instances of buffers: what is in them, whose they are, when they go.
#include <algorithm>
#include <numeric>

#include "suite.hpp"

namespace weir::conformance {
namespace {

CONFORMANCE_TEST(Memory, NewDeviceInstance_IsZeroFilled) {
  const Rig rig(subject);
  const Buffer x = rig.unaliased(10'000);
  std::fill_n(x.data<unsigned char>(), x.bytes(), 7);
  rig.stream.download(x.all());
  rig.stream.synchronize();
  const auto* const bytes = x.data<unsigned char>();
  EXPECT_EQ(std::count(bytes, bytes + x.bytes(), 0), static_cast<std::ptrdiff_t>(x.bytes()));
}

CONFORMANCE_TEST(Memory, BuffersOf1ByteTo3MiB_RoundTripTheirBytes) {
  const Rig rig(subject);
  for (const std::size_t size : {1u, 3u, 64u, 4095u, 4096u, 65'537u, 3u << 20}) {
    const Buffer x = rig.unaliased(size);
    auto* const bytes = x.data<unsigned char>();
    std::iota(bytes, bytes + size, static_cast<unsigned char>(size));
    const std::vector<unsigned char> before(bytes, bytes + size);
    rig.stream.upload(x.all());
    rig.stream.synchronize();
    std::fill_n(bytes, size, static_cast<unsigned char>(0));
    rig.stream.download(x.all());
    rig.stream.synchronize();
    EXPECT_TRUE(std::equal(before.begin(), before.end(), bytes)) << size << " bytes";
  }
}

/// Page-locked where that helps, and no different elsewhere; until the buffer goes.
CONFORMANCE_TEST(Memory, PinnedProgramMemoryWrappedTwice_RoundTripsThroughAKernel) {
  const Rig rig(subject);
  std::vector<std::int64_t> x(200'000);
  weir_buffer_options options = WEIR_BUFFER_OPTIONS_INIT;
  options.kind = WEIR_MEMORY_KIND_PINNED;
  options.no_alias = true;
  for (std::int64_t round = 0; round < 2; ++round) {
    std::iota(x.begin(), x.end(), round);
    const Buffer buffer = rig.runtime.wrap(x.data(), x.size() * sizeof x[0], options);
    rig.stream.upload(buffer.all());
    rig.stream.compute(rig.kernels.add, {readwrite(buffer.all())}, {1});
    rig.stream.download(buffer.all());
    rig.stream.synchronize();
    EXPECT_EQ(x[0], round + 1);
    EXPECT_EQ(x[199'999], round + 200'000);
  }
}

CONFORMANCE_TEST(Memory, NoAliasBuffer_HostAndDeviceInstancesAreDistinct) {
  const Rig rig(subject);
  const Buffer x = rig.numbers(100);
  auto* const host = x.data<std::int64_t>();
  std::fill_n(host, 100, 1);
  rig.stream.upload(x.all());
  rig.stream.synchronize();
  std::fill_n(host, 100, 50);  // changes the instance of the host only
  rig.stream.compute(rig.kernels.add, {readwrite(x.all())}, {2});
  rig.stream.synchronize();
  EXPECT_EQ(host[99], 50);
  rig.stream.download(x.all());
  rig.stream.synchronize();
  EXPECT_EQ(std::count(host, host + 100, 3), 100);
}

CONFORMANCE_TEST(Memory, BufferThatMayAlias_SharesHostMemoryOnlyIfTheDeviceAliasesIt) {
  const Rig rig(subject);
  const Buffer x = rig.runtime.buffer(64 * sizeof(std::int64_t));
  x.data<std::int64_t>()[63] = 5;
  rig.stream.upload(x.all());
  rig.stream.compute(rig.kernels.add, {readwrite(x.all())}, {1});
  rig.stream.synchronize();
  const bool shared = rig.domain.info().aliases_host;
  EXPECT_EQ(x.data<std::int64_t>()[63], shared ? 6 : 5);
  EXPECT_EQ(rig.runtime.stats().bytes_h2d, shared ? 0u : x.bytes());
}

CONFORMANCE_TEST(Memory, WrappedMemoryNotPageAligned_ChangesInsideTheBufferOnly) {
  const Rig rig(subject);
  std::vector<std::int64_t> memory(1003, 4);
  const Buffer x = rig.runtime.wrap(memory.data() + 1, 1001 * sizeof(std::int64_t));
  rig.stream.upload(x.all());
  rig.stream.compute(rig.kernels.add, {readwrite(x.all())}, {1});
  rig.stream.download(x.all());
  rig.stream.synchronize();
  EXPECT_EQ(memory.front(), 4);
  EXPECT_EQ(memory.back(), 4);
  EXPECT_EQ(std::count(memory.begin() + 1, memory.end() - 1, 5), 1001);
}

/// Memory of the device that the program has, for numbers.
class DeviceMemory {
 public:
  DeviceMemory(const Subject& subject, std::size_t count)
      : subject_(subject),
        bytes_(count * sizeof(std::int64_t)),
        address_(subject.allocate(bytes_)) {}
  ~DeviceMemory() { subject_.release(address_); }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  std::int64_t* numbers() const { return static_cast<std::int64_t*>(address_); }
  std::size_t bytes() const { return bytes_; }

 private:
  const Subject& subject_;
  const std::size_t bytes_;
  void* const address_;
};

CONFORMANCE_TEST(Memory, AdoptedDeviceMemory_IsUsedInPlaceAndOverlapIsRejected) {
  weir_buffer_options options = WEIR_BUFFER_OPTIONS_INIT;
  options.no_alias = true;
  const Rig opened(subject);  // opens the device that the memory is of
  const DeviceMemory memory(subject, 10'000);
  const Rig rig(subject, subject.small.empty() ? subject.domain : subject.small);
  for (const int round : {1, 2}) {  // more of it than the domain has memory, which it takes none of
    const Buffer x = rig.runtime.adopt(rig.domain, memory.numbers(), memory.bytes(), options);
    if (round == 1) rig.stream.compute(rig.kernels.fill, {write(x.all())}, {5});
    rig.stream.compute(rig.kernels.add, {readwrite(x.all())}, {round});
    rig.stream.synchronize();
    EXPECT_EQ(x.data<std::int64_t>()[0], 0) << "the host has its own";
    rig.stream.download(x.all());
    rig.stream.synchronize();
    const auto* const host = x.data<std::int64_t>();
    EXPECT_EQ(std::count(host, host + 10'000, round == 1 ? 6 : 8), 10'000);
    EXPECT_EQ(rig.domain.info().memory_used, 0u);
  }
  const Buffer part = rig.runtime.adopt(rig.domain, memory.numbers() + 100, 800, options);
  std::fill_n(part.data<std::int64_t>(), 100, 3);
  rig.stream.upload(part.all());
  rig.stream.synchronize();
  EXPECT_THROW(rig.runtime.adopt(rig.domain, memory.numbers() + 199, 8, options), Error);
  EXPECT_THROW(rig.runtime.adopt(rig.domain, memory.numbers() + 100, 8, options), Error);
  const Buffer rest = rig.runtime.adopt(rig.domain, memory.numbers() + 200, 800, options);
  rig.stream.compute(rig.kernels.mix, {read(part.all()), readwrite(rest.all())}, {1});
  rig.stream.download(rest.all());
  rig.stream.synchronize();
  EXPECT_EQ(rest.data<std::int64_t>()[99], 3 * 8 + 3 + 1);
}

CONFORMANCE_TEST(Memory, BuffersDestroyed_MemoryUsedReturnsToZero) {
  const Rig rig(subject);
  for (int round = 0; round < 5; ++round) {
    const Buffer x = rig.unaliased(1 << 20);
    rig.stream.upload(x.all());
    rig.stream.synchronize();
    EXPECT_GE(rig.domain.info().memory_used, std::uint64_t{1} << 20);
  }
  EXPECT_EQ(rig.domain.info().memory_used, 0u);
}

CONFORMANCE_TEST(Memory, TwoThousandLiveBuffers_EachKeepsItsContents) {
  const Rig rig(subject);
  std::vector<Buffer> buffers;
  for (std::int64_t i = 0; i < 2000; ++i) {
    buffers.push_back(rig.numbers(1));
    rig.stream.compute(rig.kernels.fill, {write(buffers.back().all())}, {i});
    rig.stream.download(buffers.back().all());
  }
  rig.stream.synchronize();
  for (std::int64_t i = 0; i < 2000; ++i) {
    ASSERT_EQ(*buffers[static_cast<std::size_t>(i)].data<std::int64_t>(), i);
  }
}

}  // namespace
}  // namespace weir::conformance
