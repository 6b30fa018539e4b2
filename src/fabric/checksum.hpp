// Checksums of packets and blocks.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace weir::rt {

/// Detects bytes that were changed, lost or moved by accident. The value depends on the bytes only,
/// not on how they are split into calls of add().
class Checksum {
 public:
  void add(std::span<const std::byte> bytes) noexcept {
    count_ += bytes.size();
    if (waiting_ > 0) {
      const std::size_t taken = std::min(sizeof(std::uint64_t) - waiting_, bytes.size());
      keep(bytes.first(taken));
      bytes = bytes.subspan(taken);
      if (waiting_ < sizeof(std::uint64_t)) return;
      mix(rest_.data());
      waiting_ = 0;
    }
    for (; bytes.size() >= sizeof(std::uint64_t); bytes = bytes.subspan(sizeof(std::uint64_t))) {
      mix(bytes.data());
    }
    keep(bytes);
  }

  std::uint64_t value() const noexcept {
    Checksum last = *this;
    std::fill(last.rest_.begin() + static_cast<std::ptrdiff_t>(waiting_), last.rest_.end(),
              std::byte{0});
    last.mix(last.rest_.data());
    return (last.state_ ^ count_) * kFactor;
  }

 private:
  static constexpr std::uint64_t kFactor = 0x9E3779B97F4A7C15u;

  void mix(const std::byte* at) noexcept {
    std::uint64_t word = 0;
    std::memcpy(&word, at, sizeof word);
    state_ = (state_ ^ word) * kFactor;
    state_ ^= state_ >> 32;
  }
  void keep(std::span<const std::byte> bytes) noexcept {
    if (!bytes.empty()) std::memcpy(&rest_[waiting_], bytes.data(), bytes.size());
    waiting_ += bytes.size();
  }

  std::uint64_t state_ = 0, count_ = 0;
  std::array<std::byte, sizeof(std::uint64_t)> rest_{};
  std::size_t waiting_ = 0;  ///< bytes of rest_ that are not mixed in
};

}  // namespace weir::rt
