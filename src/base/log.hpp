// Messages on stderr: warnings and errors, or the level of WEIR_LOG.
#pragma once

#include <string>
#include <utility>

#include <fmt/format.h>

namespace weir::rt::log {

/// Levels: error = work is lost, warning = weir deviates from a request, info = once in a run,
/// debug = once in an object's life. Nothing is logged per action.
enum class Level { debug, info, warning, error };

bool enabled(Level level) noexcept;
void write(Level level, const std::string& line) noexcept;

/// Writes a line, if there is memory for it.
template <class... Args>
void print(Level level, fmt::format_string<Args...> format, Args&&... args) noexcept {
  if (!enabled(level)) return;
  try {
    write(level, fmt::format(format, std::forward<Args>(args)...));
  } catch (...) {
  }
}

template <class... Args>
void warning(fmt::format_string<Args...> format, Args&&... args) noexcept {
  print(Level::warning, format, std::forward<Args>(args)...);
}
template <class... Args>
void info(fmt::format_string<Args...> format, Args&&... args) noexcept {
  print(Level::info, format, std::forward<Args>(args)...);
}
template <class... Args>
void debug(fmt::format_string<Args...> format, Args&&... args) noexcept {
  print(Level::debug, format, std::forward<Args>(args)...);
}

}  // namespace weir::rt::log
