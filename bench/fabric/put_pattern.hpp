// Small puts from one rank to another: the problem.
//
//   PROGRAM stream|random|repeat [--items N] [--bytes 64] [--network shm|tcp|hosts]
//                                                            GB of items a second
//
// With hosts the program has been started by scripts/two_hosts.py.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "common/large_pages.hpp"
#include "common/program.hpp"

namespace weir_bench {

/// Items of rank 0 for a table of rank 1.
class PutPattern {
 public:
  explicit PutPattern(const Arguments& arguments)
      : pattern_(arguments.verb()),
        items_(static_cast<std::size_t>(arguments.number("--items", 1 << 20))),
        bytes_(static_cast<std::size_t>(arguments.number("--bytes", 64))),
        lines_(static_cast<std::size_t>(arguments.number("--lines", 1 << 20))) {
    if (pattern_ != "stream" && pattern_ != "random" && pattern_ != "repeat") {
      throw std::invalid_argument("choose from stream, random, repeat");
    }
  }

  std::size_t items() const { return items_; }
  std::size_t bytes() const { return bytes_; }
  std::size_t table_bytes() const { return lines_ * bytes_; }
  double gigabytes() const { return static_cast<double>(items_ * bytes_) * 1e-9; }

  std::uint64_t offset(std::size_t item) const {
    constexpr std::size_t kRepeated = 512;
    if (pattern_ == "stream") return item % lines_ * bytes_;
    const std::uint64_t drawn = mix(item);
    return (pattern_ == "random" ? drawn % lines_ : mix(drawn % kRepeated) % lines_) * bytes_;
  }
  /// What is in the first word of an item: no two are the same.
  static std::uint64_t word(std::size_t item) { return item + 1; }

  /// Offsets of all items, made before the clock starts.
  LargePages<std::uint64_t> offsets() const {
    LargePages<std::uint64_t> all(items_);
    for (std::size_t item = 0; item < items_; ++item) all[item] = offset(item);
    return all;
  }
  LargePages<std::byte> payload() const {
    LargePages<std::byte> all(items_ * bytes_);
    for (std::size_t item = 0; item < items_; ++item) {
      const std::uint64_t first = word(item);
      __builtin_memcpy(all.data() + item * bytes_, &first, sizeof first);
    }
    return all;
  }
  /// Throws unless a table has what the last item for each line put there.
  void check(const std::byte* table) const {
    std::vector<std::uint64_t> wanted(lines_);
    for (std::size_t item = 0; item < items_; ++item) wanted[offset(item) / bytes_] = word(item);
    for (std::size_t line = 0; line < lines_; ++line) {
      std::uint64_t found = 0;
      __builtin_memcpy(&found, table + line * bytes_, sizeof found);
      if (found != wanted[line]) {
        throw std::runtime_error("line " + std::to_string(line) + " has item " +
                                 std::to_string(found) + ", not " + std::to_string(wanted[line]));
      }
    }
  }

 private:
  static std::uint64_t mix(std::uint64_t value) {
    value = (value + 0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9;
    return value ^ (value >> 29);
  }

  std::string pattern_;
  std::size_t items_, bytes_, lines_;
};

}  // namespace weir_bench
