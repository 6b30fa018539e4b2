// Reading single entries.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "trace/recording.hpp"

namespace weir::rt::trace {

/// Returns how long the action ran, in nanoseconds. 0 when it never ran, or when a device's clock
/// was set back.
inline std::int64_t duration(const Entry& entry) noexcept {
  return std::max<std::int64_t>(0, entry.ended - entry.started);
}

/// Returns the name up to its first NUL, as it was given: any bytes.
inline std::string_view label(const Entry& entry) noexcept {
  return {entry.name.data(), strnlen(entry.name.data(), entry.name.size())};
}

/// Returns the cores of the place that a kernel ran on, 1 for other actions and for devices that do
/// not report their cores.
inline std::uint32_t width_of(const Recording& recording, const Entry& entry) noexcept {
  const bool ran = entry.kind == Kind::compute && entry.track < recording.tracks.size();
  return ran ? std::max(1u, recording.tracks[entry.track].width) : 1;
}

/// Returns "compute", "transfer" or "sync".
inline const char* kind_name(Kind kind) noexcept {
  return kind == Kind::compute ? "compute" : kind == Kind::transfer ? "transfer" : "sync";
}

}  // namespace weir::rt::trace
