// Makes bad inputs out of good ones, always the same ones for the same seed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weir::fuzz {

/// Random numbers that are the same with every library.
class Random {
 public:
  Random(std::uint64_t seed, std::uint64_t index);
  std::uint64_t next() noexcept;
  /// Below `bound`, which is not 0.
  std::size_t below(std::size_t bound) noexcept { return next() % bound; }
  bool one_in(std::size_t count) noexcept { return below(count) == 0; }

 private:
  std::uint64_t state_;
};

class Mutator {
 public:
  /// `seeds` is not empty; `words` are those of the input's language.
  Mutator(std::vector<std::string> seeds, std::vector<std::string> words, std::uint64_t seed)
      : seeds_(std::move(seeds)), words_(std::move(words)), seed_(seed) {}

  /// The input of an index, the same whatever was asked for before.
  std::string input(std::uint64_t index) const;

 private:
  void mutate(std::string& text, Random& random) const;

  const std::vector<std::string> seeds_, words_;
  const std::uint64_t seed_;
};

/// Reads the words of a libFuzzer dictionary: a quoted one on each line, # before a comment.
std::vector<std::string> read_dictionary(const std::string& path);

}  // namespace weir::fuzz
