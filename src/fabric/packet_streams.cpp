#include "fabric/packet_streams.hpp"

#include <array>
#include <cassert>
#include <cstring>

#include "fabric/checksum.hpp"

namespace weir::rt {

namespace {

/// Returns the checksum of a packet's body, which may be in several parts.
std::uint64_t checksum(std::span<const std::byte> first, Parts others) noexcept {
  Checksum sum;
  sum.add(first);
  for (const auto& other : others) sum.add(other);
  return sum.value();
}

/// Removes the checksum at the end of a packet. Throws Error if it does not match.
void cut_off_checksum(std::span<const std::byte>& bytes) {
  std::uint64_t sent = 0;
  if (bytes.size() < sizeof sent) fail(WEIR_STATUS_NETWORK_ERROR, "its checksum is missing");
  std::memcpy(&sent, bytes.last(sizeof sent).data(), sizeof sent);
  bytes = bytes.first(bytes.size() - sizeof sent);
  if (checksum(bytes, {}) != sent) {
    fail(WEIR_STATUS_NETWORK_ERROR, "its {} bytes have another checksum than those that were sent",
         bytes.size());
  }
}

}  // namespace

std::uint16_t PacketHeader::expected_check() const noexcept {
  std::uint64_t mix = bytes * 0x9E3779B97F4A7C15u ^ sequence * 0xC2B2AE3D27D4EB4Fu;
  mix = (mix ^ magic ^ static_cast<std::uint64_t>(format) << 40 ^
         static_cast<std::uint64_t>(kind) << 32) *
        0x165667B19E3779F9u;
  return static_cast<std::uint16_t>(mix >> 48);
}

bool PacketHeader::sound() const noexcept {
  return magic == kMagic && (format == Format::plain || format == Format::summed) &&
         check == expected_check() && kind < PacketKind::count;
}

PacketStreams::PacketStreams(Link& link, bool sends_checksums)
    : link_(link), sends_checksums_(sends_checksums), streams_(link.info().ranks) {}

std::size_t PacketStreams::body_bytes() const noexcept {
  return link_.info().packet_bytes - sizeof(PacketHeader) - sizeof(std::uint64_t);
}

bool PacketStreams::send(Rank to, PacketKind kind, std::span<const std::byte> first, Parts others,
                         LinkSend send) noexcept {
  assert(to != link_.info().rank);
  Stream& stream = streams_[to];
  std::array<std::byte, sizeof(PacketHeader) + kLargestFixed> front;
  std::array<std::span<const std::byte>, 6> parts;
  PacketHeader header;
  header.kind = kind;
  header.sequence = stream.sent;
  header.format = sends_checksums_ ? PacketHeader::Format::summed : PacketHeader::Format::plain;
  std::size_t bytes = first.size(), count = 1;
  for (const auto& other : others) {
    bytes += other.size();
    parts[count++] = other;
  }
  header.bytes = static_cast<std::uint32_t>(bytes);
  header.check = header.expected_check();
  std::memcpy(front.data(), &header, sizeof header);
  if (!first.empty()) std::memcpy(front.data() + sizeof header, first.data(), first.size());
  parts[0] = std::span(front).first(sizeof header + first.size());
  std::uint64_t sum = 0;
  if (sends_checksums_) {
    sum = checksum(first, others);
    parts[count++] = bytes_of(sum);
  }
  if (!(link_.*send)(to, std::span(parts).first(count))) return false;
  ++stream.sent;
  stream.sent_ns = time_ns_;
  return true;
}

PacketKind PacketStreams::open(Rank from, std::span<const std::byte>& packet) {
  Stream& stream = streams_[from];
  const auto header = cut_off<PacketHeader>(packet);
  if (!header.sound()) fail(WEIR_STATUS_NETWORK_ERROR, "its header is not one of weir's");
  if (header.format == PacketHeader::Format::summed) cut_off_checksum(packet);
  if (header.bytes != packet.size()) {
    fail(WEIR_STATUS_NETWORK_ERROR, "it has {} bytes where its header says {}", packet.size(),
         header.bytes);
  }
  if (header.sequence != stream.received++) {
    fail(WEIR_STATUS_NETWORK_ERROR, "it is packet {} where {} was due", header.sequence,
         stream.received - 1);
  }
  stream.received_ns = time_ns_;
  return header.kind;
}

}  // namespace weir::rt
