// The tool: reads its arguments, performs the command that they name and explains what is wrong.
#pragma once

#include <memory>
#include <vector>

#include "command.hpp"

namespace weir::cli {

using Commands = std::vector<std::unique_ptr<Command>>;

/// Runs the tool and returns its exit status. A complaint is one line on standard error.
ExitCode run_tool(int argc, char** argv, Commands commands) noexcept;

}  // namespace weir::cli
