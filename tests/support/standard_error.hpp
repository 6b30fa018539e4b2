// What the library says on standard error.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <string>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

namespace weir {

/// Reads what this process writes to standard error, while it lives.
class StandardError {
 public:
  StandardError() : before_(dup(STDERR_FILENO)) {
    std::fflush(stderr);
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    read_ = ends[0];
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
  }
  StandardError(const StandardError&) = delete;
  StandardError& operator=(const StandardError&) = delete;
  ~StandardError() {
    std::fflush(stderr);
    dup2(before_, STDERR_FILENO);
    close(before_);
    close(read_);
  }

  /// Waits until these words have come so often; returns all that came.
  const std::string& wait_for(const std::string& words, std::size_t times) {
    using Clock = std::chrono::steady_clock;
    const auto limit = Clock::now() + std::chrono::minutes(1);
    while (count(words) < times && Clock::now() < limit) take(100);
    return text_;
  }
  /// How often these words have come.
  std::size_t count(const std::string& words) {
    take(0);
    std::size_t found = 0;
    for (std::size_t at = text_.find(words); at != std::string::npos;
         at = text_.find(words, at + 1)) {
      ++found;
    }
    return found;
  }

 private:
  void take(int timeout_ms) {
    pollfd source{.fd = read_, .events = POLLIN, .revents = 0};
    char part[4096];
    while (poll(&source, 1, timeout_ms) == 1) {
      const ssize_t bytes = ::read(read_, part, sizeof part);
      if (bytes <= 0) return;
      text_.append(part, static_cast<std::size_t>(bytes));
      timeout_ms = 0;
    }
  }

  int before_, read_ = -1;
  std::string text_;
};

}  // namespace weir
