// Finds and loads the library for the MPI that started the program.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "fabric/link.hpp"

namespace weir::rt {

/// A kind of MPI that weir may have been built with.
struct MpiKind {
  const char* name;     ///< "Open MPI"
  const char* library;  ///< weir's library for it
  const char* launcher;
  const char* packages;  ///< Debian packages that are needed to build that library
};

/// Returns the MPI whose launcher started this process; null if none did.
const MpiKind* started_by_mpi() noexcept;
/// Returns the rank in the launcher's environment as text, also by srun without MPI; null if there
/// is none.
const char* rank_by_mpi() noexcept;

/// Returns the path of weir's library for an MPI; "" if it does not exist.
std::string mpi_library_path(const MpiKind& kind);

/// Returns the path of the library libmpi_abi, the standard ABI of MPI 5, of the MPI in whose
/// folder `program` is: that of a launcher; "" if that MPI does not have it.
std::string standard_mpi_beside(const std::string& program);

/// Loads the library and opens a link over it: the library for the standard ABI if the MPI that
/// started this process has it, unless the program has loaded another MPI. Throws Error.
std::unique_ptr<Link> mpi_link();

/// Returns the kinds that weir knows by their launchers; the last one has no name.
const MpiKind* mpi_kinds() noexcept;
/// The standard ABI of MPI 5, which MPICH 5 and others have. It has no launcher of its own.
const MpiKind& standard_mpi_kind() noexcept;

// Symbols that the library exports, beside weir_mpi_link_build: its link_build().
/// weir_mpi_link_open: returns null with a message when MPI cannot be used.
using MpiLinkOpen = Link* (*)(char* message, std::size_t bytes);

}  // namespace weir::rt
