// The communication cache of paper 003, section 4.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace weir::cli::bench {

constexpr std::size_t kLineBytes = 64;
using Line = std::array<std::byte, kLineBytes>;

/// Which way of a set takes a line: the first that is free, or each in turn.
enum class Placement { first_free, round_robin };

/// Holds lines until they are sent together. A line belongs to the set that its number gives, and
/// replaces an earlier line of the same number. When its set has no free way, the way with most
/// lines in all sets is sent as one message, and is then free.
class CommunicationCache {
 public:
  /// Receives the numbers and the lines of one message.
  using Send = std::function<void(std::span<const std::uint64_t>, std::span<const Line>)>;

  CommunicationCache(std::size_t sets, std::size_t ways, Placement placement, Send send);

  void insert(std::uint64_t number, const Line& line);
  /// Sends each way that has lines.
  void flush();

 private:
  static constexpr std::uint64_t kFree = ~std::uint64_t{0};

  std::size_t index_of(std::size_t way, std::size_t set) const noexcept {
    return way * sets_ + set;
  }
  std::size_t free_way(std::size_t set);
  void send_way(std::size_t way);

  const std::size_t sets_, ways_;
  const Placement placement_;
  const Send send_;
  std::vector<std::uint64_t> numbers_;  ///< way after way
  std::vector<Line> lines_;
  std::vector<std::size_t> used_;  ///< places of each way
  std::vector<std::size_t> next_;  ///< way of each set that is tried first
  std::vector<std::uint64_t> sent_numbers_;
  std::vector<Line> sent_lines_;
};

}  // namespace weir::cli::bench
