// Grids and halos for C++: ranges with operations, owning handles, exceptions.
//
// Contracts are those of <weir/grid.h>.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <weir/grid.h>
#include <weir/fabric.hpp>
#include <weir/weir.hpp>

namespace weir {

/// A box of cells.
struct GridRange : weir_grid_range {
  using Cell = std::array<std::int64_t, 3>;

  GridRange() : weir_grid_range{{0, 0, 0}, {0, 0, 0}} {}
  GridRange(const weir_grid_range& range) : weir_grid_range(range) {}
  GridRange(const Cell& from, const Cell& to)
      : weir_grid_range{{from[0], from[1], from[2]}, {to[0], to[1], to[2]}} {}

  std::int64_t extent(int dimension) const { return end[dimension] - begin[dimension]; }
  std::uint64_t cells() const { return weir_grid_range_cells(*this); }
  bool empty() const { return weir_grid_range_is_empty(*this); }

  GridRange intersect(const GridRange& other) const {
    return weir_grid_range_intersect(*this, other);
  }
  GridRange shrink(const Cell& width) const { return weir_grid_range_shrink(*this, width.data()); }
  GridRange shift(const Cell& by) const { return weir_grid_range_shift(*this, by.data()); }
  GridRange face(int dimension, int side, std::int64_t width) const {
    return weir_grid_range_face(*this, dimension, side, width);
  }
  GridRange halo(int dimension, int side, std::int64_t width) const {
    return weir_grid_range_halo(*this, dimension, side, width);
  }

  bool operator==(const GridRange& other) const {
    return std::equal(begin, begin + 3, other.begin) && std::equal(end, end + 3, other.end);
  }
};

struct GridOptions {
  std::vector<std::size_t> cells;  ///< 2 or 3 numbers
  std::array<bool, 3> periodic = {};
  unsigned ranks = 1;
  std::array<std::size_t, 3> blocks = {};           ///< all 0: one for each rank
  std::array<std::vector<double>, 3> weights = {};  ///< of the blocks in each dimension; {}: equal
  std::vector<unsigned> owners = {};                ///< {}: consecutive blocks per rank
  std::vector<weir_grid_block> list = {};           ///< blocks instead of cuts
};

/// Owns a grid.
class Grid {
 public:
  explicit Grid(const GridOptions& wanted) {
    if (wanted.cells.size() > 3) {
      throw Error(WEIR_STATUS_INVALID_ARGUMENT, "a grid has at most 3 dimensions");
    }
    weir_grid_options options = WEIR_GRID_OPTIONS_INIT;
    options.dimensions = static_cast<unsigned>(wanted.cells.size());
    options.ranks = wanted.ranks;
    std::size_t blocks = 1;
    for (std::size_t d = 0; d < 3; ++d) {
      options.cells[d] = d < wanted.cells.size() ? wanted.cells[d] : 1;
      options.periodic[d] = wanted.periodic[d];
      options.blocks[d] = wanted.blocks[d];
      blocks *= wanted.blocks[d] > 0 ? wanted.blocks[d] : 1;
      if (wanted.weights[d].empty()) continue;
      expect(wanted.weights[d].size(), wanted.blocks[d], "weights for blocks");
      options.weights[d] = wanted.weights[d].data();
    }
    if (!wanted.owners.empty()) {
      expect(wanted.owners.size(), blocks, "owners for blocks");
      options.owners = wanted.owners.data();
    }
    if (!wanted.list.empty()) {
      options.list = wanted.list.data();
      options.list_count = wanted.list.size();
    }
    weir_grid* made = nullptr;
    check(weir_grid_create(&options, &made));
    grid_.reset(made);
    weir_grid_info info = WEIR_GRID_INFO_INIT;
    check(weir_grid_get_info(made, &info, nullptr, 0));
    blocks_.resize(info.block_count);
    check(weir_grid_get_info(made, &info, blocks_.data(), blocks_.size()));
    dimensions_ = info.dimensions;
    all_ = GridRange({0, 0, 0}, {static_cast<std::int64_t>(info.cells[0]),
                                 static_cast<std::int64_t>(info.cells[1]),
                                 static_cast<std::int64_t>(info.cells[2])});
  }

