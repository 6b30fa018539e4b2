// Runs this command on several ranks.
#pragma once

#include <functional>
#include <string>

#include <weir/fabric.h>
#include <weir/weir.hpp>

#include "command.hpp"
#include "launch_environment.hpp"

namespace weir::cli {

/// Returns the file of this rank for a requested path: rank 0 and a single process have the path
/// itself, "out.json" is "out.rank1.json" on rank 1; "" stays.
std::string file_of_rank(const std::string& path);
/// Returns the file of this program, to start it again under the same process name. After the file
/// was replaced, as by an update, the name is another.
std::string own_program();

/// Starts the command of this process on `ranks` ranks of this machine and waits for them. Returns
/// the exit code of the lowest rank that failed.
ExitCode run_on_ranks(unsigned ranks);

/// Whether `domains` names a domain of another rank. Empty: the domains of the environment.
bool names_ranks(const std::string& domains);

/// Joins the fabric if `domains` names domains of other ranks, and returns it, else nullptr. The
/// process leaves it at its end. Empty: the domains of the environment. Throws weir::Error.
weir_fabric* fabric_for(const std::string& domains);

/// Leaves the fabric. Call it before main() ends: MPI cannot be finalised later.
void leave_fabric() noexcept;

/// Serves rank 0 until its end, if such domains are asked for and this process is another rank.
/// Returns whether it did. `prepare` registers kernels; none: those of weir are enough. Throws
/// weir::Error.
bool serve_ranks(const std::string& domains,
                 const std::function<void(const Runtime&)>& prepare = {});

}  // namespace weir::cli
