#include "hstreams/log.hpp"

#include <chrono>
#include <cstdio>

#include <hstreams/hStreams_common.h>
#include <unistd.h>

namespace weir::hs {

namespace {

const char* level_name(HSTR_LOG_LEVEL level) {
  static constexpr const char* kNames[] = {"NOLOG",  "FATAL_ERROR", "ERROR",  "WARN",  "LOG",
                                           "DEBUG1", "DEBUG2",      "DEBUG3", "DEBUG4"};
  return kNames[level];
}

const char* kind_name(HSTR_INFO_TYPE kind) {
  switch (kind) {
    case HSTR_INFO_TYPE_TRACE: return "TRACE";
    case HSTR_INFO_TYPE_SINK_INVOKE: return "INVOKE";
    case HSTR_INFO_TYPE_MEM: return "ALLOC";
    case HSTR_INFO_TYPE_SYNC: return "SYNC";
    default: return "MISC";
  }
}

std::string_view file_name(std::string_view path) {
  return path.substr(path.find_last_of('/') + 1);
}

}  // namespace

Log& Log::get() noexcept {
  static Log log;
  return log;
}

void Log::write(HSTR_LOG_LEVEL level, HSTR_INFO_TYPE kind, std::string_view text,
                const std::source_location& where) noexcept try {
  using namespace std::chrono;
  static const auto start = steady_clock::now();
  const auto now = duration_cast<milliseconds>(steady_clock::now() - start).count();
  std::FILE* const file = level <= HSTR_LOG_LEVEL_WARN ? stderr : stdout;
  const std::string line =
      fmt::format("{:10} {:3} {:#11x} {:#13x} {:8} {:9} {} ({}:{})\n", now, HSTR_SRC_PHYS_DOMAIN,
                  getpid(), gettid(), level_name(level), kind_name(kind), text,
                  file_name(where.file_name()), where.line());
  std::fwrite(line.data(), 1, line.size(), file);
} catch (...) {
}

}  // namespace weir::hs
