#include "fabric/message_frames.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

namespace weir::rt {
namespace {

using Piece = FrameHeader::Piece;

constexpr std::size_t kFrame = 64u << 10, kMiB = 1u << 20;

/// A message of one value, in frames.
class Sender {
 public:
  Sender(std::size_t bytes, std::byte value) : message_(bytes, value) {}

  /// Adds the next frame; records the message that it completes.
  void send(MessageAssembly& assembly, std::vector<std::byte>& spare) {
    const std::size_t bytes = std::min(kFrame, message_.size() - sent_);
    const bool last = sent_ + bytes == message_.size();
    const FrameHeader header{Channel::user,
                             sent_ == 0 ? Piece::first
                             : last     ? Piece::last
                                        : Piece::middle,
                             0, 0, message_.size()};
    std::vector<std::byte> frame(sizeof header + bytes);
    std::memcpy(frame.data(), &header, sizeof header);
    std::copy_n(message_.begin() + static_cast<std::ptrdiff_t>(sent_), bytes,
                frame.begin() + sizeof header);
    sent_ += bytes;
    assembly.add(frame, spare, [&](Channel, std::span<const std::byte> message) {
      memory_ = message.data();
      arrived_ = std::equal(message.begin(), message.end(), message_.begin(), message_.end());
    });
  }
  void send_all(MessageAssembly& assembly, std::vector<std::byte>& spare) {
    while (sent_ < message_.size()) send(assembly, spare);
  }

  bool has_arrived() const { return arrived_; }
  /// The memory in which the message arrived.
  const std::byte* memory() const { return memory_; }

 private:
  const std::vector<std::byte> message_;
  std::size_t sent_ = 0;
  bool arrived_ = false;
  const std::byte* memory_ = nullptr;
};

TEST(MessageAssembly, LargeMessagesOfSeveralRanks_UseTheSameMemory) {
  std::vector<std::byte> spare;
  MessageAssembly one, other;
  Sender first(4 * kMiB, std::byte{1}), second(4 * kMiB, std::byte{2}),
      third(3 * kMiB, std::byte{3});
  first.send_all(one, spare);
  second.send_all(other, spare);
  third.send_all(one, spare);
  EXPECT_TRUE(first.has_arrived() && second.has_arrived() && third.has_arrived());
  EXPECT_EQ(second.memory(), first.memory());
  EXPECT_EQ(third.memory(), first.memory());
}

TEST(MessageAssembly, InterleavedLargeMessages_ArriveUnmixed) {
  std::vector<std::byte> spare;
  MessageAssembly one, other;
  for (const std::size_t bytes : {2 * kMiB, 5 * kMiB, 3 * kMiB}) {
    Sender first(bytes, std::byte{1}), second(bytes, std::byte{2});
    for (std::size_t sent = 0; sent < bytes; sent += kFrame) {
      first.send(one, spare);
      second.send(other, spare);
    }
    EXPECT_TRUE(first.has_arrived());
    EXPECT_TRUE(second.has_arrived());
    EXPECT_TRUE(spare.empty());
  }
}

TEST(MessageAssembly, SmallMessage_KeepsTheMemoryOfItsRank) {
  std::vector<std::byte> spare;
  MessageAssembly assembly;
  Sender first(3 * kFrame, std::byte{1}), second(2 * kFrame, std::byte{2});
  first.send_all(assembly, spare);
  second.send_all(assembly, spare);
  EXPECT_TRUE(second.has_arrived());
  EXPECT_EQ(second.memory(), first.memory());
  EXPECT_EQ(spare.capacity(), 0u);
}

TEST(MessageAssembly, MessageOf17MiB_IsNotKept) {
  std::vector<std::byte> spare;
  MessageAssembly assembly;
  Sender large(17 * kMiB, std::byte{1});
  large.send_all(assembly, spare);
  EXPECT_TRUE(large.has_arrived());
  EXPECT_EQ(spare.capacity(), 0u);
}

}  // namespace
}  // namespace weir::rt
