// Creatures that evolve, after Hetero-Mark's program of that kind.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace weir::apps {

/// The fitness function of creatures.
enum class Problem {
  polynomial,  ///< fitness is the sum of f_j p_j^(j+1) over the genes p; all begin with 1/2
  target       ///< fitness is minus the squared distance to f; genes begin anywhere in [0, 1)
};

struct EvolutionOptions {
  Problem problem = Problem::polynomial;
  std::size_t creatures = 1024;  ///< of an island
  std::size_t genes = 500;
  std::size_t eliminate = 0;  ///< creatures that each generation replaces by new ones
  std::uint64_t seed = 1;
};

/// The progress of the evolution.
struct Era {
  std::size_t generation, island;
};

/// One of the islands. The calls for the creatures of a generation may run at the same time, those
/// of the next stage when all of this one are over: select() reads all fitnesses, cross() reads
/// creatures that others do not write. Everything is in double, in one order, without fused
/// products, and random numbers are numbered: all runs give the same bits.
class Island {
 public:
  static constexpr std::size_t kBest = 10;         ///< that go on as they are
  static constexpr std::size_t kMutatesEvery = 7;  ///< creature

  explicit Island(const EvolutionOptions& options);

  /// Makes a creature in the place of one that was eliminated, and all in the first generation.
  void reproduce(std::size_t creature, Era era) noexcept;
  void evaluate(std::size_t creature, Era era) noexcept;
  /// Puts creatures in order: fitter ones first, those equally fit by their number.
  void select() noexcept;
  /// Makes creature `rank` of the next generation of the one with that rank and one of the best.
  void cross(std::size_t rank, Era era) noexcept;
  void mutate(std::size_t rank, Era era) noexcept;

  /// For evaluation outside of this class: the genes of a creature, and its result.
  std::span<const double> genes_of(std::size_t creature, Era era) const noexcept {
    return std::span(genes_[era.generation % 2]).subspan(creature * options_.genes, options_.genes);
  }
  void note(std::size_t creature, double fitness) noexcept { fitness_[creature] = fitness; }
  std::span<const double> coefficients() const noexcept { return coefficients_; }

  /// The creatures that a generation leaves.
  std::span<const double> after(std::size_t generation) const noexcept {
    return genes_[(generation + 1) % 2];
  }
  /// Of the creatures that were evaluated last.
  double best_fitness() const noexcept { return fitness_[order_[0]]; }

 private:
  enum class Use : std::uint64_t { coefficients, creation, crossing, mutation };
  std::array<std::uint64_t, 4> draw(Use use, Era era, std::size_t creature,
                                    std::size_t block) const noexcept;
  double* creature_of(std::size_t generation, std::size_t creature) noexcept {
    return genes_[generation % 2].data() + creature * options_.genes;
  }

  const EvolutionOptions options_;
  std::vector<double> coefficients_;
  std::array<std::vector<double>, 2> genes_;  ///< creature by creature; generations take turns
  std::vector<double> fitness_;
  std::vector<std::uint32_t> order_;
};

/// A number that equal genes share: a sum over mixed words.
std::uint64_t hash_of(std::span<const double> genes) noexcept;

}  // namespace weir::apps
