// Messages as frames: what a transport carries of a message in one piece.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "net/transport.hpp"

namespace weir::rt {

/// Who a message is for. Each part of weir that talks over the fabric has one.
enum class Channel : std::uint8_t { control, collective, user, conveyor, grid, rank, share, watch };

inline constexpr std::size_t kChannels = 8;

/// Before the bytes of each frame.
struct FrameHeader {
  enum class Piece : std::uint8_t { whole, first, middle, last };

  Channel channel;
  Piece piece = Piece::whole;
  std::uint16_t unused = 0;
  std::uint32_t unused_too = 0;
  std::uint64_t bytes = 0;  ///< of the whole message
};

/// What there is to send of a message: two parts, behind bytes that are out already.
struct MessageRest {
  std::size_t before = 0;
  std::span<const std::byte> head, body = {};

  std::size_t size() const noexcept { return head.size() + body.size(); }
};

/// Sends the rest of a message from `sent` on, which moves with it, in frames whose bodies have
/// `most_bytes`. Returns whether all of it is out.
bool send_frames(Transport& transport, Rank to, Channel channel, const MessageRest& rest,
                 std::size_t most_bytes, std::size_t& sent);

/// Sends a message whose body is in reserved memory as one frame. Returns whether it is out.
bool send_reserved_frame(Transport& transport, Rank to, Channel channel,
                         const MessageRest& message);

/// Puts messages of one rank together again. Its memory stays for the next message, unless that was
/// a large one.
class MessageAssembly {
 public:
  /// Takes a frame; hands over the message that it ends, whose bytes are gone afterwards. Throws
  /// Error when it is no part of one.
  void add(std::span<const std::byte> frame,
           const std::function<void(Channel, std::span<const std::byte>)>& deliver);
  /// Forgets what there is of a message.
  void clear() noexcept;

 private:
  static constexpr std::size_t kKeptBytes = 1u << 20;      ///< for the next message
  static constexpr std::size_t kReservedBytes = 8u << 20;  ///< because a header says so

  void check(const FrameHeader& header, std::size_t bytes) const;

  std::vector<std::byte> partial_;
  std::uint64_t bytes_ = 0;  ///< of the message that is arriving; 0: none is
};

}  // namespace weir::rt
