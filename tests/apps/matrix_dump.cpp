// Reads a matrix and shows what was read: the driver of readers_against_scipy.py.
#include <array>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <string>

#include "common/matrix_io.hpp"

namespace {

constexpr int usage_error = 2;
constexpr int input_error = 3;

/// Prints "rows columns" and the elements, column by column, as hexadecimal numbers.
template <class T>
void print(const weir::apps::Matrix<T>& matrix) {
  std::string text = fmt::format("{} {}\n", matrix.rows(), matrix.columns());
  std::array<char, 40> number;
  for (std::size_t k = 0; k < matrix.size(); ++k) {
    const auto [end, error] =
        std::to_chars(number.data(), number.data() + number.size(),
                      static_cast<double>(matrix.data()[k]), std::chars_format::hex);
    text.append(number.data(), end).push_back('\n');
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
}

template <class T>
void show(const std::string& input, const char* output) {
  const auto matrix = weir::apps::read_matrix<T>(input);
  if (output) return weir::apps::write_matrix(output, matrix);
  print(matrix);
}

}  // namespace

int main(int argc, char** argv) {
  const bool single = argc > 1 && std::strcmp(argv[1], "--float") == 0;
  const int first = single ? 2 : 1;
  if (argc != first + 1 && argc != first + 2) {
    std::fprintf(stderr, "usage: matrix_dump [--float] FILE [OUTPUT.npy|OUTPUT.mtx]\n");
    return usage_error;
  }
  const char* output = argc == first + 2 ? argv[first + 1] : nullptr;
  try {
    single ? show<float>(argv[first], output) : show<double>(argv[first], output);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return input_error;
  }
}
