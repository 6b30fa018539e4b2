// Writes the equations of a steel bracket under load: a real matrix for `weir run cholesky`.
#include <charconv>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

#include "bracket.hpp"
#include "files.hpp"

namespace {

constexpr int usage_error = 2;
constexpr int output_error = 3;
constexpr std::size_t most_cells = 10;

constexpr const char* help =
    "usage: bracket [--cells N] [--output FOLDER]\n"
    "\n"
    "Assembles the stiffness matrix of an L-shaped steel bracket from linear cubes and writes\n"
    "  K.mtx         the matrix without the clamped unknowns: symmetric, positive definite\n"
    "  f.npy         the load\n"
    "  nodes.npy     the coordinates of the free nodes; unknown 3 n + axis belongs to node n\n"
    "  bracket.json  size, material and load\n"
    "\n"
    "  --cells N        cubes through the thickness, 1 to 10 (default: 3, 4212 unknowns)\n"
    "  --output FOLDER  where to write, made if it is not there (default: .)\n";

struct Options {
  Bracket bracket;
  std::string folder = ".";
};

bool parse_cells(std::string_view text, std::size_t& cells) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, cells);
  return error == std::errc{} && stop == end && cells >= 1 && cells <= most_cells;
}

/// Returns false after an error message.
bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; i += 2) {
    const std::string_view option = argv[i];
    if (option != "--cells" && option != "--output") {
      std::fprintf(stderr, "bracket: unknown argument '%s': see bracket --help\n", argv[i]);
      return false;
    }
    if (i + 1 == argc) {
      std::fprintf(stderr, "bracket: %s needs a value: see bracket --help\n", argv[i]);
      return false;
    }
    if (option == "--output") {
      options.folder = argv[i + 1];
    } else if (!parse_cells(argv[i + 1], options.bracket.cells)) {
      std::fprintf(stderr, "bracket: --cells is '%s', expected a number from 1 to %zu\n",
                   argv[i + 1], most_cells);
      return false;
    }
  }
  return true;
}

void make_folder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw std::runtime_error(folder + ": cannot be made: " + error.message());
}

void write(const Options& options) {
  const Equations equations = assemble(options.bracket);
  make_folder(options.folder);
  const std::string prefix = options.folder + "/";
  write_matrix_market(prefix + "K.mtx", equations.load.size(), equations.stiffness);
  write_npy(prefix + "f.npy", equations.load);
  write_npy(prefix + "nodes.npy", equations.nodes, axes);
  write_description(prefix + "bracket.json", options.bracket, equations);
  const std::size_t nonzeros = 2 * equations.stiffness.size() - equations.load.size();
  std::printf("bracket: %zu cubes, %zu unknowns, %zu nonzeros\n", equations.cubes,
              equations.load.size(), nonzeros);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && (std::strcmp(argv[1], "--help") == 0 || std::strcmp(argv[1], "-h") == 0)) {
    std::fputs(help, stdout);
    return 0;
  }
  Options options;
  if (!parse(argc, argv, options)) return usage_error;
  try {
    write(options);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bracket: %s\n", error.what());
    return output_error;
  }
}
