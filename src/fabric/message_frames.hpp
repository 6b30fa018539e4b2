// Splits messages into frames and reassembles them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "fabric/transport.hpp"

namespace weir::rt {

/// The subsystem that a message belongs to.
enum class Channel : std::uint8_t {
  control,
  collective,
  user,
  conveyor,
  grid,
  rank,
  share,
  watch,
  communicator,
  message,
};

inline constexpr std::size_t kChannels = 10;

/// Precedes the bytes of each frame.
struct FrameHeader {
  enum class Piece : std::uint8_t { whole, first, middle, last };

  Channel channel;
  Piece piece = Piece::whole;
  std::uint16_t unused = 0;
  std::uint32_t unused_too = 0;
  std::uint64_t bytes = 0;  ///< of the whole message
};

/// The unsent remainder of a message: two parts, which follow `before` bytes that have been sent.
struct MessageRest {
  std::size_t before = 0;
  std::span<const std::byte> head, body = {};

  std::size_t size() const noexcept { return head.size() + body.size(); }
};

/// Sends the remainder from offset `sent` on, which it advances, in frames with at most
/// `most_bytes` of the message each. Returns whether the whole message has been sent.
bool send_frames(Transport& transport, Rank to, Channel channel, const MessageRest& rest,
                 std::size_t most_bytes, std::size_t& sent);

/// Sends a message whose body is in reserved memory as one frame. Returns whether it was sent.
bool send_reserved_frame(Transport& transport, Rank to, Channel channel,
                         const MessageRest& message);

/// Reassembles the messages of one rank. Keeps its memory for the next message, unless it is large.
class MessageAssembly {
 public:
  /// Adds a frame and delivers the message that it completes; the bytes are valid during the call
  /// of deliver() only. `spare` is memory for a large message, which all assemblies of a port share
  /// so that few large messages allocate. Throws Error if the frame does not continue the message.
  void add(std::span<const std::byte> frame, std::vector<std::byte>& spare,
           const std::function<void(Channel, std::span<const std::byte>)>& deliver);
  /// Discards a partial message.
  void clear() noexcept;

 private:
  static constexpr std::size_t kKeptBytes = 1u << 20;    ///< kept for the next message
  static constexpr std::size_t kSpareBytes = 16u << 20;  ///< likewise in the shared memory
  /// Maximum to reserve because of a header alone.
  static constexpr std::size_t kReservedBytes = 8u << 20;

  void check(const FrameHeader& header, std::size_t bytes) const;

  std::vector<std::byte> partial_;
  std::uint64_t bytes_ = 0;  ///< of the incomplete message; 0: there is none
};

}  // namespace weir::rt
