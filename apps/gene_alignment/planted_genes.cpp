#include "gene_alignment/planted_genes.hpp"

#include <random>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace weir::apps {

namespace {

constexpr std::size_t kGenes = 4, kGeneLetters = 300;
constexpr std::size_t kChanges = 36;  ///< letters to a change, more or less

using Generator = std::mt19937_64;

char letter_of(Generator& random) { return "ACGT"[random() % 4]; }

std::string letters_of(std::size_t count, Generator& random) {
  std::string letters(count, ' ');
  for (char& letter : letters) letter = letter_of(random);
  return letters;
}

std::string changed_copy(std::string_view gene, Generator& random) {
  std::string copy;
  for (const char letter : gene) {
    switch (random() % (3 * kChanges)) {
      case 0: break;
      case 1: copy += {letter, letter_of(random)}; break;
      case 2: copy += letter_of(random); break;
      default: copy += letter; break;
    }
  }
  return copy;
}

}  // namespace

PlantedGenome make_planted_genome(std::size_t letters, std::uint64_t seed) {
  Generator random(seed);
  PlantedGenome made{{"genome", letters_of(letters, random)}, {}};
  const std::size_t quarter = letters / kGenes;
  for (std::size_t i = 0; i < kGenes; ++i) {
    Sequence gene{fmt::format("gene-{}", i + 1), letters_of(kGeneLetters, random)};
    const std::string copy = changed_copy(gene.bases, random);
    const std::size_t begin = i * quarter + random() % (quarter - copy.size());
    made.genome.bases.replace(begin, copy.size(), copy);
    made.genes.push_back({std::move(gene), begin, begin + copy.size()});
  }
  return made;
}

}  // namespace weir::apps
