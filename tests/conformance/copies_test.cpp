// Transfers: every byte of the region and no other, in all directions.
#include <algorithm>
#include <random>

#include "suite.hpp"

namespace weir::conformance {
namespace {

using Bytes = std::vector<unsigned char>;

/// Copies a region as slowly as one can.
void copy_simply(const Bytes& source, const weir_region& from, Bytes& target,
                 const weir_region& to) {
  for (std::size_t plane = 0; plane < from.extent[2]; ++plane) {
    for (std::size_t row = 0; row < from.extent[1]; ++row) {
      for (std::size_t byte = 0; byte < from.extent[0]; ++byte) {
        target[to.offset + plane * to.stride[1] + row * to.stride[0] + byte] =
            source[from.offset + plane * from.stride[1] + row * from.stride[0] + byte];
      }
    }
  }
}

Bytes random_bytes(std::mt19937& random, std::size_t count) {
  Bytes bytes(count);
  for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(random());
  return bytes;
}

/// A region of this shape somewhere in a buffer of so many bytes.
weir_region place_shape(std::mt19937& random, const std::size_t (&extent)[3], std::size_t bytes) {
  const auto upto = [&](std::size_t most) { return random() % (most + 1); };
  weir_region region{0, {extent[0], extent[1], extent[2]}, {0, 0}};
  region.stride[0] = extent[0] + upto(20);
  region.stride[1] = (extent[1] - 1) * region.stride[0] + extent[0] + upto(20);
  region.offset = upto(bytes - (extent[2] - 1) * region.stride[1] -
                       (extent[1] - 1) * region.stride[0] - extent[0]);
  return region;
}

constexpr std::size_t kBytes = 20'000;

/// Instances of one buffer in the host and the device, and what is to be in them.
struct Pair {
  Pair(const Rig& rig, std::mt19937& random)
      : buffer(rig.unaliased(kBytes)), device(random_bytes(random, kBytes)) {
    std::copy(device.begin(), device.end(), buffer.data<unsigned char>());
    rig.stream.upload(buffer.all());
    rig.stream.synchronize();
    host = random_bytes(random, kBytes);
    std::copy(host.begin(), host.end(), buffer.data<unsigned char>());
  }
  void check(const Rig& rig) const {
    EXPECT_TRUE(std::equal(host.begin(), host.end(), buffer.data<unsigned char>()))
        << "in the host's instance";
    rig.stream.download(buffer.all());
    rig.stream.synchronize();
    EXPECT_TRUE(std::equal(device.begin(), device.end(), buffer.data<unsigned char>()))
        << "in the device's instance";
  }

