// A recording that `weir run --trace FILE` or WEIR_TRACE has written, in both formats.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::cli::report {

enum class Kind : std::uint8_t { compute, h2d, d2h, d2d, sync };

/// A completed action; times in nanoseconds since the first enqueue.
struct Slice {
  std::int64_t started = 0, duration = 0, enqueued = 0, ready = 0;
  std::uint64_t bytes = 0;
  std::uint32_t row = 0, stream = 0, name = 0;  ///< indices in Trace
  std::uint32_t cores = 1, place_cores = 1;     ///< of a kernel: those it had, of how many
  Kind kind = Kind::compute;
  bool failed = false;

  std::int64_t ended() const noexcept { return started + duration; }
  bool moves() const noexcept { return kind >= Kind::h2d && kind <= Kind::d2d; }
};

/// A core of a place, one direction of a link, or the syncs of a domain.
struct TraceRow {
  std::string domain, name;
  std::string owner;  ///< name without the number of the core: the place or the link
};

struct Trace {
  std::vector<TraceRow> rows;
  std::vector<std::string> streams;
  std::vector<std::string> names;
  std::vector<Slice> slices;                                   ///< by their start
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;  ///< which slice waited for which
  std::uint64_t dropped = 0;                                   ///< for which there was no room
};

/// Reads a file, whose first bytes say which format it has. Throws apps::InputError when it is not
/// a recording of weir.
Trace read_trace(const std::string& path);
/// The same from the bytes of a file; the name stands for the path in messages.
Trace read_trace_from(std::string_view bytes, const std::string& name);

}  // namespace weir::cli::report
