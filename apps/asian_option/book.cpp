#include "asian_option/book.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <random>
#include <string_view>

#include "common/file.hpp"
#include "common/input_error.hpp"
#include "common/parsing.hpp"

namespace weir::apps {

namespace {

constexpr std::size_t kMostSteps = 1'000'000, kMostPaths = 1'000'000'000, kFewestPaths = 4;

enum Column { spot, strike, rate, volatility, maturity, steps, paths, type, style, kColumns };
constexpr std::array<std::string_view, kColumns> kNames = {
    "spot", "strike", "rate", "volatility", "maturity", "steps", "paths", "type", "style"};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  for (std::size_t begin = 0; begin <= line.size();) {
    const std::size_t end = std::min(line.find(',', begin), line.size());
    fields.push_back(trimmed(line.substr(begin, end - begin)));
    begin = end + 1;
  }
  return fields;
}

/// The columns of a table, and how its lines are read.
class Table {
 public:
  Table(std::string_view header, const std::string& path) : names_(fields_of(header)) {
    places_.fill(names_.size());
    for (std::size_t i = 0; i < names_.size(); ++i) {
      const auto found = std::find(kNames.begin(), kNames.end(), names_[i]);
      if (found == kNames.end()) {
        fail_input(
            "{}:1: column {} is not one of spot, strike, rate, volatility, maturity, steps, "
            "paths, type, style",
            path, in_quotes(names_[i]));
      }
      std::size_t& place = places_[static_cast<std::size_t>(found - kNames.begin())];
      if (place != names_.size()) fail_input("{}:1: two columns are called {}", path, *found);
      place = i;
    }
    for (std::size_t column = spot; column < type; ++column) {
      if (!has(column)) fail_input("{}:1: there is no column {}", path, kNames[column]);
    }
  }

  /// Throws InputError with what is wrong, without the place.
  Option read(std::string_view line) const {
    const std::vector<std::string_view> fields = fields_of(line);
    if (fields.size() != names_.size()) {
      fail_input("found {} fields, expected {}", fields.size(), names_.size());
    }
    Option option{};
    option.spot = number(fields, spot, 1e-12, 1e12);
    option.rate = number(fields, rate, -10, 10);
    option.volatility = number(fields, volatility, 0, 100);
    option.maturity = number(fields, maturity, 0, 1000);
    option.steps = count(fields, steps, 1, kMostSteps);
    option.paths = count(fields, paths, kFewestPaths, kMostPaths);
    option.call = word(fields, type, "call", "put");
    option.floating = !word(fields, style, "fixed", "floating");
    if (!option.floating) option.strike = number(fields, strike, 1e-12, 1e12);
    return option;
  }

 private:
  bool has(std::size_t column) const { return places_[column] != names_.size(); }

  double number(const std::vector<std::string_view>& fields, Column column, double least,
                double most) const {
    const std::string_view text = fields[places_[column]];
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
      fail_input("{} {} is not a number", kNames[column], in_quotes(text));
    }
    if (value < least || value > most) {
      fail_input("{} {} is not between {:g} and {:g}", kNames[column], text, least, most);
    }
    return value;
  }

  std::size_t count(const std::vector<std::string_view>& fields, Column column, std::size_t least,
                    std::size_t most) const {
    const double value =
        number(fields, column, static_cast<double>(least), static_cast<double>(most));
    if (value != std::floor(value)) fail_input("{} {} is not whole", kNames[column], value);
    return static_cast<std::size_t>(value);
  }

  /// Whether a column says the first word, which it does when it is not there.
  bool word(const std::vector<std::string_view>& fields, Column column, std::string_view first,
            std::string_view second) const {
    if (!has(column) || fields[places_[column]] == first) return true;
    if (fields[places_[column]] == second) return false;
    fail_input("{} {} is neither {} nor {}", kNames[column], in_quotes(fields[places_[column]]),
               first, second);
  }

  std::vector<std::string_view> names_;
  std::array<std::size_t, kColumns> places_;  ///< of each column in a line
};

/// Cuts the first line off a text and returns it without the space around it.
std::string_view take_line(std::string_view& rest) {
  const std::size_t end = std::min(rest.find('\n'), rest.size());
  const std::string_view line = trimmed(rest.substr(0, end));
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return line;
}

}  // namespace

Book read_book(const std::string& path) { return read_book_from(MappedFile(path).bytes(), path); }

Book read_book_from(std::string_view bytes, const std::string& path) {
  std::string_view rest = without_mark(bytes);
  if (rest.empty()) fail_input("{}: found no option", path);
  const Table table(take_line(rest), path);
  Book book;
  for (std::size_t number = 2; !rest.empty(); ++number) {
    const std::string_view line = take_line(rest);
    if (line.empty()) continue;
    try {
      book.options.push_back(table.read(line));
      book.lines.push_back(number);
    } catch (const InputError& error) {
      book.bad.push_back({number, fmt::format("{}:{}: {}", path, number, error.what())});
    }
  }
  if (!book.options.empty()) return book;
  if (book.bad.empty()) fail_input("{}: found no option", path);
  fail_input("{}", book.bad.front().message);
}

Book generate_book(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto between = [&](double low, double high) {
    return low + (high - low) * static_cast<double>(random() >> 11) * 0x1p-53;
  };
  Book book;
  for (std::size_t i = 0; i < count; ++i) {
    Option option{};
    option.spot = std::round(between(20, 200));
    option.strike = std::round(option.spot * between(0.8, 1.2));
    option.rate = std::round(between(0, 600)) / 1e4;
    option.volatility = std::round(between(10, 60)) / 100;
    option.maturity = std::round(between(1, 24)) / 12;
    option.steps = static_cast<std::size_t>(std::max(1.0, std::round(21 * 12 * option.maturity)));
    option.paths = 8192;
    option.call = between(0, 1) < 0.5;
    option.floating = between(0, 1) < 0.25;
    book.options.push_back(option);
  }
  return book;
}

void write_valuations(const std::string& path, const Book& book,
                      const std::vector<Valuation>& valuations) {
  OutputFile file(path);
  file.append("line,price,standard_error,delta,vega,rho\n");
  for (std::size_t i = 0; i < valuations.size(); ++i) {
    const Valuation& v = valuations[i];
    const std::size_t line = book.lines.empty() ? i + 1 : book.lines[i];
    file.append(fmt::format("{},{:.17g},{:.17g},{:.17g},{:.17g},{:.17g}\n", line, v.price,
                            v.standard_error, v.delta, v.vega, v.rho));
  }
  file.flush();
  file.commit();
}

}  // namespace weir::apps
