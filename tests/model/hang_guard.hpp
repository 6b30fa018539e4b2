// Programs that do not come to their end.
#pragma once

#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>

#include <unistd.h>

namespace weir::model {

/// While it lives, a minute ends the process, with a way to repeat what hung. One at a time.
class HangGuard {
 public:
  explicit HangGuard(const std::string& replay) {
    std::snprintf(text_, sizeof text_, "no program has come to its end for %u s\nreplay: %s\n",
                  kSeconds, replay.c_str());
    std::signal(SIGALRM, [](int) {
      [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text_, std::strlen(text_));
      _exit(1);
    });
    alarm(kSeconds);
  }
  HangGuard(const HangGuard&) = delete;
  HangGuard& operator=(const HangGuard&) = delete;
  ~HangGuard() { alarm(0); }

 private:
  static constexpr unsigned kSeconds = 60;
  static inline char text_[512];
};

}  // namespace weir::model
