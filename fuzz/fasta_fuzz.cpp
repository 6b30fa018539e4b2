// The reader of sequences, compressed ones included.
#include <string>

#include "common/fasta.hpp"
#include "common/input_error.hpp"
#include "target.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using weir::fuzz::require;
  constexpr weir::apps::ReadLimits kLimits{.bytes = std::uint64_t{1} << 20};
  try {
    const auto sequences =
        weir::apps::read_fasta_from({reinterpret_cast<const char*>(data), size}, "input", kLimits);
    require(!sequences.empty(), "a file has a sequence");
    for (const weir::apps::Sequence& sequence : sequences) {
      require(!sequence.name.empty() && !sequence.bases.empty(), "a sequence has name and letters");
      require(sequence.bases.find_first_not_of("ACGTN") == std::string::npos, "letters are bases");
    }
  } catch (const weir::apps::InputError& error) {
    ++weir::fuzz::refused;
    weir::fuzz::require_one_line(error.what());
    require(std::string_view(error.what()).starts_with("input:"), "a refusal says where");
  }
  return 0;
}
