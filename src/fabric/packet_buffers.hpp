// Buffers of packets for links whose network library reads and writes memory of the process.
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

/// A reserved packet in its buffer: where it begins, and its size.
struct ReservedPacket {
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
  static ReservedPacket join_reserved(Parts parts) noexcept {
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

}  // namespace weir::rt
