// Runs this program in a process of its own.
#pragma once

#include <string>
#include <vector>

namespace weir::cli {

/// Runs this program with the arguments in `words`, and returns what it prints. `launcher`: the
/// words of a command before it that starts ranks, such as mpirun -n 2, found in PATH; {}: none.
/// Throws weir::Error if it fails, or Interrupted; the process does not outlive this one.
std::string output_of(const std::vector<std::string>& words,
                      const std::vector<std::string>& launcher = {});

}  // namespace weir::cli
