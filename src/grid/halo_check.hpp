// The checked mode of halos: each cell is sent with its source and its target.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "grid/grid.hpp"
#include "grid/halo_plan.hpp"

namespace weir::rt {

/// Identifies a cell. The coordinates are computed from the address from which the cell was read.
struct CellTag {
  GridCell source, target;
  std::uint64_t step;
  std::uint32_t source_rank, target_rank, source_block, target_block, field;
  std::uint32_t unused = 0;
};

/// Returns where the program stores a cell of a block's field.
using CellLocator =
    std::function<const void*(std::size_t block, std::size_t field, const GridCell& cell)>;

/// Packs and unpacks the parts of a plan with a tag before each cell.
class HaloCheck {
 public:
  HaloCheck(const Partition& grid, const BlockArrays& arrays, const HaloPlan& plan)
      : grid_(grid), arrays_(arrays), plan_(plan) {}

  /// Compares where the arrays and the program store the cells of the plan. Returns a description
  /// of the first difference; "" if there is none.
  std::string find_misplaced(Rank rank, const CellLocator& locate) const;

  /// Returns the size of a part with tags.
  std::size_t bytes(const HaloPlan::Part& part) const noexcept;

  /// Packs a part and returns the end of the written bytes.
  std::byte* pack(const HaloPlan::Part& part, std::uint64_t step, std::byte* to) const;

  /// Unpacks cells that pack() wrote into a part. Stops before the first cell that does not belong
  /// there and returns a description of the error; "" if there is none.
  std::string unpack(const std::byte* from, const HaloPlan::Part& part, std::uint64_t step) const;

 private:
  std::string compare_place(std::size_t block, std::size_t field, const std::byte* address,
                            const CellLocator& locate) const;
  std::string text_of_found(std::size_t block, std::size_t field, const GridCell& cell,
                            std::ptrdiff_t offset, const CellLocator& locate) const;
  std::string compare(const CellTag& tag, const HaloTransfer& transfer, const GridCell& written,
                      std::size_t field, std::uint64_t step) const;
  bool same_cell(const GridCell& a, const GridCell& b) const;

  const Partition& grid_;
  const BlockArrays& arrays_;
  const HaloPlan& plan_;
};

}  // namespace weir::rt
