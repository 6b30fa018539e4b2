// Messages for the program's user.
#pragma once

#include <atomic>
#include <source_location>
#include <string_view>

#include "hstreams/error.hpp"

namespace weir::hs {

/// Prints messages of the enabled levels and kinds, a line each. Any thread may write.
class Log {
 public:
  /// The log of the process.
  static Log& get() noexcept;

  void set_level(HSTR_LOG_LEVEL level) noexcept { level_ = level; }
  void set_kinds(std::uint64_t mask) noexcept { kinds_ = mask; }
  bool wants(HSTR_LOG_LEVEL level, HSTR_INFO_TYPE kind) const noexcept {
    return level <= level_ && (static_cast<std::uint64_t>(kind) & kinds_) != 0;
  }
  /// Never throws: a message that cannot be written is lost.
  void write(HSTR_LOG_LEVEL level, HSTR_INFO_TYPE kind, std::string_view text,
             const std::source_location& where) noexcept;

 private:
  std::atomic<HSTR_LOG_LEVEL> level_{HSTR_LOG_LEVEL_ERROR};
  std::atomic<std::uint64_t> kinds_{~std::uint64_t{0}};
};

/// Formats and writes a message if its level and kind are enabled.
template <class... Values>
void log(HSTR_LOG_LEVEL level, HSTR_INFO_TYPE kind, Text<const Values&...> text,
         const Values&... values) {
  if (!Log::get().wants(level, kind)) return;
  Log::get().write(level, kind, fmt::format(text.format, values...), text.where);
}

}  // namespace weir::hs
