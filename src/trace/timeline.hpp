// The layout of a recording in timeline viewers, independent of file formats.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/graph.hpp"
#include "trace/recording.hpp"

namespace weir::rt::trace {

/// A line of slices that do not overlap.
struct Row {
  std::string name;
  std::uint32_t process = 0;  ///< index in Timeline::processes
};

/// An event of a slice. At equal times viewers must see ends first, then slices without duration,
/// then begins; otherwise slices would nest.
enum class Edge : std::uint8_t { end, point, begin };

struct Moment {
  std::int64_t time = 0;       ///< nanoseconds since the first enqueue
  std::uint32_t rank = 0;      ///< in Graph::order(): arrows between points of one time go forward
  std::uint32_t position = 0;  ///< in Recording::entries
  Edge edge = Edge::point;
};

/// - A process is a domain.
/// - Its rows are, in this order: the cores of its places, the directions of its link, and one row
///   "sync" of the syncs and of the actions that completed without running.
/// - A slice that would overlap another on its row moves to a row of the same name and a number.
class Timeline {
 public:
  /// Throws std::bad_alloc.
  Timeline(const Recording& recording, const Graph& graph);

  const std::vector<std::string>& processes() const noexcept { return processes_; }
  const std::vector<Row>& rows() const noexcept { return rows_; }
  /// Returns the row of an entry, as index in rows().
  std::uint32_t row_of(std::uint32_t position) const noexcept { return row_of_[position]; }
  /// Returns the events in the order of a file.
  const std::vector<Moment>& moments() const noexcept { return moments_; }
  /// Turns a time of the recording into one of the timeline, which begins at 0.
  std::int64_t since_begin(std::int64_t time) const noexcept {
    return time > begin_ ? time - begin_ : 0;
  }

 private:
  void find_begin(const std::vector<Entry>& entries);
  void find_moments(const Recording& recording, const Graph& graph);
  std::vector<std::uint32_t> find_processes(const std::vector<Track>& tracks);
  void find_rows(const Recording& recording);

  std::int64_t begin_ = 0;
  std::vector<std::string> processes_;
  std::vector<Row> rows_;
  std::vector<std::uint32_t> row_of_;
  std::vector<Moment> moments_;
};

}  // namespace weir::rt::trace