  Buffer buffer;
  Bytes host, device;
};

enum class Direction { up, down, inside, up_elsewhere };

/// Random shapes: rows, planes, odd offsets.
void try_shapes(const Subject& subject, Direction direction) {
  const Rig rig(subject);
  weir_domain* const device = rig.domain.handle();
  for (unsigned seed = 1; seed <= 40; ++seed) {
    std::mt19937 random(seed);
    Pair x(rig, random), y(rig, random);
    const std::size_t extent[3] = {1 + random() % 200, 1 + random() % 8, 1 + random() % 5};
    const weir_region from = place_shape(random, extent, kBytes);
    const weir_region to = place_shape(random, extent, kBytes);
    switch (direction) {
      case Direction::up:
        rig.stream.upload({x.buffer.handle(), from});
        copy_simply(x.host, from, x.device, from);
        break;
      case Direction::down:
        rig.stream.download({x.buffer.handle(), from});
        copy_simply(x.device, from, x.host, from);
        break;
      case Direction::inside:
        rig.stream.transfer({device, x.buffer.handle(), from}, {device, y.buffer.handle(), to});
        copy_simply(x.device, from, y.device, to);
        break;
      case Direction::up_elsewhere:
        rig.stream.transfer({nullptr, x.buffer.handle(), from}, {device, y.buffer.handle(), to});
        copy_simply(x.host, from, y.device, to);
        break;
    }
    rig.stream.synchronize();
    x.check(rig);
    y.check(rig);
    if (testing::Test::HasFailure()) FAIL() << "with seed " << seed;
  }
}

CONFORMANCE_TEST(Copies, UploadOfRandomShapes_CopiesExactlyTheRegion) {
  try_shapes(subject, Direction::up);
}
CONFORMANCE_TEST(Copies, DownloadOfRandomShapes_CopiesExactlyTheRegion) {
  try_shapes(subject, Direction::down);
}
CONFORMANCE_TEST(Copies, TransferOfRandomShapesBetweenDeviceBuffers_CopiesExactlyTheRegion) {
  try_shapes(subject, Direction::inside);
}
CONFORMANCE_TEST(Copies, HostToDeviceTransferIntoAnotherBuffer_CopiesExactlyTheRegion) {
  try_shapes(subject, Direction::up_elsewhere);
}

CONFORMANCE_TEST(Copies, TransferBetweenDisjointRegionsOfABuffer_CopiesExactlyTheRegion) {
  const Rig rig(subject);
  std::mt19937 random(1);
  Pair x(rig, random);
  const auto copy = [&](const weir_region& from, const weir_region& to) {
    rig.stream.transfer({rig.domain.handle(), x.buffer.handle(), from},
                        {rig.domain.handle(), x.buffer.handle(), to});
    const Bytes before = x.device;
    copy_simply(before, from, x.device, to);
  };
  copy(weir_region_range(320, 24), weir_region_range(384, 24));
  copy(weir_region_range(24, 24), weir_region_range(0, 24));
  copy({1000, {8, 4, 1}, {16, 0}}, {1008, {8, 4, 1}, {16, 0}});  // between each other
  rig.stream.synchronize();
  x.check(rig);
}

CONFORMANCE_TEST(Copies, TransferToAPeerDevice_ArrivesAndLeavesTheSourceUnchanged) {
  const Rig rig(subject, subject.domain + "," + subject.domain);
  const Domain peer = rig.runtime.domain(1);
  const Place there = peer.place();
  const Stream other = there.stream();
  const Buffer x = rig.numbers(1000);
  rig.stream.compute(rig.kernels.fill, {write(x.all())}, {11});
  const Event sent = rig.stream.transfer({rig.domain.handle(), x.handle(), x.all().region},
                                         {peer.handle(), x.handle(), x.all().region});
  other.wait(sent);
  other.compute(rig.kernels.add, {readwrite(x.all())}, {4});
  other.download(x.all());
  rig.runtime.synchronize();
  const auto* const numbers = x.data<std::int64_t>();
  EXPECT_EQ(std::count(numbers, numbers + 1000, 15), 1000);
  rig.stream.download(x.all());
  rig.stream.synchronize();
  EXPECT_EQ(std::count(numbers, numbers + 1000, 11), 1000);
}

CONFORMANCE_TEST(Copies, PartialUploadAndDownload_StatsCountExactlyTheCopiedBytes) {
  const Rig rig(subject);
  const Buffer x = rig.unaliased(1000);
  rig.stream.upload(x.range(3, 77));
  rig.stream.download({x.handle(), {10, {5, 4, 3}, {7, 40}}});
  rig.stream.synchronize();
  EXPECT_EQ(rig.runtime.stats().bytes_h2d, 77u);
  EXPECT_EQ(rig.runtime.stats().bytes_d2h, 60u);
}

CONFORMANCE_TEST(Copies, TransferBetweenDifferentExtents_IsAnInvalidArgument) {
  const Rig rig(subject);
  const Buffer x = rig.unaliased(1000);
  EXPECT_EQ(status_of([&] {
              rig.stream.transfer({nullptr, x.handle(), weir_region_range(0, 10)},
                                  {rig.domain.handle(), x.handle(), weir_region_range(0, 11)});
            }),
            WEIR_STATUS_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace weir::conformance
