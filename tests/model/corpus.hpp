// Programs in files: what once failed is run for ever.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "program.hpp"

namespace weir::model {

/// A program that failed, before it was ordered, and where.
struct Found {
  std::string platform;
  Program plan;
  std::string strategy;  ///< of the scheduler; "": on real threads
  std::uint64_t schedule_seed = 0;
};

void save(const Found& found, const std::filesystem::path& file);
/// Throws std::runtime_error naming the file.
Found load(const std::filesystem::path& file);

/// All files of tests/corpus/programs, by name.
std::vector<std::filesystem::path> corpus();

/// Saves a program that failed beside them, under a name made of its contents. Returns the file.
std::filesystem::path keep(const Found& found);

}  // namespace weir::model
