// The contents of a trace: one entry for each complete action.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <weir/status.h>

namespace weir::rt::trace {

enum class Kind : std::uint8_t { compute, transfer, sync };

/// A resource that actions occupy: the cores of a place, or a link in one direction.
struct Track {
  std::string name;    ///< "host/p0", "sim:0 h2d"
  std::string domain;  ///< "sim:0"
  Kind kind = Kind::compute;
  std::uint32_t width = 1;  ///< cores of a place, 1 for a link
};

struct StreamName {
  std::string name;
};

/// One action. Times in nanoseconds of the platform's clock.
struct Entry {
  std::uint64_t id = 0;  ///< unique in the recording
  std::int64_t enqueued = 0, ready = 0, started = 0, ended = 0;
  std::uint64_t bytes = 0;   ///< of all operands; of a transfer: moved
  std::uint32_t stream = 0;  ///< index in Recording::streams
  std::uint32_t track = 0;   ///< index in Recording::tracks; of a sync: that of its place
  std::uint16_t core = 0;    ///< core of the place
  std::uint16_t cores = 1;   ///< that it occupied
  Kind kind = Kind::compute;
  weir_status status = WEIR_STATUS_OK;
  std::array<char, 32> name{};
  std::uint32_t first_dependence = 0;  ///< in Recording::dependences
  std::uint32_t dependence_count = 0;
};

/// All entries, in the order of their ends.
struct Recording {
  std::vector<Track> tracks;
  std::vector<StreamName> streams;
  std::vector<Entry> entries;
  std::vector<std::uint64_t> dependences;  ///< ids of the actions that an entry waited for
  std::uint64_t dropped = 0;               ///< entries dropped for lack of room
};

}  // namespace weir::rt::trace
