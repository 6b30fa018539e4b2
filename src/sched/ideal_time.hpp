// The time that the work of a share takes at best.
#pragma once

#include <span>

namespace weir::rt {

/// What one place did of a share.
struct PlaceWork {
  double work = 0, busy_ns = 0;  ///< no time: it has no speed
  bool lost = false;
};

/// Returns how long the places take, each at its speed and without a break, for what they did
/// together. One that was lost does no more than it did: the others do the rest.
double ideal_ns(std::span<const PlaceWork> places);

}  // namespace weir::rt
