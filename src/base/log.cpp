#include "base/log.hpp"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "base/local_rank.hpp"
#include "base/sys.hpp"
#include "base/text.hpp"

namespace weir::rt::log {

namespace {

spdlog::level::level_enum to_spdlog(Level level) {
  switch (level) {
    case Level::debug: return spdlog::level::debug;
    case Level::info: return spdlog::level::info;
    case Level::warning: return spdlog::level::warn;
    case Level::error: return spdlog::level::err;
  }
  return spdlog::level::off;
}

/// The logger WEIR_LOG asks for ("debug", "info", "warning", "error"; warning by default), or
/// nullptr without memory. Never destroyed: worker threads may outlive static destruction.
spdlog::logger* logger() noexcept {
  static spdlog::logger* const instance = []() -> spdlog::logger* {
    const char* wanted = sys::environment("WEIR_LOG");
    if (wanted == nullptr || *wanted == '\0') wanted = "warning";
    try {
      auto* made = new spdlog::logger("weir", std::make_shared<spdlog::sinks::stderr_sink_mt>());
      made->set_level(spdlog::level::from_str(wanted));
      made->set_pattern("[weir %H:%M:%S.%e %l] " + rank_prefix() + "%v");
      return made;
    } catch (...) {
      return nullptr;
    }
  }();
  return instance;
}

}  // namespace

bool enabled(Level level) noexcept {
  spdlog::logger* const target = logger();
  return target != nullptr && target->should_log(to_spdlog(level));
}

void write(Level level, const std::string& line) noexcept {
  spdlog::logger* const target = logger();
  if (target == nullptr) return;
  try {
    target->log(to_spdlog(level), one_line(line));
  } catch (...) {
    // Without memory the line is lost.
  }
}

}  // namespace weir::rt::log
