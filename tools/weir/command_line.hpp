// The command line of this process.
#pragma once

#include <string>
#include <vector>

namespace weir::cli {

/// Keeps the arguments of main() for the functions below.
void keep_arguments(int argc, char** argv);
/// Returns the kept arguments, the name of the program first; none before keep_arguments().
const std::vector<std::string>& own_arguments();

/// Returns the command that started this process for a shell to run again, with the tool's name in
/// place of its path; "" before keep_arguments().
std::string command_line();

/// Returns a word in quotes where a shell would not take it as it is.
std::string shell_word(const std::string& word);

}  // namespace weir::cli
