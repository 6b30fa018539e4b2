// Running this very command on several ranks.
#pragma once

#include <functional>
#include <string>

#include <weir/fabric.h>
#include <weir/weir.hpp>

#include "command.hpp"
#include "launch_environment.hpp"

namespace weir::cli {

/// The file of this process for one that was asked for: each rank has its own, and rank 0, or who
/// is alone, that of the name. "out.json" is "out.rank1.json" on rank 1; "" stays.
std::string file_of_rank(const std::string& path);
/// The program of this process, to start it again: its file, whose name such processes are listed
/// by. One whose file is not there any more, as after an update, has another name.
std::string own_program();

/// Starts the command of this process on `ranks` ranks of this machine and waits for them. Returns
/// what the lowest rank that failed has returned.
ExitCode run_on_ranks(unsigned ranks);

/// Whether one of the domains is of another rank. Empty: those of the environment.
bool names_ranks(const std::string& domains);

/// Returns the fabric for domains that are of other ranks, which this process joins then, and
/// leaves at its end; nullptr for others. Empty: those of the environment. Throws weir::Error.
weir_fabric* fabric_for(const std::string& domains);

/// Leaves it. Before main() ends: MPI cannot later.
void leave_fabric() noexcept;

/// Serves rank 0 until its end, if such domains are asked for and this process is another rank.
/// Returns whether it did. `prepare` registers kernels; none: those of weir are enough. Throws
/// weir::Error.
bool serve_ranks(const std::string& domains,
                 const std::function<void(const Runtime&)>& prepare = {});

}  // namespace weir::cli
