// Finding and opening the library for the MPI that started a program.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "net/link.hpp"

namespace weir::rt {

/// An MPI that weir may have been built with.
struct MpiKind {
  const char* name;     ///< "Open MPI"
  const char* library;  ///< weir's for it
  const char* launcher;
  const char* packages;  ///< of Debian, to build that
};

/// Returns the MPI whose mpirun has started this process, null when none has.
const MpiKind* started_by_mpi() noexcept;
/// The rank that it was started as, also by srun without an MPI, as text; null: it was not.
const char* rank_by_mpi() noexcept;

/// Returns the path of weir's library for an MPI, "" when it is not there.
std::string mpi_library_path(const MpiKind& kind);

/// Opens the library and a link over it. Throws Error.
std::unique_ptr<Link> mpi_link();

/// All of them, the last one without a name.
const MpiKind* mpi_kinds() noexcept;

// What such a library exports.
/// weir_mpi_link_build: its link_build().
using MpiLinkBuild = const char* (*)();
/// weir_mpi_link_open: returns null with a message when MPI cannot be used.
using MpiLinkOpen = Link* (*)(char* message, std::size_t bytes);

/// Returns what is the same text in libraries that fit together.
const char* link_build() noexcept;

}  // namespace weir::rt
