#include "bracket.hpp"

#include <algorithm>
#include <array>
#include <tuple>

namespace {

constexpr std::size_t no_node = static_cast<std::size_t>(-1);

struct Position {
  std::size_t x, y, z;
};

/// The grid of cubes that the bracket is cut from, with a number for each free node.
class Mesh {
 public:
  explicit Mesh(std::size_t cells)
      : cells_(cells), numbers_((width() + 1) * (depth() + 1) * (width() + 1), no_node) {}

  std::size_t width() const { return 5 * cells_; }
  std::size_t depth() const { return 4 * cells_; }
  std::size_t node_count() const { return count_; }

  /// Calls visit with the near corner of each cube.
  template <class Visit>
  void for_each_cube(const Visit& visit) const {
    for (std::size_t z = 0; z < width(); ++z) {
      for (std::size_t y = 0; y < depth(); ++y) {
        const std::size_t end = z < 4 * cells_ ? cells_ : width();
        for (std::size_t x = 0; x < end; ++x) visit(Position{x, y, z});
      }
    }
  }

  /// The number of a node, no_node if it is clamped.
  std::size_t& node(const Position& at) {
    return numbers_[(at.z * (depth() + 1) + at.y) * (width() + 1) + at.x];
  }

  std::size_t add_node() { return count_++; }

 private:
  std::size_t cells_;
  std::size_t count_ = 0;
  std::vector<std::size_t> numbers_;
};

Position corner_of(const Position& cube, std::size_t corner) {
  return {cube.x + (corner & 1), cube.y + (corner >> 1 & 1), cube.z + (corner >> 2 & 1)};
}

void number_nodes(const Bracket& bracket, Mesh& mesh, Equations& equations) {
  mesh.for_each_cube([&](const Position& cube) {
    ++equations.cubes;
    for (std::size_t corner = 0; corner < corners; ++corner) {
      const Position at = corner_of(cube, corner);
      if (at.z == 0 || mesh.node(at) != no_node) continue;
      mesh.node(at) = mesh.add_node();
      for (const std::size_t steps : {at.x, at.y, at.z}) {
        equations.nodes.push_back(static_cast<double>(steps) * bracket.cell());
      }
    }
  });
}

using Unknowns = std::array<std::size_t, corners * axes>;

Unknowns unknowns_of(const Position& cube, Mesh& mesh) {
  Unknowns unknowns;
  for (std::size_t k = 0; k < unknowns.size(); ++k) {
    const std::size_t node = mesh.node(corner_of(cube, k / axes));
    unknowns[k] = node == no_node ? no_node : axes * node + k % axes;
  }
  return unknowns;
}

void add_cube(const Unknowns& unknowns, const CubeStiffness& stiffness,
              std::vector<Entry>& entries) {
  for (std::size_t i = 0; i < unknowns.size(); ++i) {
    for (std::size_t j = 0; j < unknowns.size(); ++j) {
      const std::size_t row = unknowns[i], column = unknowns[j];
      if (row == no_node || column == no_node || row < column) continue;
      entries.push_back({row, column, stiffness[i][j]});
    }
  }
}

/// Sorts by columns and adds up the entries at the same position.
void compress(std::vector<Entry>& entries) {
  const auto position = [](const Entry& entry) { return std::tie(entry.column, entry.row); };
  std::ranges::stable_sort(entries, {}, position);
  std::size_t last = 0;
  for (std::size_t k = 1; k < entries.size(); ++k) {
    if (position(entries[k]) == position(entries[last])) {
      entries[last].value += entries[k].value;
    } else {
      entries[++last] = entries[k];
    }
  }
  entries.resize(last + 1);
}

/// Spreads the force evenly over the end face of the arm: each square gives its corners a quarter.
void add_load(const Bracket& bracket, Mesh& mesh, std::vector<double>& load) {
  const auto squares = static_cast<double>(bracket.cells * mesh.depth());
  mesh.for_each_cube([&](const Position& cube) {
    if (cube.x + 1 < mesh.width()) return;
    for (std::size_t corner = 1; corner < corners; corner += 2) {
      load[axes * mesh.node(corner_of(cube, corner)) + 2] -= bracket.force / squares / 4;
    }
  });
}

}  // namespace

Equations assemble(const Bracket& bracket) {
  Mesh mesh(bracket.cells);
  Equations equations;
  number_nodes(bracket, mesh, equations);

  const CubeStiffness stiffness = cube_stiffness(bracket.material, bracket.cell());
  mesh.for_each_cube([&](const Position& cube) {
    add_cube(unknowns_of(cube, mesh), stiffness, equations.stiffness);
  });
  compress(equations.stiffness);

  equations.load.resize(axes * mesh.node_count());
  add_load(bracket, mesh, equations.load);
  return equations;
}
