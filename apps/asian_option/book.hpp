// A book of options: reads, generates and writes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "asian_option/option.hpp"

namespace weir::apps {

/// A line of a file that describes no option.
struct BadLine {
  std::size_t line;
  std::string message;  ///< with file and line
};

struct Book {
  std::vector<Option> options;
  std::vector<std::size_t> lines;  ///< of the file, in which the options are; empty: generated
  std::vector<BadLine> bad;
};

/// Reads a table of comma-separated values. Its first line names the columns, in any order: spot,
/// strike, rate, volatility, maturity, steps, paths, and if wanted type (call or put) and style
/// (fixed or floating). Throws InputError for a file that cannot be read, has wrong or missing
/// names, or has no valid line.
Book read_book(const std::string& path);
/// The same from the bytes of a file; the name stands for the path in messages.
Book read_book_from(std::string_view bytes, const std::string& name);

/// Makes options like those that banks have: the same for a seed.
Book generate_book(std::size_t count, std::uint64_t seed);

/// Writes line, price, standard_error, delta, vega and rho of each. Throws InputError.
void write_valuations(const std::string& path, const Book& book,
                      const std::vector<Valuation>& valuations);

}  // namespace weir::apps
