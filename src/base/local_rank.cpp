#include "base/local_rank.hpp"

#include <cstdint>
#include <optional>

#include "base/sys.hpp"
#include "base/text.hpp"

namespace weir::rt {

namespace {

/// Of weir, Open MPI, and MPICH with what descends from it.
constexpr struct {
  const char *rank, *ranks;
} kVariables[] = {{"WEIR_RANK", "WEIR_RANKS"},
                  {"OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
                  {"MPI_LOCALRANKID", "MPI_LOCALNRANKS"}};

std::optional<std::uint64_t> number_in(const char* variable) noexcept {
  const char* const text = sys::environment(variable);
  return text != nullptr ? parse_unsigned(text) : std::nullopt;
}

}  // namespace

LocalRank local_rank() noexcept {
  for (const auto& [rank, ranks] : kVariables) {
    const auto own = number_in(rank), all = number_in(ranks);
    if (own && all && *own < *all && *all <= UINT32_MAX) return {*own, *all};
  }
  return {};
}

}  // namespace weir::rt
