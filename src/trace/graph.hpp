// The dependence graph of a recording, by position instead of id.
#pragma once

#include <cstdint>
#include <ranges>
#include <span>
#include <vector>

#include "trace/recording.hpp"

namespace weir::rt::trace {

/// One dependence. Its ends are positions in Recording::entries.
struct Arrow {
  std::uint32_t earlier = 0, later = 0;
};

/// The dependences of a recording that have both ends in it. Takes linear time, except for one sort
/// of the ids.
class Graph {
 public:
  /// Reads the recording and does not keep it. Throws std::bad_alloc.
  explicit Graph(const Recording& recording);

  /// Returns all arrows. The number of an arrow is its index here.
  const std::vector<Arrow>& arrows() const noexcept { return arrows_; }
  /// Returns the numbers of the arrows into an entry.
  auto arriving(std::uint32_t position) const noexcept {
    return std::views::iota(first_arriving_[position], first_arriving_[position + 1]);
  }
  /// Returns the numbers of the arrows out of an entry.
  std::span<const std::uint32_t> leaving(std::uint32_t position) const noexcept {
    return {leaving_.data() + first_leaving_[position],
            leaving_.data() + first_leaving_[position + 1]};
  }
  /// Returns all positions in topological order. Positions on a cycle, which only a damaged
  /// recording has, come last.
  const std::vector<std::uint32_t>& order() const noexcept { return order_; }

 private:
  void find_arrows(const Recording& recording);
  void find_leaving(std::size_t entries);
  void find_order(std::size_t entries);

  std::vector<Arrow> arrows_;  ///< ascending by `later`
  std::vector<std::uint32_t> first_arriving_, first_leaving_, leaving_, order_;
};

}  // namespace weir::rt::trace
