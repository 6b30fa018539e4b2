// What a program must do: its execution one step after the other.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "program.hpp"

namespace weir::model {

using Words = std::array<std::uint64_t, kWords>;

/// Word of one instance.
struct Image {
  Words words{};
  std::array<std::size_t, kWords> writer;  ///< step that wrote each word, SIZE_MAX: none
  Image() { writer.fill(SIZE_MAX); }
};

struct Outcome {
  std::vector<weir_status> status;  ///< of each step that enqueues; of each synchronize
  std::map<std::array<std::size_t, 2>, Image> images;            ///< by buffer and memory
  std::vector<std::vector<std::uint64_t>> reads;                 ///< what each compute step finds
  std::vector<std::pair<std::uint64_t, std::size_t>> producers;  ///< values, and their steps
};

/// Executes the program in order. `cancelled` says of each step whether it was; which are cancelled
/// is a matter of timing, what follows from it is not.
Outcome run_sequentially(const Program& program, const std::vector<bool>& cancelled);

/// First contents of a word of host memory.
inline std::uint64_t initial_word(std::size_t buffer, std::size_t word) {
  return mix(buffer + 1, word, 0x5EED);
}

}  // namespace weir::model
