// Genomes that are made up have their genes where they say.
#include "gene_alignment/planted_genes.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "gene_alignment/alignment.hpp"

namespace weir::apps {
namespace {

TEST(PlantedGenes, EachGene_AlignsAtItsReportedPosition) {
  std::vector<std::uint8_t> scratch;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const std::size_t letters = seed % 2 == 0 ? kLeastGenome : 10'001;
    const PlantedGenome made = make_planted_genome(letters, seed);
    ASSERT_EQ(made.genome.bases.size(), letters);
    EXPECT_EQ(made.genome.bases.find_first_not_of("ACGT"), std::string::npos);
    ASSERT_EQ(made.genes.size(), 4u);
    std::size_t last = 0;
    for (const PlantedGene& each : made.genes) {
      ASSERT_LE(last, each.begin);
      ASSERT_LE(each.end, letters);
      last = each.end;
      const std::string planted = made.genome.bases.substr(each.begin, each.end - each.begin);
      const Alignment best = align(each.gene.bases, planted, scratch);
      EXPECT_LT(best.edits, each.gene.bases.size() / 10) << "seed " << seed;
      EXPECT_GT(best.edits, 0u) << "seed " << seed;
    }
  }
}

TEST(PlantedGenes, EqualSeeds_MakeEqualGenomesAndOthersDiffer) {
  EXPECT_EQ(make_planted_genome(5'000, 7).genome.bases, make_planted_genome(5'000, 7).genome.bases);
  EXPECT_NE(make_planted_genome(5'000, 7).genome.bases, make_planted_genome(5'000, 8).genome.bases);
}

}  // namespace
}  // namespace weir::apps
