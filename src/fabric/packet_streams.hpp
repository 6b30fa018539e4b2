// Packets between ranks: numbered, and with a header that the receiver checks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fabric/link.hpp"
#include "fabric/wire.hpp"

namespace weir::rt {

enum class PacketKind : std::uint8_t {
  hello,
  leave,
  heartbeat,
  frame,
  put,
  get,
  change,
  put_done,
  get_part,
  change_done,
  end,  ///< like leave, from a process that ends without having closed the fabric
  count
};

// What follows the header of the packets of one-sided operations.
struct PutPacket {
  std::uint64_t token, offset;
  std::uint32_t window, last;
};
struct GetPacket {
  std::uint64_t token, offset, bytes;
  std::uint32_t window, unused;
};
struct ChangePacket {
  std::uint64_t token, offset;
  std::int64_t operand, expected;
  std::uint32_t window, kind;
};
struct ReplyPacket {
  std::uint64_t token;
  std::uint64_t cursor;  ///< offset of the following bytes
  std::int64_t old;
  std::uint32_t status, unused;
};

struct PacketHeader {
  static constexpr std::uint32_t kMagic = 0x72696577;
  /// summed: a checksum follows the body
  enum class Format : std::uint8_t { plain = 1, summed = 2 };

  std::uint32_t magic = kMagic;
  Format format = Format::plain;
  PacketKind kind = PacketKind::heartbeat;
  std::uint16_t check = 0;
  std::uint32_t bytes = 0;     ///< after the header, without the checksum
  std::uint32_t sequence = 0;  ///< number of the packet from this rank to that one

  std::uint16_t expected_check() const noexcept;
  bool sound() const noexcept;
};

/// The packets to and from each rank: adds headers to those that are sent, and checks that none of
/// those that arrive is damaged, lost or repeated. By the holder of the progress lock.
class PacketStreams {
 public:
  /// With checksums this rank adds one to each packet; receivers check those that they find.
  PacketStreams(Link& link, bool sends_checksums);

  /// Returns the maximum size of a packet's body, including the struct in front.
  std::size_t body_bytes() const noexcept;
  bool sends_checksums() const noexcept { return sends_checksums_; }

  using LinkSend = bool (Link::*)(Rank, Parts) noexcept;
  /// Sends a packet whose body is a struct, if any, and then other parts. False: no room now.
  bool send(Rank to, PacketKind kind, std::span<const std::byte> first = {}, Parts others = {},
            LinkSend send = &Link::send) noexcept;
  template <class Fixed>
  bool send_struct(Rank to, PacketKind kind, const Fixed& fixed,
                   std::span<const std::byte> body = {}) noexcept {
    static_assert(sizeof fixed <= kLargestFixed);
    return send(to, kind, bytes_of(fixed), {&body, 1});
  }
  /// Checks a packet and reduces it to its body. Throws Error if it is not the rank's next one.
  PacketKind open(Rank from, std::span<const std::byte>& packet);

  // When the last packet was sent or received, by a clock that set_time() sets.
  std::int64_t time_ns() const noexcept { return time_ns_; }
  void set_time(std::int64_t now_ns) noexcept { time_ns_ = now_ns; }
  void begin_time(std::int64_t now_ns) noexcept {
    time_ns_ = now_ns;
    for (Stream& stream : streams_) stream.sent_ns = stream.received_ns = now_ns;
  }
  std::int64_t sent_ns(Rank to) const noexcept { return streams_[to].sent_ns; }
  std::int64_t received_ns(Rank from) const noexcept { return streams_[from].received_ns; }
  void excuse_silence(Rank from) noexcept { streams_[from].received_ns = time_ns_; }

 private:
  static constexpr std::size_t kLargestFixed = 40;

  struct Stream {
    std::uint32_t sent = 0, received = 0;  ///< packets
    std::int64_t sent_ns = 0, received_ns = 0;
  };

  Link& link_;
  const bool sends_checksums_;
  std::int64_t time_ns_ = 0;
  std::vector<Stream> streams_;  ///< by rank
};

}  // namespace weir::rt
