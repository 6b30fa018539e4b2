// Which recorded calls depend on which.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/call_list.hpp"

namespace weir::rt {

/// For each call of a list the earlier calls with a conflicting access: to an overlapping region
/// that one of both writes. Pairs that others imply may be missing.
class Dependences {
 public:
  /// Throws std::bad_alloc.
  explicit Dependences(const CallList& list);

  /// Returns the calls that a call depends on, in ascending order.
  std::span<const std::uint32_t> of(std::size_t call) const noexcept {
    return {earlier_.data() + first_[call], earlier_.data() + first_[call + 1]};
  }
  std::size_t count() const noexcept { return earlier_.size(); }

 private:
  std::vector<std::size_t> first_;  ///< by call, plus the end
  std::vector<std::uint32_t> earlier_;
};

}  // namespace weir::rt
