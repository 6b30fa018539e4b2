// Waiting for processes that a test has started.
#pragma once

#include <cerrno>
#include <chrono>
#include <span>
#include <system_error>
#include <vector>

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace weir {

/// Returns when one of these children has ended, not waited for so far, or after this time. Throws
/// std::system_error.
inline void await_end_of_any(std::span<const pid_t> children, std::chrono::milliseconds most) {
  std::vector<pollfd> ends;
  for (const pid_t child : children) {
    const auto descriptor = static_cast<int>(syscall(SYS_pidfd_open, child, 0));
    ends.push_back({.fd = descriptor, .events = POLLIN, .revents = 0});
  }
  const int result = poll(ends.data(), ends.size(), static_cast<int>(most.count()));
  const int error = errno;
  for (const pollfd& end : ends) {
    if (end.fd >= 0) close(end.fd);
  }
  if (result < 0 && error != EINTR) throw std::system_error(error, std::generic_category(), "poll");
}

}  // namespace weir