  weir_grid* handle() const noexcept { return grid_.get(); }
  unsigned dimensions() const noexcept { return dimensions_; }
  const GridRange& all() const noexcept { return all_; }
  const std::vector<weir_grid_block>& blocks() const noexcept { return blocks_; }
  /// Numbers of the blocks of a rank, in the order in which a halo takes their arrays.
  std::vector<std::size_t> blocks_of(unsigned rank) const {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      if (blocks_[i].rank == rank) found.push_back(i);
    }
    return found;
  }

 private:
  static void expect(std::size_t given, std::size_t needed, const char* what) {
    if (given == needed) return;
    throw Error(WEIR_STATUS_INVALID_ARGUMENT, "found " + std::to_string(given) + " " + what +
                                                  ", expected " + std::to_string(needed));
  }

  detail::Owner<weir_grid, weir_grid_destroy> grid_;
  unsigned dimensions_ = 0;
  GridRange all_;
  std::vector<weir_grid_block> blocks_;
};

struct HaloOptions {
  std::array<std::size_t, 3> width = {1, 1, 1};
  bool corners = false;
  std::vector<weir_halo_field> fields = {};
  std::vector<weir_grid_array> arrays = {};        ///< block after block
  std::vector<weir_halo_transfer> transfers = {};  ///< {}: from width and corners
  bool check = false;
  std::chrono::nanoseconds timeout = forever;
  /// Returns the address of a cell: weir_halo_options::locate. {}: arrays are not checked.
  std::function<const void*(std::size_t block, std::size_t field, const GridRange::Cell& cell)>
      locate = {};
};

/// Owns a plan for the exchange of halos.
class Halo {
 public:
  Halo() = default;
  Halo(const Fabric& fabric, const Grid& grid, const HaloOptions& wanted)
      : Halo(fabric.handle(), grid, wanted) {}
  /// For a fabric that C code has opened, as in weir_fabric_simulate().
  Halo(weir_fabric* fabric, const Grid& grid, const HaloOptions& wanted) {
    weir_halo_options options = WEIR_HALO_OPTIONS_INIT;
    for (std::size_t d = 0; d < 3; ++d) options.width[d] = wanted.width[d];
    options.corners = wanted.corners;
    options.fields = wanted.fields.data();
    options.field_count = wanted.fields.size();
    options.arrays = wanted.arrays.data();
    options.array_count = wanted.arrays.size();
    if (!wanted.transfers.empty()) {
      options.transfers = wanted.transfers.data();
      options.transfer_count = wanted.transfers.size();
    }
    options.check = wanted.check;
    options.timeout_ns = wanted.timeout.count();
    if (wanted.locate) {
      options.locate = locate;
      options.payload = const_cast<HaloOptions*>(&wanted);
    }
    weir_halo* made = nullptr;
    weir::check(weir_halo_create(fabric, grid.handle(), &options, &made));
    halo_.reset(made);
  }

  weir_halo* handle() const noexcept { return halo_.get(); }
  void start() const { check(weir_halo_start(handle())); }
  void finish(std::chrono::nanoseconds timeout = forever) const {
    check(weir_halo_finish(handle(), timeout.count()));
  }
  weir_halo_info info() const {
    weir_halo_info found = WEIR_HALO_INFO_INIT;
    check(weir_halo_get_info(handle(), &found));
    return found;
  }

 private:
  static const void* locate(std::size_t block, std::size_t field, const std::int64_t* cell,
                            void* options) noexcept {
    try {
      return static_cast<const HaloOptions*>(options)->locate(block, field,
                                                              {cell[0], cell[1], cell[2]});
    } catch (...) {  // the program has no such cell
      return nullptr;
    }
  }

  detail::Owner<weir_halo, weir_halo_destroy> halo_;
};

}  // namespace weir
