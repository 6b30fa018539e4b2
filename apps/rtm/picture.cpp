#include "rtm/picture.hpp"

#include <algorithm>
#include <filesystem>

#include "common/file.hpp"
#include "common/matrix_io.hpp"

namespace weir::apps {

namespace {

bool is_grey(const std::string& path) { return std::filesystem::path(path).extension() == ".pgm"; }

template <class T>
char shade(T value, double strongest) {
  constexpr double kMiddle = 127.5;
  const double share = strongest > 0 ? static_cast<double>(value) / strongest : 0;
  const double level = kMiddle + kMiddle * std::clamp(share, -1.0, 1.0);
  return static_cast<char>(static_cast<unsigned char>(level));
}

}  // namespace

void check_picture_format(const std::string& path) {
  const std::string extension = std::filesystem::path(path).extension();
  if (extension == ".pgm" || extension == ".npy" || extension == ".mtx") return;
  fail_input("{}: extension '{}': expected .pgm for a picture, .npy or .mtx for its numbers", path,
             extension);
}

template <class T>
void write_picture(const std::string& path, const Matrix<T>& matrix, double strongest) {
  if (!is_grey(path)) return write_matrix(path, matrix);
  OutputFile file(path);
  file.append(fmt::format("P5\n{} {}\n255\n", matrix.columns(), matrix.rows()));
  std::string line(matrix.columns(), '\0');
  for (std::size_t row = 0; row < matrix.rows(); ++row) {
    for (std::size_t column = 0; column < matrix.columns(); ++column) {
      line[column] = shade(matrix(row, column), strongest);
    }
    file.append(line);
  }
  file.flush();
  file.commit();
}

template void write_picture(const std::string&, const Matrix<float>&, double);
template void write_picture(const std::string&, const Matrix<double>&, double);

}  // namespace weir::apps
