// Structs as bytes on the wire between ranks of one build.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "base/error.hpp"

namespace weir::rt {

/// Returns the bytes of a struct, which must outlive the result.
template <class Fixed>
std::span<const std::byte> bytes_of(const Fixed& fixed) noexcept {
  static_assert(std::is_trivially_copyable_v<Fixed>);
  return std::as_bytes(std::span(&fixed, 1));
}

inline std::string as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Removes a struct from the front of received bytes. Throws Error{network_error} if they are too
/// short.
template <class Fixed>
Fixed cut_off(std::span<const std::byte>& rest) {
  Fixed fixed;
  if (rest.size() < sizeof fixed) {
    fail(WEIR_STATUS_NETWORK_ERROR, "{} bytes where there must be {}", rest.size(), sizeof fixed);
  }
  std::memcpy(&fixed, rest.data(), sizeof fixed);
  rest = rest.subspan(sizeof fixed);
  return fixed;
}

/// Returns an outcome as bytes: the status, then the message. Throws std::bad_alloc.
inline std::vector<std::byte> encode(const Outcome& outcome) {
  const auto status = static_cast<std::uint32_t>(outcome.status);
  std::vector<std::byte> bytes(sizeof status + outcome.message.size());
  std::memcpy(bytes.data(), &status, sizeof status);
  outcome.message.copy(reinterpret_cast<char*>(bytes.data() + sizeof status),
                       outcome.message.size());
  return bytes;
}
/// The inverse. Throws Error{network_error} if they are too short.
inline Outcome decode_outcome(std::span<const std::byte> bytes) {
  const auto status = static_cast<weir_status>(cut_off<std::uint32_t>(bytes));
  return {status, as_text(bytes)};
}

}  // namespace weir::rt
