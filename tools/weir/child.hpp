// Other programs and libraries, tried in a process that cannot stop this one.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace weir::cli {

/// How a child process ended, and what it wrote to its standard streams.
struct ChildResult {
  enum class End { exited, signalled, timed_out, not_started };
  End end = End::not_started;
  int status = 0;      ///< exit status, number of the signal, or errno of the start
  std::string output;  ///< at most 64 KiB

  bool succeeded() const { return end == End::exited && status == 0; }
};

constexpr std::chrono::seconds kChildLimit{20};

/// Returns the path of a program in PATH; "" if it is not there, and in a setuid program.
std::string find_program(const std::string& name);

/// Runs a program, named by its path, with nothing to read, and waits until it ends. When the limit
/// passes or a signal comes, the process and its children are killed. Does not throw for anything
/// that the program does.
ChildResult run_child(const std::vector<std::string>& command,
                      std::chrono::milliseconds limit = kChildLimit);

/// Calls a function in a copy of this process; the output is the text that it returns. It runs
/// beside none of the threads of this process, must not wait for them, and writes nowhere else.
ChildResult call_in_child(const std::function<std::string()>& function,
                          std::chrono::milliseconds limit = kChildLimit);

/// Returns how the child ended in words: "ended with status 1", "did not end in time".
std::string in_words(const ChildResult& result);

}  // namespace weir::cli
