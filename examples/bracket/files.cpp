#include "files.hpp"

#include <array>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <stdexcept>
#include <system_error>

namespace {

void write(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) {
    throw std::runtime_error(path +
                             ": cannot be written: " + std::generic_category().message(errno));
  }
}

/// The shortest text that reads back as the same number.
template <class Number>
std::string text(Number number) {
  std::array<char, 32> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  return {digits.data(), end};
}

}  // namespace

void write_matrix_market(const std::string& path, std::size_t unknowns,
                         const std::vector<Entry>& lower) {
  const std::string size = text(unknowns);
  std::string lines = "%%MatrixMarket matrix coordinate real symmetric\n";
  lines += size + " " + size + " " + text(lower.size()) + "\n";
  for (const Entry& entry : lower) {
    lines += text(entry.row + 1) + " " + text(entry.column + 1) + " " + text(entry.value) + "\n";
  }
  write(path, lines);
}

void write_npy(const std::string& path, const std::vector<double>& values, std::size_t columns) {
  const std::string rows = text(values.size() / columns);
  const std::string shape = columns == 1 ? rows + "," : rows + ", " + text(columns);
  std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': (" + shape + "), }";
  header.resize(117, ' ');  // so that the numbers start at byte 128
  write(path, std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header + "\n" +
                  std::string(reinterpret_cast<const char*>(values.data()),
                              values.size() * sizeof(double)));
}

void write_description(const std::string& path, const Bracket& bracket,
                       const Equations& equations) {
  write(path,
        "{\"unknowns\": " + text(equations.load.size()) + ", \"cubes\": " + text(equations.cubes) +
            ", \"cell_mm\": " + text(bracket.cell()) + ", \"force_n\": " + text(bracket.force) +
            ", \"young_modulus_mpa\": " + text(bracket.material.young_modulus) +
            ", \"poisson_ratio\": " + text(bracket.material.poisson_ratio) + "}\n");
}
