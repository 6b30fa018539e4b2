#include "common/matrix_io.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <system_error>

#include <unistd.h>

#include "common/file.hpp"
#include "common/matrix_market.hpp"
#include "common/npy.hpp"
#include "common/parsing.hpp"

namespace weir::apps {

namespace {

std::string_view extension(std::string_view path) {
  const std::string_view file = path.substr(path.rfind('/') + 1);
  const std::size_t dot = file.rfind('.');
  return dot == std::string_view::npos ? "" : file.substr(dot);
}

void check_matrix_extension(const std::string& path) {
  const std::string_view format = extension(path);
  if (format == ".npy" || format == ".mtx") return;
  fail_input("{}: found the extension {}, expected .npy or .mtx", path, in_quotes(format));
}

/// The number in a file; the largest there is without one, as "max" is none.
std::uint64_t limit_in(const std::string& path) {
  std::uint64_t bytes = 0;
  std::ifstream file(path);
  return file >> bytes ? bytes : std::numeric_limits<std::uint64_t>::max();
}

/// The least limit of the control groups that this process is in, one within the other.
std::uint64_t limit_of_groups() {
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const std::string kinds = line.substr(0, line.find(":/"));  // "4:memory", or "0:" of version 2
    const bool is_second = kinds == "0:";
    if (kinds == line || !(is_second || kinds.ends_with(":memory"))) continue;
    const std::string root = is_second ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    const char* const file = is_second ? "/memory.max" : "/memory.limit_in_bytes";
    std::string path = line.substr(kinds.size() + 1);
    for (; !path.empty(); path.resize(path.rfind('/'))) {
      least = std::min(least, limit_in(root + path + file));
    }
    least = std::min(least, limit_in(root + file));
  }
  return least;
}

}  // namespace

std::uint64_t half_of_memory() {
  const long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
  const std::uint64_t machine =
      static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page_bytes);
  static const std::uint64_t groups = limit_of_groups();
  return std::min(machine, groups) / 2;
}

template <class T>
Matrix<T> read_matrix_from(std::string_view bytes, std::string_view name,
                           const ReadLimits& limits) {
  if (bytes.empty()) fail_input("{}: byte 0: found an empty file, expected a matrix", name);
  if (bytes.starts_with(npy_magic)) return read_npy<T>(bytes, name, limits);
  if (bytes.starts_with(market_magic)) return read_matrix_market<T>(bytes, name, limits);
  fail_input("{}: byte 0: found {}, expected {} or \\x93NUMPY", name,
             in_quotes(bytes.substr(0, 16)), market_magic);
}

template <class T>
Matrix<T> read_matrix(const std::string& path, const ReadLimits& limits) {
  const MappedFile file(path);
  return read_matrix_from<T>(file.bytes(), path, limits);
}

template <class T>
void check_finite(const Matrix<T>& matrix, const std::string& path) {
  if (matrix.size() == 0) {
    fail_input("{}: found {} x {} numbers, expected at least one", path, matrix.rows(),
               matrix.columns());
  }
  const T* const wrong = std::find_if_not(matrix.data(), matrix.data() + matrix.size(),
                                          [](T value) { return std::isfinite(value); });
  const auto at = static_cast<std::size_t>(wrong - matrix.data());
  if (at == matrix.size()) return;
  fail_input("{}: row {}, column {}: found {}, expected a finite number", path,
             at % matrix.rows() + 1, at / matrix.rows() + 1, *wrong);
}

template <class T>
Matrix<T> read_finite_matrix(const std::string& path) {
  Matrix<T> matrix = read_matrix<T>(path);
  check_finite(matrix, path);
  return matrix;
}

void check_output_format(const std::string& path) {
  check_matrix_extension(path);
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code unknown;
  if (folder.empty() || std::filesystem::is_directory(folder, unknown)) return;
  fail_input("{}: cannot be written: '{}' is not a folder", path, folder.string());
}

template <class T>
void write_matrix(const std::string& path, const Matrix<T>& matrix) {
  check_matrix_extension(path);
  OutputFile file(path);
  if (extension(path) == ".npy") {
    write_npy(file, matrix);
  } else {
    write_matrix_market(file, matrix);
  }
  file.commit();
}

template Matrix<float> read_matrix(const std::string&, const ReadLimits&);
template Matrix<double> read_matrix(const std::string&, const ReadLimits&);
template Matrix<float> read_finite_matrix(const std::string&);
template Matrix<double> read_finite_matrix(const std::string&);
template void check_finite(const Matrix<float>&, const std::string&);
template void check_finite(const Matrix<double>&, const std::string&);
template Matrix<float> read_matrix_from(std::string_view, std::string_view, const ReadLimits&);
template Matrix<double> read_matrix_from(std::string_view, std::string_view, const ReadLimits&);
template void write_matrix(const std::string&, const Matrix<float>&);
template void write_matrix(const std::string&, const Matrix<double>&);

}  // namespace weir::apps
