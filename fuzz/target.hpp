// What the fuzz targets share with the programs that call them.
//
// A target is one file, NAME_fuzz.cpp, that defines LLVMFuzzerTestOneInput(); its seeds are in
// tests/corpus/NAME, its words, if it has any, in tests/corpus/NAME.dict. An input is bad luck for
// the product when the target aborts, throws, leaks, takes too long or too much memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace weir::fuzz {

/// Inputs that the reader refused. The other ones it took.
inline std::uint64_t refused = 0;

/// Aborts and says why unless `holds`.
inline void require(bool holds, std::string_view what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: not true: %.*s\n", static_cast<int>(what.size()), what.data());
  std::abort();
}

/// Aborts unless a message is what all messages are: one line of text.
inline void require_one_line(std::string_view message) {
  require(!message.empty(), "a refusal has a message");
  for (const char c : message) {
    const bool control = static_cast<unsigned char>(c) < ' ' || c == '\x7f';
    if (control)
      std::fprintf(stderr, "fuzz: %.*s\n", static_cast<int>(message.size()), message.data());
    require(!control, "a message is one line without control characters");
  }
}

}  // namespace weir::fuzz
