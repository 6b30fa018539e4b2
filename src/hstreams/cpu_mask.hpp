// Sets of hardware threads.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>

#include <hstreams/hStreams_types.h>

namespace weir::hs {

using CpuMask = std::bitset<1024>;

inline CpuMask read_mask(const std::uint64_t* words) {
  CpuMask mask;
  for (std::size_t bit = 0; bit < mask.size(); ++bit) mask[bit] = words[bit / 64] >> bit % 64 & 1;
  return mask;
}

/// Does nothing without a destination.
inline void write_mask(const CpuMask& mask, std::uint64_t* words) {
  if (words == nullptr) return;
  for (std::size_t word = 0; word < mask.size() / 64; ++word) words[word] = 0;
  for (std::size_t bit = 0; bit < mask.size(); ++bit) {
    words[bit / 64] |= std::uint64_t{mask[bit]} << bit % 64;
  }
}

/// The bits [first, first + count).
inline CpuMask mask_range(std::size_t first, std::size_t count) {
  CpuMask mask;
  for (std::size_t bit = first; bit < first + count; ++bit) mask.set(bit);
  return mask;
}

inline std::size_t first_of(const CpuMask& mask) {
  std::size_t bit = 0;
  while (bit < mask.size() && !mask[bit]) ++bit;
  return bit;
}

inline bool contains(const CpuMask& whole, const CpuMask& part) { return (part & ~whole).none(); }

}  // namespace weir::hs
