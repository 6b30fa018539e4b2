// What a program must do: its execution one step after the other.
#pragma once

#include <array>
#include <cstdint>
#include <map>
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
  std::map<std::array<std::size_t, 2>, Image> images;  ///< by buffer and memory
};

Outcome run_sequentially(const Program& program);

/// First contents of a word of host memory.
inline std::uint64_t initial_word(std::size_t buffer, std::size_t word) {
  return mix(buffer + 1, word, 0x5EED);
}

}  // namespace weir::model
