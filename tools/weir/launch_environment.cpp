#include "launch_environment.hpp"

#include <unistd.h>

#include <cstdlib>
#include <initializer_list>

#include <fmt/format.h>

namespace weir::cli {

namespace {

/// Returns the value of the first of these variables that is set and is a number, else `otherwise`.
unsigned number_in(std::initializer_list<const char*> variables, unsigned otherwise) {
  for (const char* const variable : variables) {
    const char* const text = std::getenv(variable);
    char* end = nullptr;
    const unsigned long number = text != nullptr ? std::strtoul(text, &end, 10) : 0;
    if (text != nullptr && end != text && *end == '\0') return static_cast<unsigned>(number);
  }
  return otherwise;
}

}  // namespace

bool is_rank() { return std::getenv("WEIR_RANK") != nullptr; }

/// SLURM_NTASKS is also set in a batch script, which is one process.
unsigned started_ranks() {
  return number_in({"WEIR_RANKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}, 1);
}

bool speaks_for_machine() {
  return number_in({"WEIR_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"},
                   0) == 0;
}

unsigned started_rank() {
  return number_in({"WEIR_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"},
                   0);
}

std::string rank_prefix() {
  return started_ranks() > 1 ? fmt::format("rank {}: ", started_rank()) : std::string();
}

bool is_terminal(int descriptor) {
  for (const char* const variable : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_SIZE"}) {
    if (std::getenv(variable) != nullptr) return false;
  }
  return isatty(descriptor) != 0;
}

}  // namespace weir::cli
