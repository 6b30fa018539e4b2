// The interface to which a transport reports.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/error.hpp"
#include "fabric/link.hpp"

namespace weir::rt {

/// Receives what Transport::progress() finds; called inside it only.
class TransportSink {
 public:
  /// A frame, in the order in which `from` sent its frames to this rank. The bytes are valid during
  /// the call only.
  virtual void arrived(Rank from, std::span<const std::byte> frame) noexcept = 0;
  /// An operation is complete: its bytes are in the target, or in `local`. `old` is the previous
  /// value of an atomic operation.
  virtual void completed(void* token, std::int64_t old, Outcome outcome) noexcept = 0;
  /// A rank has left or does not answer any more. Called once per rank; nothing of it follows, and
  /// operations in flight to it have been completed() as failed.
  virtual void lost(Rank rank, const std::string& why) noexcept = 0;

 protected:
  ~TransportSink() = default;
};

}  // namespace weir::rt
