#include "gene_alignment/alignment.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace weir::apps {

namespace {

constexpr std::uint8_t kSideBySide = 0, kGapInWindow = 1, kGapInQuery = 2;

int score_of(char a, char b) noexcept { return a == b ? kMatch : kMismatch; }

/// A letter that differs from all others when it is not known.
char distinct(char letter) noexcept { return letter == kUnknown ? '\0' : letter; }

/// One row of the programme, in three loops: two of them make vectors.
void fill_row(char letter, const char* window, std::size_t width, const int* __restrict before,
              int* __restrict from_above, int* __restrict scores,
              std::uint8_t* __restrict steps) noexcept {
  for (std::size_t j = 0; j < width; ++j) {
    const int across = before[j] + score_of(letter, window[j]), up = before[j + 1] + kGap;
    from_above[j] = std::max(across, up);
    steps[j] = up > across ? kGapInWindow : kSideBySide;
  }
  int left = scores[0];
  for (std::size_t j = 0; j < width; ++j) {
    left = std::max(from_above[j], left + kGap);
    scores[j + 1] = left;
  }
  for (std::size_t j = 0; j < width; ++j) {
    steps[j] = scores[j + 1] > from_above[j] ? kGapInQuery : steps[j];
  }
}

/// A CIGAR, made from its end.
class BackwardCigar {
 public:
  void add(char operation) {
    if (!runs_.empty() && runs_.back().operation == operation) {
      ++runs_.back().length;
    } else {
      runs_.push_back({operation, 1});
    }
  }
  std::string text() const {
    std::string text;
    for (auto run = runs_.rbegin(); run != runs_.rend(); ++run) {
      text += fmt::format("{}{}", run->length, run->operation);
    }
    return text;
  }

 private:
  struct Run {
    char operation;
    std::size_t length;
  };
  std::vector<Run> runs_;
};

}  // namespace

SeedSet::SeedSet(std::string_view query) : bits_(kWords / kBits) {
  Word word;
  for (std::size_t i = 0; i < query.size(); ++i) {
    word.add(query[i]);
    if (i + 1 < kSeed || !all_known(query.substr(i + 1 - kSeed, kSeed))) continue;
    bits_[word.code / kBits] |= 1U << word.code % kBits;
  }
}

Alignment align(std::string_view query, std::string_view window,
                std::vector<std::uint8_t>& scratch) {
  const std::size_t width = window.size();
  if (scratch.size() < query.size() * width) scratch.resize(query.size() * width);
  std::vector<int> scores(width + 1, 0), before(width + 1), from_above(width);
  for (std::size_t i = 0; i < query.size(); ++i) {
    std::swap(scores, before);
    scores[0] = kGap * static_cast<int>(i + 1);
    fill_row(distinct(query[i]), window.data(), width, before.data(), from_above.data(),
             scores.data(), scratch.data() + i * width);
  }
  const auto best = std::max_element(scores.begin(), scores.end());
  Alignment found;
  found.score = *best;
  found.end = static_cast<std::size_t>(best - scores.begin());
  BackwardCigar cigar;
  std::size_t i = query.size(), j = found.end;
  while (i > 0) {
    const std::uint8_t step = j == 0 ? kGapInWindow : scratch[(i - 1) * width + j - 1];
    const bool same = step == kSideBySide && distinct(query[i - 1]) == window[j - 1];
    cigar.add(same ? '=' : step == kSideBySide ? 'X' : step == kGapInWindow ? 'I' : 'D');
    found.edits += !same;
    i -= step != kGapInQuery;
    j -= step != kGapInWindow;
  }
  found.begin = j;
  found.cigar = cigar.text();
  return found;
}

int score_from_the_end(std::string_view query, std::string_view window) {
  std::vector<int> below(query.size() + 1), column(query.size() + 1);
  for (std::size_t i = 0; i <= query.size(); ++i) {
    below[i] = kGap * static_cast<int>(query.size() - i);
  }
  int best = below[0];
  for (std::size_t j = window.size(); j-- > 0;) {
    column[query.size()] = 0;
    for (std::size_t i = query.size(); i-- > 0;) {
      column[i] = std::max({below[i + 1] + score_of(distinct(query[i]), window[j]),
                            column[i + 1] + kGap, below[i] + kGap});
    }
    std::swap(below, column);
    best = std::max(best, below[0]);
  }
  return best;
}

}  // namespace weir::apps
