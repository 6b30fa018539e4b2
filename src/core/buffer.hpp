// Buffers and their instances.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <weir/buffer.h>

#include "backend/backend.hpp"
#include "base/handle.hpp"
#include "base/plain.hpp"
#include "base/threads.hpp"

namespace weir::rt {

class Context;

/// Index of host memory among the memories of a runtime.
inline constexpr std::uint16_t kHostMemory = 0;
/// Maximum number of memories of a runtime: host memory and one for each domain with its own.
inline constexpr std::size_t kMaxMemories = 64;

/// The copy of a buffer in one domain's memory. The domain's Residency manages it under its lock.
struct Instance {
  enum class State : std::uint8_t {
    absent,    ///< never used in this memory
    resident,  ///< in the domain's memory
    evicting,  ///< being copied to `evicted`
    evicted,   ///< only in `evicted`
    restoring  ///< being copied back from `evicted`
  };

  Memory memory;
  std::unique_ptr<std::byte[]> evicted;
  sys::Plain<std::uint64_t> last_use = 0;
  std::uint32_t users = 0;  ///< number of started actions that use it
  State state = State::absent;
  bool dirty = false;  ///< differs from `evicted`
};

/// A named range of bytes. Immutable after creation except for its instances.
class Buffer {
 public:
  /// `owner` is the runtime of the buffer, which manages its memory.
  Buffer(Context* owner, std::uint64_t id, std::string name, void* address, std::size_t bytes,
         bool aliases)
      : id_(id),
        address_(static_cast<std::byte*>(address)),
        bytes_(bytes),
        owner_(owner),
        aliases_(aliases),
        name_(std::move(name)) {}
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();

  /// Returns the id, which no other buffer of the runtime ever has, unlike the address of the
  /// object.
  std::uint64_t id() const noexcept { return id_; }
  const std::string& name() const noexcept { return name_; }
  Context* owner() const noexcept { return owner_; }
  std::byte* host_address() const noexcept { return address_; }
  std::size_t bytes() const noexcept { return bytes_; }
  /// Whether domains that can alias host memory do so for this buffer.
  bool aliases() const noexcept { return aliases_; }

  /// Returns the instance in a memory, created as `absent` on first use. Throws std::bad_alloc.
  Instance& instance(std::uint16_t memory);
  /// Returns the instance in a memory, nullptr if it was not created.
  Instance* find_instance(std::uint16_t memory) const noexcept {
    return instances_[memory].load(std::memory_order_acquire);
  }

  /// Returns the address in a memory. The instance must be resident and in use.
  std::byte* address_in(std::uint16_t memory) const noexcept {
    if (memory == kHostMemory) return address_;
    return static_cast<std::byte*>(find_instance(memory)->memory.address);
  }

  /// Records that a stream uses the buffer, so that destroying the buffer waits for that stream.
  void note_use(std::uint64_t stream_serial) noexcept {
    const std::uint64_t bit = std::uint64_t{1} << (stream_serial % 64);
    if ((users_.load(std::memory_order_relaxed) & bit) == 0) {
      users_.fetch_or(bit, std::memory_order_relaxed);
    }
  }
  /// Whether the stream may have used the buffer. May return true for a stream that has not.
  bool maybe_used_by(std::uint64_t stream_serial) const noexcept {
    return (users_.load(std::memory_order_relaxed) >> (stream_serial % 64) & 1) != 0;
  }

 private:
  // First the fields that enqueueing reads.
  const std::uint64_t id_;
  std::byte* const address_;
  const std::size_t bytes_;
  Context* const owner_;
  sys::Atomic<std::uint64_t> users_{0};
  const bool aliases_;
  const std::string name_;
  std::array<sys::Atomic<Instance*>, kMaxMemories> instances_{};
};

}  // namespace weir::rt

/// The public handle.
struct weir_buffer final : weir::rt::Handle<weir_buffer>, weir::rt::Buffer {
  static constexpr const char* kNoun = "buffer";
  using Buffer::Buffer;
};
