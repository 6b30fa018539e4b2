#include "share/ideal_time.hpp"

#include <algorithm>
#include <vector>

namespace weir::rt {

/// Goes from the lost place that was busy longest to the shortest and adds each as busy all of the
/// time, until the work would end before that place was lost.
double ideal_ns(std::span<const PlaceWork> places) {
  double work = 0, speed = 0;  // of those that are at work until the end
  std::vector<PlaceWork> lost;
  for (const PlaceWork& place : places) {
    if (place.busy_ns <= 0) continue;
    if (place.lost) {
      lost.push_back(place);
      continue;
    }
    work += place.work;
    speed += place.work / place.busy_ns;
  }
  std::sort(lost.begin(), lost.end(),
            [](const PlaceWork& a, const PlaceWork& b) { return a.busy_ns > b.busy_ns; });
  double time = speed > 0 ? work / speed : 0;
  for (const PlaceWork& place : lost) {
    if (speed > 0 && place.busy_ns <= time) break;
    work += place.work;
    speed += place.work / place.busy_ns;
    time = speed > 0 ? work / speed : place.busy_ns;
  }
  return time;
}

}  // namespace weir::rt
