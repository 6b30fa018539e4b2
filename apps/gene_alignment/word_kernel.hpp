// The kernel that finds words on a device.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <weir/weir.hpp>

#include "common/chunk_loop.hpp"
#include "gene_alignment/alignment.hpp"

namespace weir::apps {

/// Positions of a target, with its letters from there on, in which a query is looked for.
struct LetterBlock {
  static constexpr std::size_t kMost = 1024;  ///< positions
  std::uint32_t query, target;
  std::uint64_t first;
  std::uint32_t positions;
  std::array<char, kMost + kSeed - 1 + 2> letters;  ///< filled up to whole words
};

/// Those where a word of the query begins: bit i % 32 of word i / 32.
struct MarkedBlock {
  std::uint32_t query, target;
  std::uint64_t first;
  std::array<std::uint32_t, LetterBlock::kMost / 32> marks;
};

/// The kernel of the stage, which a rank registers that serves it to others.
weir::Kernel word_kernel(const weir::Runtime& runtime);
/// Makes a MarkedBlock of each LetterBlock. It reads the words of the queries from `sets`, in which
/// load_words() has put them.
DeviceStage word_stage(const weir::Runtime& runtime, const weir::Buffer& sets);
/// Returns memory of the runtime with the words of all queries.
weir::Buffer load_words(const weir::Runtime& runtime, std::span<const SeedSet> queries);

}  // namespace weir::apps
