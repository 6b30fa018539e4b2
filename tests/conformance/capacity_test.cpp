// Programs that need more memory than the device has: instances leave and come back with their
// contents.
#include <algorithm>

#include "suite.hpp"

namespace weir::conformance {
namespace {

constexpr std::size_t kNumbers = 1024;  // a quarter of the memory
constexpr std::size_t kBuffers = 12;

/// The device with 32 KiB, and three times as much data.
struct Small : Rig {
  explicit Small(const Subject& subject) : Rig(subject, limited(subject)) {
    for (std::size_t i = 0; i < kBuffers; ++i) {
      buffers.push_back(numbers(kNumbers));
      std::fill_n(buffers.back().data<std::int64_t>(), kNumbers, static_cast<std::int64_t>(i));
    }
  }
  static const std::string& limited(const Subject& subject) {
    if (subject.small.empty()) throw std::runtime_error("its memory cannot be limited");
    return subject.small;
  }
  bool holds(std::size_t buffer, std::int64_t number) const {
    const auto* const found = buffers[buffer].data<std::int64_t>();
    return std::count(found, found + kNumbers, number) == kNumbers;
  }

  std::vector<Buffer> buffers;
};

CONFORMANCE_TEST(Capacity, WorkingSetLargerThanMemory_EvictsDirtyInstancesAndKeepsContents) {
  const Small rig(subject);
  for (const Buffer& buffer : rig.buffers) rig.stream.upload(buffer.all());
  for (int round = 0; round < 3; ++round) {
    for (const Buffer& buffer : rig.buffers) {
      rig.stream.compute(rig.kernels.add, {readwrite(buffer.all())}, {100});
    }
  }
  rig.stream.synchronize();
  EXPECT_LE(rig.domain.info().memory_used, rig.domain.info().memory_bytes);
  EXPECT_TRUE(rig.holds(3, 3)) << "the host's instance changed by itself";
  for (const Buffer& buffer : rig.buffers) rig.stream.download(buffer.all());
  rig.stream.synchronize();
  for (std::size_t i = 0; i < kBuffers; ++i) {
    EXPECT_TRUE(rig.holds(i, static_cast<std::int64_t>(i) + 300)) << "buffer " << i;
  }
  EXPECT_GT(rig.runtime.stats().bytes_evicted, 0u);
  EXPECT_EQ(rig.runtime.stats().bytes_h2d, kBuffers * kNumbers * sizeof(std::int64_t));
}

CONFORMANCE_TEST(Capacity, WorkingSetThatExactlyFits_IsNeverEvicted) {
  const Small rig(subject);
  for (int round = 0; round < 5; ++round) {
    for (std::size_t i = 0; i < 4; ++i) {
      rig.stream.compute(rig.kernels.add, {readwrite(rig.buffers[i].all())}, {1});
    }
  }
  rig.stream.synchronize();
  EXPECT_EQ(rig.domain.info().memory_used, rig.domain.info().memory_bytes);
  EXPECT_EQ(rig.runtime.stats().bytes_evicted, 0u);
}

CONFORMANCE_TEST(Capacity, BuffersAsLargeAsMemoryDestroyed_MemoryUsedReturnsToZero) {
  const Small rig(subject);
  for (std::size_t i = 0; i < kBuffers; ++i) {
    const Buffer buffer = rig.unaliased(32 << 10);
    rig.stream.upload(buffer.all());
  }
  rig.stream.synchronize();
  EXPECT_EQ(rig.domain.info().memory_used, 0u);
}

CONFORMANCE_TEST(Capacity, WorkingSetLargerThanMemoryOnFourStreams_ResultsAreCorrect) {
  const Small rig(subject);
  std::vector<Stream> streams;
  for (std::size_t i = 0; i < 4; ++i) streams.push_back(rig.place.stream());
  for (std::size_t i = 0; i < kBuffers; ++i) {
    const Stream& stream = streams[i % streams.size()];
    const Region all = rig.buffers[i].all();
    stream.upload(all);
    for (int j = 0; j < 4; ++j) stream.compute(rig.kernels.add, {readwrite(all)}, {1});
    stream.download(all);
  }
  rig.runtime.synchronize();
  for (std::size_t i = 0; i < kBuffers; ++i) {
    EXPECT_TRUE(rig.holds(i, static_cast<std::int64_t>(i) + 4)) << "buffer " << i;
  }
}

CONFORMANCE_TEST(Capacity, ActionLargerThanDeviceMemory_ReportsOutOfMemoryAndOthersRun) {
  const Small rig(subject);
  const Buffer panel = rig.unaliased(8 << 10, "panel"), note = rig.unaliased(100, "note");
  rig.stream.upload(note.all());
  rig.stream.upload(panel.all()).wait();
  std::vector<Operand> operands;
  for (std::size_t i = 0; i < 4; ++i) operands.push_back(read(rig.buffers[i].all()));
  operands.push_back(write(rig.buffers[4].all()));
  const Event event = rig.stream.compute(rig.kernels.gather, operands, {});
  rig.stream.upload(rig.buffers[6].all()).wait();
  EXPECT_EQ(status_of([&] { rig.stream.synchronize(); }), WEIR_STATUS_OUT_OF_MEMORY);
  const std::string message = event.info().message;
  EXPECT_NE(message.find("'" + rig.domain.name() + "'"), std::string::npos) << message;
  EXPECT_NE(message.find("40 KiB"), std::string::npos) << "does not say how much: " << message;
  EXPECT_NE(message.find("'panel' 8 KiB"), std::string::npos)
      << "nor the buffer that has it: " << message;
}

}  // namespace
}  // namespace weir::conformance
