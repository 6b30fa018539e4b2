#include "mutator.hpp"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <string_view>

namespace weir::fuzz {

namespace {

constexpr std::size_t kMostBytes = 8192;

/// Numbers at which readers go wrong.
constexpr std::string_view kNumbers[] = {"0",
                                         "-0",
                                         "-1",
                                         "1",
                                         "+1",
                                         "00",
                                         "2147483647",
                                         "2147483648",
                                         "4294967295",
                                         "4294967296",
                                         "4294967297",
                                         "9223372036854775807",
                                         "9223372036854775808",
                                         "18446744073709551615",
                                         "18446744073709551616",
                                         "99999999999999999999",
                                         "-9223372036854775809",
                                         "1e9",
                                         "1e308",
                                         "1e309",
                                         "-1e309",
                                         "1e-320",
                                         "5e-324",
                                         "1e-400",
                                         "nan",
                                         "-nan",
                                         "nan(0x7)",
                                         "inf",
                                         "-inf",
                                         "infinity",
                                         "0x10",
                                         "1.",
                                         ".5",
                                         "1e",
                                         "1e+",
                                         "--1",
                                         "+-1",
                                         "1_0",
                                         "1,0",
                                         "1e99999999999",
                                         "0.1e-1",
                                         "3037000500",
                                         "4611686018427387904",
                                         "65536",
                                         "16777217",
                                         "1/3",
                                         "1d0",
                                         "\xd9\xa1"};

/// What does not belong into a text.
constexpr std::string_view kStrange[] = {"\r\n",
                                         "\r",
                                         "\n\n",
                                         "\t",
                                         " ",
                                         "\v",
                                         "\f",
                                         std::string_view("\0", 1),
                                         "\x7f",
                                         "\x1b[31m",
                                         "\xff",
                                         "\xc3",
                                         "\xc3\xa9",
                                         "\xef\xbb\xbf",
                                         "\xf4\x90\x80\x80",
                                         "\xed\xa0\x80",
                                         "%",
                                         "%s",
                                         "{}",
                                         "'",
                                         "\"",
                                         "\\",
                                         "(((((((((((((((((",
                                         "))))",
                                         "[[[[[[[[",
                                         "{{{{{{{{",
                                         ",",
                                         "=",
                                         ":",
                                         "#",
                                         ";"};

template <std::size_t count>
std::string_view any_of(const std::string_view (&list)[count], Random& random) {
  return list[random.below(count)];
}

std::size_t position(const std::string& text, Random& random) {
  return random.below(text.size() + 1);
}

/// A piece of a text that begins anywhere.
std::string_view piece(std::string_view text, Random& random) {
  const std::size_t begin = random.below(text.size() + 1);
  const std::size_t longest = random.one_in(2) ? 8 : text.size() - begin;
  return text.substr(begin, random.below(longest + 1));
}

/// The line that holds a position, with its end.
std::string_view line_at(std::string_view text, std::size_t at) {
  const std::size_t before = at == 0 ? std::string_view::npos : text.rfind('\n', at - 1);
  const std::size_t begin = before == std::string_view::npos ? 0 : before + 1;
  const std::size_t end = text.find('\n', at);
  return text.substr(begin, end == std::string_view::npos ? end : end + 1 - begin);
}

void replace_number(std::string& text, Random& random) {
  const auto digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  const std::size_t at = position(text, random);
  const auto begin =
      std::find_if(text.begin() + static_cast<std::ptrdiff_t>(at), text.end(), digit);
  const auto end = std::find_if_not(begin, text.end(), digit);
  text.replace(begin, end, any_of(kNumbers, random));
}

void change_line(std::string& text, Random& random) {
  if (text.empty()) return;
  const std::string_view line = line_at(text, random.below(text.size()));
  const std::string copy(line);
  const auto begin = static_cast<std::size_t>(line.data() - text.data());
  switch (random.below(3)) {
    case 0: text.erase(begin, copy.size()); break;
    case 1: text.insert(begin, copy); break;
    default: text.insert(random.below(text.size() + 1), copy);
  }
}

void use_windows_line_ends(std::string& text) {
  for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at + 2)) {
    text.insert(at, 1, '\r');
  }
}

