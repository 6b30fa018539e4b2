// Reads matrices and shows what was read: the driver of readers_against_scipy.py.
//
// Each line of standard input names a file: "double|float INPUT [OUTPUT.npy|OUTPUT.mtx]". The
// answer begins with a line, "read ROWS COLUMNS" or "refused MESSAGE". Without an output the
// elements follow, column by column, one hexadecimal number on each line.
#include <array>
#include <charconv>
#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>

#include "common/matrix_io.hpp"

namespace {

template <class T>
std::string elements(const weir::apps::Matrix<T>& matrix) {
  std::string text;
  std::array<char, 40> number;
  for (std::size_t k = 0; k < matrix.size(); ++k) {
    const auto [end, error] =
        std::to_chars(number.data(), number.data() + number.size(),
                      static_cast<double>(matrix.data()[k]), std::chars_format::hex);
    text.append(number.data(), end).push_back('\n');
  }
  return text;
}

template <class T>
std::string show(const std::string& input, const std::string& output) {
  const auto matrix = weir::apps::read_matrix<T>(input);
  if (!output.empty()) weir::apps::write_matrix(output, matrix);
  return fmt::format("read {} {}\n{}", matrix.rows(), matrix.columns(),
                     output.empty() ? elements(matrix) : "");
}

std::string answer(const std::string& precision, const std::string& input,
                   const std::string& output) {
  try {
    return precision == "float" ? show<float>(input, output) : show<double>(input, output);
  } catch (const std::exception& error) {
    return fmt::format("refused {}\n", error.what());
  }
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    std::string precision, input, output;
    std::istringstream(line) >> precision >> input >> output;
    std::cout << answer(precision, input, output) << std::flush;
  }
  return 0;
}
