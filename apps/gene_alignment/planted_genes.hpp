// A generated genome with genes at known positions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/fasta.hpp"

namespace weir::apps {

/// Where a gene was put: letters [begin, end) of the genome.
struct PlantedGene {
  Sequence gene;
  std::size_t begin, end;
};

struct PlantedGenome {
  Sequence genome;
  std::vector<PlantedGene> genes;
};

constexpr std::size_t kUsualGenome = 100'000, kLeastGenome = 2'000, kMostGenome = 1'000'000'000;

/// Makes random letters, and four genes of 300 letters of which the genome has copies, one in each
/// quarter, in which some letters differ, are missing or are too many. The same for the same seed.
/// Needs kLeastGenome letters.
PlantedGenome make_planted_genome(std::size_t letters, std::uint64_t seed);

}  // namespace weir::apps
