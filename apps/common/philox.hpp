// Random numbers that depend only on their index and seed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace weir::apps {

using PhiloxBlock = std::array<std::uint64_t, 4>;

/// A block of Philox4x64-10, of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3".
inline PhiloxBlock philox(PhiloxBlock counter, std::array<std::uint64_t, 2> key) noexcept {
  __extension__ using Product = unsigned __int128;
  for (int round = 0; round < 10; ++round) {
    const Product first = Product{0xD2E7470EE14C6C93} * counter[0];
    const Product second = Product{0xCA5A826395121157} * counter[2];
    counter = {static_cast<std::uint64_t>(second >> 64) ^ counter[1] ^ key[0],
               static_cast<std::uint64_t>(second),
               static_cast<std::uint64_t>(first >> 64) ^ counter[3] ^ key[1],
               static_cast<std::uint64_t>(first)};
    key[0] += 0x9E3779B97F4A7C15;
    key[1] += 0xBB67AE8584CAA73B;
  }
  return counter;
}

/// From [0, 1).
inline double uniform(std::uint64_t word) noexcept {
  return static_cast<double>(word >> 11) * 0x1p-53;
}

}  // namespace weir::apps
