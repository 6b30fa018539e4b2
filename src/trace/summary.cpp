#include "trace/summary.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "trace/entry.hpp"
#include "trace/graph.hpp"

namespace weir::rt::trace {

namespace {

double seconds(std::int64_t ns) noexcept { return static_cast<double>(ns) / 1e9; }

std::int64_t measured_ns(const std::vector<Entry>& entries) noexcept {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  std::int64_t last = std::numeric_limits<std::int64_t>::min();
  for (const Entry& entry : entries) {
    first = std::min(first, entry.enqueued);
    last = std::max(last, entry.ended);
  }
  return last > first ? last - first : 0;
}

std::int64_t total_ns(const std::vector<Entry>& entries, Kind kind) noexcept {
  std::int64_t total = 0;
  for (const Entry& entry : entries) total += entry.kind == kind ? duration(entry) : 0;
  return total;
}

/// Length of a union of intervals.
class Cover {
 public:
  /// Intervals come in the order of their begins.
  void add(std::int64_t begin, std::int64_t end) noexcept {
    length_ += std::max<std::int64_t>(0, end - std::max(begin, reach_));
    reach_ = std::max(reach_, end);
  }
  std::int64_t length() const noexcept { return length_; }

 private:
  std::int64_t length_ = 0;
  std::int64_t reach_ = std::numeric_limits<std::int64_t>::min();
};

/// The times during which a resource was occupied.
struct Occupation {
  explicit Occupation(const Recording& recording);

  std::int64_t hidden_ns() const noexcept {
    return compute.length() + transfer.length() - either.length();
  }

  std::vector<Cover> tracks;
  Cover compute, transfer, either;
};

Occupation::Occupation(const Recording& recording) : tracks(recording.tracks.size()) {
  struct Interval {
    std::int64_t begin, end;
    std::uint32_t track;
    Kind kind;
  };
  std::vector<Interval> intervals;
  intervals.reserve(recording.entries.size());
  for (const Entry& entry : recording.entries) {
    if (entry.kind == Kind::sync || duration(entry) == 0) continue;
    intervals.push_back({entry.started, entry.ended, entry.track, entry.kind});
  }
  std::sort(intervals.begin(), intervals.end(),
            [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
  for (const auto& [begin, end, track, kind] : intervals) {
    tracks[track].add(begin, end);
    (kind == Kind::compute ? compute : transfer).add(begin, end);
    either.add(begin, end);
  }
}

struct Busiest {
  std::string name;
  std::int64_t ns = 0;
};

Busiest busiest(const Recording& recording, const Occupation& occupation, Kind kind) {
  Busiest found;
  for (std::size_t track = 0; track < recording.tracks.size(); ++track) {
    const std::int64_t ns = occupation.tracks[track].length();
    if (recording.tracks[track].kind == kind && ns > found.ns) {
      found = {recording.tracks[track].name, ns};
    }
  }
  return found;
}

double idle_share(const Recording& recording, std::int64_t measured) {
  constexpr std::int64_t kUnused = -1;
  std::vector<std::int64_t> busy(recording.tracks.size(), kUnused);
  for (const Entry& entry : recording.entries) {
    if (entry.kind != Kind::compute) continue;
    std::int64_t& sum = busy[entry.track];
    sum = std::max<std::int64_t>(0, sum) + entry.cores * duration(entry);
  }
  double idle = 0, all = 0;
  for (std::size_t track = 0; track < busy.size(); ++track) {
    if (busy[track] == kUnused) continue;
    // A device may run more actions at once than it has cores, or not report its cores.
    const std::uint32_t cores = std::max(1u, recording.tracks[track].width);
    const double capacity = cores * seconds(measured);
    idle += std::max(0.0, capacity - seconds(busy[track]));
    all += capacity;
  }
  return all > 0 ? idle / all : 0;
}

std::int64_t critical_path_ns(const Recording& recording) {
  const Graph graph(recording);
  std::vector<std::int64_t> paths(recording.entries.size());
  std::int64_t longest = 0;
  for (const std::uint32_t position : graph.order()) {
    std::int64_t before = 0;
    for (const std::uint32_t number : graph.arriving(position)) {
      before = std::max(before, paths[graph.arrows()[number].earlier]);
    }
    paths[position] = before + duration(recording.entries[position]);
    longest = std::max(longest, paths[position]);
  }
  return longest;
}

}  // namespace

Summary summarize(const Recording& recording) {
  const std::int64_t measured = measured_ns(recording.entries);
  const Occupation occupation(recording);
  const Busiest place = busiest(recording, occupation, Kind::compute);
  const Busiest link = busiest(recording, occupation, Kind::transfer);
  const std::int64_t ideal = std::max(place.ns, link.ns);
  return {.actions = recording.entries.size(),
          .dropped = recording.dropped,
          .measured_s = seconds(measured),
          .compute_s = seconds(total_ns(recording.entries, Kind::compute)),
          .transfer_s = seconds(total_ns(recording.entries, Kind::transfer)),
          .busiest_place_s = seconds(place.ns),
          .busiest_link_s = seconds(link.ns),
          .ideal_s = seconds(ideal),
          .overlap_ratio = ideal > 0 ? seconds(measured) / seconds(ideal) : 0,
          .hidden_s = seconds(occupation.hidden_ns()),
          .idle_share = idle_share(recording, measured),
          .critical_path_s = seconds(critical_path_ns(recording)),
          .busiest_place = place.name,
          .busiest_link = link.name};
}

}  // namespace weir::rt::trace
