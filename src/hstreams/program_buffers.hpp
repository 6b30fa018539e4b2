// The buffers of a program, by the addresses of its memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "hstreams/instance.hpp"

namespace weir::hs {

struct Buffer {
  std::byte* base;
  std::uint64_t bytes;
  HSTR_BUFFER_PROPS props;
  std::map<HSTR_LOG_DOM, std::shared_ptr<Instance>> instances;  ///< domain 0: the program's memory

  bool has(std::uint64_t flag) const noexcept { return (props.flags & flag) != 0; }
  /// Throws Error{NOT_FOUND}.
  const Instance& instance_in(HSTR_LOG_DOM domain) const;
};

/// An address in a buffer.
struct Location {
  Buffer* buffer;
  std::uint64_t offset;
};

/// The buffers of a program; no two overlap. A session guards them by its mutex.
class ProgramBuffers {
 public:
  /// Throws Error{NOT_FOUND} when no buffer has the address.
  Location find(const void* address);
  /// Refuses a range that overlaps a buffer: ALREADY_FOUND when it is inside one.
  void check_free(const std::byte* base, std::uint64_t bytes) const;
  Buffer& add(Buffer&& buffer);
  Buffer take(Buffer& buffer);

  auto begin() noexcept { return buffers_.begin(); }
  auto end() noexcept { return buffers_.end(); }

 private:
  std::map<const std::byte*, Buffer> buffers_;
};

}  // namespace weir::hs
