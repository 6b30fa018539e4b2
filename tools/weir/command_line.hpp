// How the tool was called.
#pragma once

#include <string>

namespace weir::cli {

/// Returns the command that started this process for a shell to run again, with the tool's name in
/// place of its path; "" where the system does not tell.
std::string command_line();

}  // namespace weir::cli
