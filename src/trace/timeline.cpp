#include "trace/timeline.hpp"

#include <algorithm>
#include <compare>
#include <functional>
#include <limits>
#include <map>
#include <queue>
#include <tuple>

#include <fmt/format.h>

#include "trace/entry.hpp"

namespace weir::rt::trace {

namespace {

/// Names a row and sorts it among the rows of its process.
struct Key {
  std::uint32_t process;
  Kind kind;
  std::uint32_t track;
  std::uint16_t core;

  auto operator<=>(const Key&) const = default;
};

bool never_ran(const Entry& entry) noexcept {
  return duration(entry) == 0 && entry.status != WEIR_STATUS_OK;
}

Key key_of(const Entry& entry, const std::vector<std::uint32_t>& process_of) {
  const std::uint32_t process = entry.track < process_of.size() ? process_of[entry.track] : 0;
  if (entry.kind == Kind::sync || never_ran(entry)) return {process, Kind::sync, 0, 0};
  if (entry.kind == Kind::transfer) return {process, Kind::transfer, entry.track, 0};
  return {process, Kind::compute, entry.track, entry.core};
}

std::string name_of(const Key& key, std::size_t copy, const std::vector<Track>& tracks) {
  std::string name = "sync";
  if (key.kind != Kind::sync) {
    const Track& track = tracks[key.track];
    const bool one_of_many = key.kind == Kind::compute && (track.width > 1 || key.core > 0);
    name = one_of_many ? fmt::format("{} core {}", track.name, key.core) : track.name;
  }
  return copy == 0 ? name : fmt::format("{} ({})", name, copy + 1);
}

/// A row and its copies, of which each holds one slice at a time.
class Copies {
 public:
  /// Returns the first free one.
  std::uint32_t take() {
    if (free_.empty()) return count_++;
    const std::uint32_t copy = free_.top();
    free_.pop();
    return copy;
  }
  void release(std::uint32_t copy) { free_.push(copy); }
  std::uint32_t count() const noexcept { return count_; }

  std::uint32_t first_row = 0;

 private:
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> free_;
  std::uint32_t count_ = 0;
};

}  // namespace

Timeline::Timeline(const Recording& recording, const Graph& graph)
    : row_of_(recording.entries.size()) {
  find_begin(recording.entries);
  find_moments(recording, graph);
  find_rows(recording);
}

void Timeline::find_begin(const std::vector<Entry>& entries) {
  if (entries.empty()) return;
  begin_ = std::numeric_limits<std::int64_t>::max();
  for (const Entry& entry : entries) begin_ = std::min({begin_, entry.enqueued, entry.started});
}

void Timeline::find_moments(const Recording& recording, const Graph& graph) {
  moments_.reserve(2 * recording.entries.size());
  for (std::uint32_t rank = 0; rank < graph.order().size(); ++rank) {
    const std::uint32_t position = graph.order()[rank];
    const Entry& entry = recording.entries[position];
    const std::int64_t started = since_begin(entry.started);
    if (duration(entry) == 0) {
      moments_.push_back({started, rank, position, Edge::point});
    } else {
      moments_.push_back({started, rank, position, Edge::begin});
      moments_.push_back({since_begin(entry.ended), rank, position, Edge::end});
    }
  }
  std::sort(moments_.begin(), moments_.end(), [](const Moment& a, const Moment& b) {
    return std::tie(a.time, a.edge, a.rank) < std::tie(b.time, b.edge, b.rank);
  });
}

/// Returns the process of each track.
std::vector<std::uint32_t> Timeline::find_processes(const std::vector<Track>& tracks) {
  std::vector<std::uint32_t> process_of;
  for (const Track& track : tracks) {
    const auto known = std::find(processes_.begin(), processes_.end(), track.domain);
    process_of.push_back(static_cast<std::uint32_t>(known - processes_.begin()));
    if (known == processes_.end()) processes_.push_back(track.domain);
  }
  if (processes_.empty()) processes_.emplace_back("weir");
  return process_of;
}

void Timeline::find_rows(const Recording& recording) {
  const std::vector<std::uint32_t> process_of = find_processes(recording.tracks);
  std::map<Key, Copies> groups;
  for (const Moment& moment : moments_) {
    Copies& copies = groups[key_of(recording.entries[moment.position], process_of)];
    std::uint32_t& copy = row_of_[moment.position];
    if (moment.edge != Edge::end) copy = copies.take();
    if (moment.edge != Edge::begin) copies.release(copy);
  }
  for (auto& [key, copies] : groups) {
    copies.first_row = static_cast<std::uint32_t>(rows_.size());
    for (std::uint32_t copy = 0; copy < copies.count(); ++copy) {
      rows_.push_back({name_of(key, copy, recording.tracks), key.process});
    }
  }
  for (std::uint32_t position = 0; position < row_of_.size(); ++position) {
    row_of_[position] += groups[key_of(recording.entries[position], process_of)].first_row;
  }
}

}  // namespace weir::rt::trace
