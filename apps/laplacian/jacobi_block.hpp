// A block of the grid in memory: two fields with halos, of which each step reads one and writes the
// other.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include <weir/grid.hpp>

#include "common/app_streams.hpp"
#include "common/matrix.hpp"
#include "laplacian/problem.hpp"

namespace weir::apps {

template <class T>
class JacobiBlock {
 public:
  /// Cells before the first one of a row: it begins a line of the cache.
  static constexpr std::int64_t kLead = 16;

  /// `parts` actions make the interior. Around the block there is a halo of so many cells in each
  /// dimension, one in x.
  JacobiBlock(const weir::Runtime& runtime, const weir::Grid& grid, std::size_t number,
              const weir::GridRange::Cell& halo, const AppStream& bound, std::size_t parts)
      : stream_(&bound), number_(number), cells_(grid.blocks()[number].cells), halo_(halo) {
    row_ = kLead + (cells_.extent(0) + kLead) / kLead * kLead;
    plane_ = row_ * (cells_.extent(1) + 2 * halo_[1]);
    first_ = halo_[2] * plane_ + halo_[1] * row_ + kLead;
    for (std::size_t field = 0; field < 2; ++field) {
      Matrix<T>& memory = memory_[field];
      memory = Matrix<T>(static_cast<std::size_t>(plane_),
                         static_cast<std::size_t>(cells_.extent(2) + 2 * halo_[2]));
      fields_[field] = runtime.wrap(memory.data(), memory.size() * sizeof(T), "field");
    }
    cut(grid, parts);
  }

  const AppStream& stream() const noexcept { return *stream_; }
  std::size_t number() const noexcept { return number_; }
  const weir::GridRange& cells() const noexcept { return cells_; }
  weir::GridRange halo(int dimension, int side) const {
    return cells_.halo(dimension, side, halo_[static_cast<std::size_t>(dimension)]);
  }
  std::int64_t row() const noexcept { return row_; }
  std::int64_t plane() const noexcept { return plane_; }
  /// The edges that neighbours need, and the interior: together all cells, each once.
  const std::vector<weir::GridRange>& edges() const noexcept { return edges_; }
  const std::vector<weir::GridRange>& interior() const noexcept { return interior_; }
  std::size_t bytes() const noexcept { return 2 * memory_[0].size() * sizeof(T); }

  const weir::Buffer& buffer(std::size_t field) const noexcept { return fields_[field]; }
  weir::Region region(std::size_t field, const weir::GridRange& range) const {
    return {fields_[field].handle(), weir_grid_region(range, cells_, sizeof(T), bytes_of(first_),
                                                      bytes_of(row_), bytes_of(plane_))};
  }
  /// Where a cell of it, or of its halo, is kept.
  const T* find(std::size_t field, const weir::GridRange::Cell& cell) const {
    return memory_[field].data() + index(cell[0], cell[1], cell[2]);
  }
  weir_grid_array array(std::size_t field) const {
    return {const_cast<T*>(memory_[field].data()) + first_, bytes_of(row_), bytes_of(plane_)};
  }
  /// Of a cell or a halo, in the program's memory.
  T& at(std::size_t field, std::int64_t x, std::int64_t y, std::int64_t z) {
    return memory_[field].data()[index(x, y, z)];
  }
  const T& at(std::size_t field, std::int64_t x, std::int64_t y, std::int64_t z) const {
    return memory_[field].data()[index(x, y, z)];
  }

  /// Fills the first field, and the halos of both: the border's stay as they are.
  void fill(const JacobiProblem& problem) {
    const weir::GridRange all = cells_.shrink({-halo_[0], -halo_[1], -halo_[2]});
    for_each(all, [&](std::int64_t x, std::int64_t y, std::int64_t z) {
      const T value = static_cast<T>(problem.start(x, y, z));
      at(0, x, y, z) = value;
      at(1, x, y, z) = value;
    });
  }

  template <class Visit>
  static void for_each(const weir::GridRange& range, const Visit& visit) {
    for (std::int64_t z = range.begin[2]; z < range.end[2]; ++z) {
      for (std::int64_t y = range.begin[1]; y < range.end[1]; ++y) {
        for (std::int64_t x = range.begin[0]; x < range.end[0]; ++x) visit(x, y, z);
      }
    }
  }

 private:
  static std::size_t bytes_of(std::int64_t elements) {
    return static_cast<std::size_t>(elements) * sizeof(T);
  }
  std::int64_t index(std::int64_t x, std::int64_t y, std::int64_t z) const {
    return first_ + (x - cells_.begin[0]) + (y - cells_.begin[1]) * row_ +
           (z - cells_.begin[2]) * plane_;
  }

  /// Takes edges off where there are neighbours, and divides what is left along the slowest
  /// dimension.
  void cut(const weir::Grid& grid, std::size_t parts) {
    weir::GridRange left = cells_;
    const int slowest = static_cast<int>(grid.dimensions()) - 1;
    for (int d = slowest; d >= 0; --d) {
      for (const int side : {-1, 1}) {
        const bool border = side < 0 ? cells_.begin[d] == 0 : cells_.end[d] == grid.all().end[d];
        if (border || left.empty()) continue;
        const std::int64_t width = std::min(halo_[static_cast<std::size_t>(d)], left.extent(d));
        edges_.push_back(left.face(d, side, width));
        (side < 0 ? left.begin : left.end)[d] -= side * width;
      }
    }
    if (left.empty()) return;
    const std::int64_t extent = left.extent(slowest);
    const std::int64_t count = std::min(static_cast<std::int64_t>(parts), extent);
    for (std::int64_t i = 0; i < count; ++i) {
      weir::GridRange part = left;
      part.begin[slowest] = left.begin[slowest] + extent * i / count;
      part.end[slowest] = left.begin[slowest] + extent * (i + 1) / count;
      interior_.push_back(part);
    }
  }

  const AppStream* stream_;
  std::size_t number_;
  weir::GridRange cells_;
  weir::GridRange::Cell halo_;
  std::int64_t row_ = 0, plane_ = 0, first_ = 0;  ///< in elements
  std::array<Matrix<T>, 2> memory_;
  std::array<weir::Buffer, 2> fields_;  ///< they go before the memory that they wrap
  std::vector<weir::GridRange> edges_, interior_;
};

}  // namespace weir::apps
