#include "gene_alignment/word_kernel.hpp"

#include <algorithm>

#include <weir/portable.h>

#include <words.wk.h>
#include "gene_alignment/words.wk"

namespace weir::apps {

static_assert(sizeof(LetterBlock) == BLOCK_WORDS * sizeof(std::uint32_t));
static_assert(offsetof(LetterBlock, letters) == LETTERS_AT && kSeed == SEED);
static_assert(sizeof(MarkedBlock) == MARKED_WORDS * sizeof(std::uint32_t));
static_assert(LetterBlock::kMost == std::size_t{WIDTH} * BITS);
static_assert(SeedSet::kWords == std::size_t{SET_WORDS} * BITS);

weir::Kernel word_kernel(const weir::Runtime& runtime) {
  return runtime.portable_kernel(
      {.kernel = &gene_words,
       .source = words_wk,
       .source_name = "words.wk",
       .name = "gene.words",
       .shape = WEIR_KERNEL_SHAPE_SERIAL,
       .cost =
           [](const weir_call* given) {
             constexpr double kOperations = 10, kReads = 8;  // for a position
             const double blocks = weir::Call(given).scalar<double>(0);
             return weir_cost{kOperations * LetterBlock::kMost * blocks,
                              (sizeof(LetterBlock) + kReads * LetterBlock::kMost) * blocks};
           }},
      [](const weir::Call& call) { return weir::Groups{call.scalar<std::uint32_t>(0)}; });
}

DeviceStage word_stage(const weir::Runtime& runtime, const weir::Buffer& sets) {
  return {.kernel = word_kernel(runtime),
          .item_bytes = sizeof(LetterBlock),
          .made_bytes = sizeof(MarkedBlock),
          .options = {.ordered = true, .tables = {weir::read(sets.all())}}};
}

weir::Buffer load_words(const weir::Runtime& runtime, std::span<const SeedSet> queries) {
  constexpr std::size_t kBytes = SET_WORDS * sizeof(std::uint32_t);
  weir::Buffer sets = runtime.buffer(queries.size() * kBytes, "words of queries");
  for (std::size_t i = 0; i < queries.size(); ++i) {
    const std::span<const std::uint32_t> words = queries[i].words();
    std::copy(words.begin(), words.end(), sets.data<std::uint32_t>() + i * words.size());
  }
  return sets;
}

}  // namespace weir::apps
