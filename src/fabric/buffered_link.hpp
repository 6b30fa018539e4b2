// What links have in common whose network library reads and writes memory of the process.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "base/threads.hpp"
#include "fabric/link.hpp"

namespace weir::rt {

/// Maximum for reserve() of these links: a block of a conveyor.
inline constexpr std::size_t kBufferReservedBytes = 676u << 10;
inline constexpr std::size_t kPacketBufferBytes = kReservedFront + kBufferReservedBytes;
static_assert(kPacketBufferBytes >= kLinkPacketBytes);

struct FreePacketBuffer {
  void operator()(std::byte* memory) const noexcept { std::free(memory); }
};
/// Memory for any packet, kPacketBufferBytes long. The system allocates its pages when packets
/// touch them.
using PacketBuffer = std::unique_ptr<std::byte, FreePacketBuffer>;

/// Throws std::bad_alloc.
inline PacketBuffer new_packet_buffer() {
  PacketBuffer buffer(static_cast<std::byte*>(std::aligned_alloc(64, kPacketBufferBytes)));
  if (buffer == nullptr) throw std::bad_alloc();
  return buffer;
}

/// Copies parts of a packet one after the other. Returns the number of bytes.
inline std::size_t join_parts(Parts parts, std::byte* to) noexcept {
  std::size_t bytes = 0;
  for (const auto& part : parts) {
    if (!part.empty()) std::memcpy(to + bytes, part.data(), part.size());
    bytes += part.size();
  }
  return bytes;
}

/// A packet in its buffer: where it begins, and its size.
struct BufferedPacket {
  PacketBuffer buffer;
  std::size_t first, bytes;
};

/// Unused buffers of a link, and those that it has reserved for its caller. Any thread.
class PacketBuffers {
 public:
  explicit PacketBuffers(std::size_t most) { unused_.reserve(most); }

  /// Returns the most recently used buffer or a new one; null if there is no memory.
  PacketBuffer take() noexcept {
    {
      const sys::Lock lock(mutex_);
      if (!unused_.empty()) {
        PacketBuffer buffer = std::move(unused_.back());
        unused_.pop_back();
        return buffer;
      }
    }
    try {
      return new_packet_buffer();
    } catch (...) {
      return nullptr;
    }
  }

  void recycle(PacketBuffer buffer) noexcept {
    const sys::Lock lock(mutex_);
    if (buffer != nullptr && unused_.size() < unused_.capacity()) {
      unused_.push_back(std::move(buffer));
    }
  }

  /// For Link::reserve().
  std::byte* reserve(std::size_t bytes) noexcept {
    if (bytes > kBufferReservedBytes) return nullptr;
    std::byte* const memory = take().release();
    return memory == nullptr ? nullptr : memory + kReservedFront;
  }
  void unreserve(std::byte* memory) noexcept { recycle(PacketBuffer(memory - kReservedFront)); }

  /// Writes the other parts before the reserved memory, which is the last part.
  static BufferedPacket join_reserved(Parts parts) noexcept {
    const auto body = parts.back();
    const Parts others = parts.first(parts.size() - 1);
    std::byte* const memory = const_cast<std::byte*>(body.data());
    std::size_t front = 0;
    for (const auto& part : others) front += part.size();
    join_parts(others, memory - front);
    return {PacketBuffer(memory - kReservedFront), kReservedFront - front, front + body.size()};
  }

 private:
  sys::Mutex mutex_;
  std::vector<PacketBuffer> unused_ WEIR_GUARDED_BY(mutex_);  ///< at most its capacity
};

/// Sends packets from buffers, which return when the network library has read them. `Base` is Link
/// or an interface derived from it.
template <class Base>
class BufferedLink : public Base {
 public:
  bool send(Rank to, Parts parts) noexcept final {
    if (!is_reachable(to)) return true;
    if (!has_room(to)) return false;
    PacketBuffer buffer = buffers_.take();
    if (buffer == nullptr) return false;
    const std::size_t bytes = join_parts(parts, buffer.get());
    start_send(to, {std::move(buffer), 0, bytes});
    return true;
  }

  std::byte* reserve(Rank, std::size_t bytes) noexcept final { return buffers_.reserve(bytes); }
  void unreserve(std::byte* memory) noexcept final { buffers_.unreserve(memory); }

  bool send_reserved(Rank to, Parts parts) noexcept final {
    if (!is_reachable(to)) {
      unreserve(const_cast<std::byte*>(parts.back().data()));
      return true;
    }
    if (!has_room(to)) return false;
    start_send(to, PacketBuffers::join_reserved(parts));
    return true;
  }

 protected:
  /// `sends`: maximum in flight.
  explicit BufferedLink(std::size_t sends) : buffers_(sends) {}

  virtual bool is_reachable(Rank rank) const noexcept = 0;
  /// Returns whether a send to a rank can start now; may make progress.
  virtual bool has_room(Rank to) noexcept = 0;
  /// Only to a reachable rank for which there is room. Recycles the buffer at the end of the send.
  virtual void start_send(Rank to, BufferedPacket packet) noexcept = 0;

  PacketBuffers buffers_;
};

}  // namespace weir::rt
