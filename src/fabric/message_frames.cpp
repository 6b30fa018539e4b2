#include "fabric/message_frames.hpp"

#include <algorithm>
#include <array>

#include "fabric/wire.hpp"

namespace weir::rt {

namespace {

using FramePiece = FrameHeader::Piece;

FramePiece piece_of(bool first, bool last) noexcept {
  if (first) return last ? FramePiece::whole : FramePiece::first;
  return last ? FramePiece::last : FramePiece::middle;
}

/// Returns the bytes [begin, begin + bytes) of a part, as far as it has them.
std::span<const std::byte> subspan_of(std::span<const std::byte> part, std::size_t begin,
                                      std::size_t bytes) noexcept {
  if (begin >= part.size()) return {};
  return part.subspan(begin, std::min(bytes, part.size() - begin));
}

}  // namespace

bool send_frames(Transport& transport, Rank to, Channel channel, const MessageRest& rest,
                 std::size_t most_bytes, std::size_t& sent) {
  do {
    const std::size_t bytes = std::min(rest.size() - sent, most_bytes);
    const FramePiece piece = piece_of(rest.before + sent == 0, sent + bytes == rest.size());
    const FrameHeader header{channel, piece, 0, 0, rest.before + rest.size()};
    const auto head = subspan_of(rest.head, sent, bytes);
    const std::size_t past = std::max(sent, rest.head.size()) - rest.head.size();
    const std::array<std::span<const std::byte>, 3> parts = {
        bytes_of(header), head, subspan_of(rest.body, past, bytes - head.size())};
    if (!transport.send(to, parts)) return false;
    sent += bytes;
  } while (sent < rest.size());
  return true;
}

bool send_reserved_frame(Transport& transport, Rank to, Channel channel,
                         const MessageRest& message) {
  const FrameHeader header{channel, FramePiece::whole, 0, 0, message.size()};
  const std::array<std::span<const std::byte>, 3> parts = {bytes_of(header), message.head,
                                                           message.body};
  return transport.send_reserved(to, parts);
}

void MessageAssembly::check(const FrameHeader& header, std::size_t bytes) const {
  if (static_cast<std::size_t>(header.channel) >= kChannels) {
    fail(WEIR_STATUS_NETWORK_ERROR, "there is no channel {}",
         static_cast<unsigned>(header.channel));
  }
  const bool begins = header.piece == FramePiece::whole || header.piece == FramePiece::first;
  const bool ends = header.piece == FramePiece::whole || header.piece == FramePiece::last;
  const std::uint64_t missing = header.bytes - partial_.size();
  if (header.piece > FramePiece::last || begins != (bytes_ == 0) ||
      (!begins && header.bytes != bytes_) || bytes > missing || (ends && bytes != missing)) {
    fail(WEIR_STATUS_NETWORK_ERROR, "it is not part of a message of {} bytes", header.bytes);
  }
}

void MessageAssembly::add(std::span<const std::byte> frame, std::vector<std::byte>& spare,
                          const std::function<void(Channel, std::span<const std::byte>)>& deliver) {
  const auto header = cut_off<FrameHeader>(frame);
  check(header, frame.size());
  if (header.piece == FramePiece::whole) return deliver(header.channel, frame);
  if (header.piece == FramePiece::first) {
    if (header.bytes > partial_.capacity() && spare.capacity() > partial_.capacity()) {
      partial_.swap(spare);
    }
    partial_.reserve(std::min<std::uint64_t>(header.bytes, kReservedBytes));
  }
  bytes_ = header.bytes;
  partial_.insert(partial_.end(), frame.begin(), frame.end());
  if (header.piece != FramePiece::last) return;
  deliver(header.channel, partial_);
  partial_.clear();
  if (partial_.capacity() > std::max(kKeptBytes, spare.capacity()) &&
      partial_.capacity() <= kSpareBytes) {
    partial_.swap(spare);
  }
  clear();
}

void MessageAssembly::clear() noexcept {
  bytes_ = 0;
  partial_.clear();
  if (partial_.capacity() > kKeptBytes) std::vector<std::byte>().swap(partial_);
}

}  // namespace weir::rt