/// Writes a number of the machine over some bytes, as lengths and versions are stored.
void write_binary(std::string& text, Random& random) {
  static constexpr std::uint64_t numbers[] = {0,      1,          0x7f,       0x80,    0xff,
                                              0x7fff, 0x80000000, 0xffffffff, ~0ull,   64,
                                              0xffff, 0x7fffffff, 128,        1u << 20};
  const std::uint64_t number = numbers[random.below(std::size(numbers))];
  const std::size_t bytes = std::size_t{1} << random.below(4);
  const std::size_t at = random.below(std::min<std::size_t>(text.size(), 16) + 1);
  for (std::size_t i = 0; i < bytes && at + i < text.size(); ++i) {
    text[at + i] = static_cast<char>(number >> (8 * i));
  }
}

void repeat_piece(std::string& text, Random& random) {
  const std::string copy(piece(text, random));
  const std::size_t at = position(text, random);
  for (std::size_t count = random.below(64); count > 0 && text.size() < kMostBytes; --count) {
    text.insert(at, copy);
  }
}

std::string noise(Random& random) {
  std::string text(1 + random.below(random.one_in(4) ? 400 : 60), '\0');
  for (char& c : text) c = static_cast<char>(random.next());
  return text;
}

}  // namespace

Random::Random(std::uint64_t seed, std::uint64_t index)
    : state_(seed * 0x9e3779b97f4a7c15 ^ index * 0xd1b54a32d192ed03) {}

/// SplitMix64.
std::uint64_t Random::next() noexcept {
  std::uint64_t mixed = state_ += 0x9e3779b97f4a7c15;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
  return mixed ^ (mixed >> 31);
}

std::string Mutator::input(std::uint64_t index) const {
  Random random(seed_, index);
  if (random.one_in(16)) return noise(random);
  std::string text = seeds_[random.below(seeds_.size())];
  for (std::size_t changes = std::size_t{1} << random.below(4); changes > 0; --changes) {
    mutate(text, random);
  }
  text.resize(std::min(text.size(), kMostBytes));
  return text;
}

void Mutator::mutate(std::string& text, Random& random) const {
  const std::size_t at = position(text, random);
  switch (random.below(14)) {
    case 0: text.resize(at); break;
    case 1: text.erase(at, piece(text, random).size()); break;
    case 2: text.insert(at, any_of(kStrange, random)); break;
    case 3: text.insert(at, any_of(kNumbers, random)); break;
    case 4:
    case 5: replace_number(text, random); break;
    case 6:
    case 7: change_line(text, random); break;
    case 8: use_windows_line_ends(text); break;
    case 9: write_binary(text, random); break;
    case 10: repeat_piece(text, random); break;
    case 11: text.insert(at, piece(seeds_[random.below(seeds_.size())], random)); break;
    case 12:
      if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << random.below(8)));
      break;
    default:
      if (words_.empty()) {
        text.insert(at, 1, static_cast<char>(random.next()));
      } else {
        text.replace(at, piece(text, random).size(), words_[random.below(words_.size())]);
      }
  }
}

std::vector<std::string> read_dictionary(const std::string& path) {
  std::vector<std::string> words;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::size_t begin = line.find('"'), end = line.rfind('"');
    if (line.starts_with('#') || begin == end) continue;
    std::string word;
    for (std::size_t i = begin + 1; i < end; ++i) {
      if (line[i] != '\\') {
        word += line[i];
      } else if (line[++i] == 'x') {
        word += static_cast<char>(std::stoi(line.substr(i + 1, 2), nullptr, 16));
        i += 2;
      } else {
        word += line[i];
      }
    }
    words.push_back(std::move(word));
  }
  return words;
}

}  // namespace weir::fuzz
