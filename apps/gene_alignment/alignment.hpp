// Where a query begins to look like a target, and how well it fits there.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::apps {

/// Letters that a query and a target must share for a closer look.
constexpr std::size_t kSeed = 11;
constexpr int kMatch = 4, kMismatch = -1, kGap = -2;

/// A base that is not known. It differs from every letter, from itself, too.
constexpr char kUnknown = 'N';

inline bool all_known(std::string_view letters) noexcept {
  return letters.find(kUnknown) == std::string_view::npos;
}

/// The words of kSeed known letters in a query.
class SeedSet {
 public:
  explicit SeedSet(std::string_view query);

  /// Calls hit(position) for each position of [first, end) in the target where one of the words
  /// begins.
  template <class Hit>
  void find(std::string_view target, std::size_t first, std::size_t end, const Hit& hit) const {
    Word word;
    const std::size_t last = std::min(target.size(), end + kSeed - 1);
    for (std::size_t i = first; i < last; ++i) {
      word.add(target[i]);
      if (i + 1 < first + kSeed || !has(word.code)) continue;
      const std::size_t position = i + 1 - kSeed;
      if (all_known(target.substr(position, kSeed))) hit(position);
    }
  }

  static constexpr std::size_t kWords = std::size_t{1} << 2 * kSeed;  ///< that there are
  /// A bit for each word: letters from the first on are digits of base 4, 0 to 3 for A, C, T and G.
  /// A search for words of a target by these bits takes an N for a G.
  std::span<const std::uint32_t> words() const noexcept { return bits_; }

 private:
  static constexpr std::uint32_t kBits = 32;
  struct Word {
    std::uint32_t code = 0;
    void add(char base) noexcept {
      // The letters A, C, G and T differ in these bits.
      code = (code << 2 | (static_cast<std::uint32_t>(base) >> 1 & 3)) & (kWords - 1);
    }
  };
  bool has(std::uint32_t code) const noexcept { return bits_[code / kBits] >> code % kBits & 1; }

  std::vector<std::uint32_t> bits_;
};

/// A query and a part of a target with their letters side by side.
struct Alignment {
  int score = 0;
  std::size_t begin = 0, end = 0;  ///< of the part
  std::size_t edits = 0;           ///< letters that differ, are missing or are too many
  std::string cigar;               ///< as SAM has it, with = and X
  bool operator==(const Alignment&) const = default;
};

/// Aligns all of a query with the best part of a window: the textbook's dynamic programme, with
/// gaps of the same price each, and free ends of the window. Of equal scores the part that ends
/// first, and letters side by side before a gap in the window before one in the query. Needs a byte
/// of scratch for each pair of letters, which it makes room for.
Alignment align(std::string_view query, std::string_view window,
                std::vector<std::uint8_t>& scratch);

/// The score of align(), by a programme that begins at the ends and keeps no matrix.
int score_from_the_end(std::string_view query, std::string_view window);

}  // namespace weir::apps
