#include "evolution/population.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

#include "common/philox.hpp"

namespace weir::apps {

namespace {

constexpr std::size_t kWordBits = 64, kBlockWords = 4;
constexpr double kStep = 0.25;

/// Every power by repeated multiplication, as Hetero-Mark has it: gene j takes part j + 1 times.
double polynomial(const double* genes, std::span<const double> coefficients) noexcept {
  constexpr std::size_t kTogether = 64;
  double sum = 0;
  for (std::size_t first = 0; first < coefficients.size(); first += kTogether) {
    const std::size_t count = std::min(kTogether, coefficients.size() - first);
    double powers[kTogether];
    std::copy_n(genes + first, count, powers);
    for (std::size_t times = 0; times < first; ++times) {
      for (std::size_t i = 0; i < count; ++i) powers[i] *= genes[first + i];
    }
    for (std::size_t times = 1; times < count; ++times) {
      for (std::size_t i = times; i < count; ++i) powers[i] *= genes[first + i];
    }
    for (std::size_t i = 0; i < count; ++i) sum += powers[i] * coefficients[first + i];
  }
  return sum;
}

double nearness(const double* genes, std::span<const double> target) noexcept {
  double sum = 0;
  for (std::size_t i = 0; i < target.size(); ++i) {
    const double distance = genes[i] - target[i];
    sum -= distance * distance;
  }
  return sum;
}

}  // namespace

Island::Island(const EvolutionOptions& options)
    : options_(options),
      coefficients_(options.genes),
      fitness_(options.creatures),
      order_(options.creatures) {
  for (auto& genes : genes_) genes.resize(options.creatures * options.genes);
  for (std::size_t j = 0; j < options.genes; ++j) {
    coefficients_[j] =
        uniform(draw(Use::coefficients, {0, 0}, 0, j / kBlockWords)[j % kBlockWords]);
  }
}

PhiloxBlock Island::draw(Use use, Era era, std::size_t creature, std::size_t block) const noexcept {
  return philox({block, creature, 2 * era.generation + era.island, static_cast<std::uint64_t>(use)},
                {options_.seed, 0});
}

void Island::reproduce(std::size_t creature, Era era) noexcept {
  if (era.generation > 0 && creature + options_.eliminate < options_.creatures) return;
  double* const genes = creature_of(era.generation, creature);
  if (era.generation == 0 && options_.problem == Problem::polynomial) {
    std::fill_n(genes, options_.genes, 0.5);
    return;
  }
  PhiloxBlock block = {};
  for (std::size_t j = 0; j < options_.genes; ++j) {
    if (j % kBlockWords == 0) block = draw(Use::creation, era, creature, j / kBlockWords);
    genes[j] = uniform(block[j % kBlockWords]);
  }
}

void Island::evaluate(std::size_t creature, Era era) noexcept {
  const double* const genes = creature_of(era.generation, creature);
  fitness_[creature] = options_.problem == Problem::polynomial ? polynomial(genes, coefficients_)
                                                               : nearness(genes, coefficients_);
}

void Island::select() noexcept {
  std::iota(order_.begin(), order_.end(), 0U);
  std::sort(order_.begin(), order_.end(), [this](std::uint32_t a, std::uint32_t b) {
    return fitness_[a] != fitness_[b] ? fitness_[a] > fitness_[b] : a < b;
  });
}

void Island::cross(std::size_t rank, Era era) noexcept {
  const double* const from = creature_of(era.generation, order_[rank]);
  double* const to = creature_of(era.generation + 1, rank);
  std::copy_n(from, options_.genes, to);
  if (rank < kBest) return;
  const PhiloxBlock first = draw(Use::crossing, era, rank, 0);
  const double* const best = creature_of(era.generation, order_[first[0] % kBest]);
  PhiloxBlock block = {};
  constexpr std::size_t kBlockBits = kWordBits * kBlockWords;
  for (std::size_t j = 0; j < options_.genes; ++j) {
    if (j % kBlockBits == 0) block = draw(Use::crossing, era, rank, 1 + j / kBlockBits);
    if (block[j % kBlockBits / kWordBits] >> j % kWordBits & 1) to[j] = best[j];
  }
}

void Island::mutate(std::size_t rank, Era era) noexcept {
  if (rank < kBest || rank % kMutatesEvery != 0) return;
  double& gene = creature_of(era.generation + 1, rank)[rank % options_.genes];
  if (options_.problem == Problem::polynomial) {
    gene *= 0.5;
  } else {
    gene += (uniform(draw(Use::mutation, era, rank, 0)[0]) - 0.5) * kStep;
  }
}

std::uint64_t hash_of(std::span<const double> genes) noexcept {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < genes.size(); ++i) {
    std::uint64_t word = std::bit_cast<std::uint64_t>(genes[i]) + (i + 1) * 0x9E3779B97F4A7C15;
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9;
    word = (word ^ word >> 27) * 0x94D049BB133111EB;
    sum += word ^ word >> 31;
  }
  return sum;
}

}  // namespace weir::apps
