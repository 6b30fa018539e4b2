// Checks the functions of the library on this machine by using them.
#pragma once

#include <string>

#include <weir/weir.hpp>

#include "finding.hpp"

namespace weir::cli {

/// Moves data to every domain that has cores, computes there, and moves the result back.
Findings check_domains(const Runtime& runtime);

/// Opens and tries one domain of a kind of backend; a backend that is not available is a warning
/// only, because the user has not requested it.
Finding check_backend(const std::string& kind);

/// Finds the BLAS that a runtime with this choice uses and its LAPACK, and measures one core.
Findings check_blas(const std::string& choice);

/// Writes a trace to the folder that traces of programs go to.
Finding check_trace(const Runtime& runtime);

}  // namespace weir::cli
