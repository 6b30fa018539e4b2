// The output files of a bracket. All functions throw std::runtime_error with the path and the
// reason when a file cannot be written.
#pragma once

#include <string>
#include <vector>

#include "bracket.hpp"

/// Writes the lower triangle of a symmetric matrix as Matrix Market coordinates.
void write_matrix_market(const std::string& path, std::size_t unknowns,
                         const std::vector<Entry>& lower);

/// Writes values in rows of `columns`, 1 for a vector, as a NumPy file.
void write_npy(const std::string& path, const std::vector<double>& values, std::size_t columns = 1);

/// Writes what the bracket is made of as JSON.
void write_description(const std::string& path, const Bracket& bracket, const Equations& equations);
