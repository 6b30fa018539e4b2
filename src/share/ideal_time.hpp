// The shortest possible time for the work of a share.
#pragma once

#include <span>

namespace weir::rt {

/// The work of one place in a share.
struct PlaceWork {
  double work = 0, busy_ns = 0;  ///< 0: the place has no speed
  bool lost = false;
};

/// Returns the time in nanoseconds that the places need for all their work, each at its speed and
/// never idle. A lost place does no more than it did: the others do the rest.
double ideal_ns(std::span<const PlaceWork> places);

}  // namespace weir::rt
