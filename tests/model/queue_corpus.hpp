// Programs of tasks in files: what once failed is run for ever.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "queue_plan.hpp"

namespace weir::queue_model {

/// A program that failed, and where.
struct Found {
  Plan plan;
  std::string strategy;  ///< of the scheduler; "": on real threads
  std::uint64_t schedule_seed = 0;
};

void save(const Found& found, const std::filesystem::path& file);
/// Throws std::runtime_error naming the file.
Found load(const std::filesystem::path& file);

/// All files of tests/corpus/queues, by name.
std::vector<std::filesystem::path> corpus();

/// Saves a program that failed beside them, under a name made of its contents. Returns the file.
std::filesystem::path keep(const Found& found);

}  // namespace weir::queue_model
