// What the library can do here, found out by doing it.
#pragma once

#include <string>

#include <weir/weir.hpp>

#include "finding.hpp"

namespace weir::cli {

/// Moves data to every domain that has cores, computes there, and moves the result back.
Findings check_domains(const Runtime& runtime);

/// Opens and tries one domain of a kind of backend; says why when it is not available, which is a
/// warning: nothing asked for it.
Finding check_backend(const std::string& kind);

/// Finds the BLAS that a runtime with this choice uses and its LAPACK, and measures one core.
Findings check_blas(const std::string& choice);

/// Writes a trace where traces of programs would go.
Finding check_trace(const Runtime& runtime);

}  // namespace weir::cli
