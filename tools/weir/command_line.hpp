// The command line of this process.
#pragma once

#include <string>

namespace weir::cli {

/// Returns the command that started this process for a shell to run again, with the tool's name in
/// place of its path; "" where the system does not report it.
std::string command_line();

/// Returns a word in quotes where a shell would not take it as it is.
std::string shell_word(const std::string& word);

}  // namespace weir::cli
