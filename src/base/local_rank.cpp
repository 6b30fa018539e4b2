#include "base/local_rank.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "base/sys.hpp"
#include "base/text.hpp"

namespace weir::rt {

namespace {

/// Variables of weir, Open MPI, MPICH and its derivatives.
constexpr struct {
  const char *rank, *ranks;
} kVariables[] = {{"WEIR_RANK", "WEIR_RANKS"},
                  {"OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
                  {"MPI_LOCALRANKID", "MPI_LOCALNRANKS"}};

/// On all machines; with Slurm of a step, as a batch script is one process.
constexpr struct {
  const char *rank, *ranks;
} kOfAll[] = {{"WEIR_RANK", "WEIR_RANKS"},
              {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
              {"PMI_RANK", "PMI_SIZE"},
              {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}};

std::optional<std::uint64_t> number_in(const char* variable) noexcept {
  const char* const text = sys::environment(variable);
  return text != nullptr ? parse_unsigned(text) : std::nullopt;
}

/// How many tasks a step of Slurm has on this node: of "2(x3),1" two on each of the first three.
std::optional<std::uint64_t> slurm_tasks() noexcept {
  const char* const text = sys::environment("SLURM_STEP_TASKS_PER_NODE");
  const auto node = number_in("SLURM_NODEID");
  if (text == nullptr || !node) return std::nullopt;
  std::uint64_t nodes = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view part = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    const std::size_t times = part.find("(x");
    const bool once = times == std::string_view::npos || !part.ends_with(')');
    const auto tasks = parse_unsigned(part.substr(0, times));
    const auto alike = parse_unsigned(once ? "1" : part.substr(times + 2, part.size() - times - 3));
    if (!tasks || !alike) return std::nullopt;
    if (*node - nodes < *alike) return tasks;
    nodes += *alike;
  }
  return std::nullopt;
}

LocalRank made_of(std::optional<std::uint64_t> rank, std::optional<std::uint64_t> ranks) noexcept {
  if (rank && ranks && *rank < *ranks && *ranks <= UINT32_MAX) return {*rank, *ranks};
  return {};
}

}  // namespace

LocalRank local_rank() noexcept {
  for (const auto& [rank, ranks] : kVariables) {
    LocalRank found = made_of(number_in(rank), number_in(ranks));
    found.started_by_weir = rank == kVariables[0].rank;
    if (found.ranks > 1) return found;
  }
  return made_of(number_in("SLURM_LOCALID"), slurm_tasks());
}

std::string rank_prefix() {
  for (const auto& [rank, ranks] : kOfAll) {
    const LocalRank found = made_of(number_in(rank), number_in(ranks));
    if (found.ranks > 1) return fmt::format("rank {}: ", found.rank);
  }
  return {};
}

}  // namespace weir::rt
