// The plan of a halo exchange: which cells are copied between which blocks, with their addresses.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <weir/grid.h>

#include "fabric/link.hpp"
#include "fabric/strided.hpp"
#include "grid/grid.hpp"

namespace weir::rt {

struct HaloShape {
  GridCell width{1, 1, 1};  ///< 0 in dimensions that the grid does not have
  bool corners = false;
};

/// Reads the width from the options. Throws Error for a width larger than a block.
HaloShape make_halo_shape(const Partition& grid, const weir_halo_options& options);

/// Cells of one block and the halo cells of another block that receive them.
struct HaloTransfer {
  std::size_t from, to;  ///< block numbers
  GridRange source;
  GridCell shift;  ///< from a source cell to its target cell

  GridRange target() const noexcept { return weir_grid_range_shift(source, shift.data()); }
};

/// Returns the transfers that a rank sends or receives. They fill each halo cell that corresponds
/// to a cell of the grid, directly or by the period, once. Two ranks have their common transfers in
/// the same order.
std::vector<HaloTransfer> make_transfers(const Partition& grid, const HaloShape& shape, Rank rank);

/// The same for a plan of the program. Throws Error for cells outside of a block or its halo.
std::vector<HaloTransfer> read_transfers(const Partition& grid, const HaloShape& shape,
                                         std::span<const weir_halo_transfer> given, Rank rank);

/// The fields of a rank's blocks in memory.
class BlockArrays {
 public:
  /// Throws Error for missing arrays, and for arrays whose rows or planes overlap.
  BlockArrays(const Partition& grid, const HaloShape& shape, Rank rank,
              std::span<const weir_halo_field> fields, std::span<const weir_grid_array> arrays);

  std::size_t fields() const noexcept { return element_bytes_.size(); }
  std::size_t element_bytes(std::size_t field) const noexcept { return element_bytes_[field]; }

  /// Returns cells of a block of this rank, or of its halo.
  Strided cells(std::size_t block, std::size_t field, const GridRange& cells) const noexcept;
  /// Returns the cell at an address in a block's field, computed from the address alone: the
  /// inverse of cells().
  GridCell cell_at(std::size_t block, std::size_t field, const std::byte* address) const noexcept;

 private:
  const weir_grid_array& array(std::size_t block, std::size_t field) const noexcept {
    return arrays_[places_[block] * fields() + field];
  }

  std::vector<GridBlock> blocks_;
  std::vector<std::size_t> places_;  ///< index of each block among the blocks of the rank
  GridCell width_;
  std::vector<std::size_t> element_bytes_;
  std::vector<weir_grid_array> arrays_;
};

/// All copies and messages of one rank in a step.
struct HaloPlan {
  /// One field of a transfer, at its source or its target.
  struct Part {
    std::size_t transfer, field;
    Strided memory;
  };
  /// A transfer between two blocks of the rank. `to` is in the halo.
  struct Copy {
    Part from, to;
  };
  /// Consecutive parts [first, last).
  struct Message {
    std::size_t first = 0, last = 0, bytes = 0;
  };
  /// Exchange with another rank, at least one message in each direction. Large exchanges are split
  /// into several messages, so that packing and unpacking overlap with sending.
  struct Peer {
    Rank rank = 0;
    std::vector<Part> sends, receives;
    std::size_t send_bytes = 0, receive_bytes = 0;
    std::vector<Message> outgoing, incoming;
  };
  /// Approximate size of each message except the last: one frame.
  static constexpr std::size_t kMessageBytes = 60'000;

  std::vector<HaloTransfer> transfers;
  std::vector<Copy> copies;
  std::vector<Peer> peers;  ///< by rank
};

HaloPlan make_halo_plan(const Partition& grid, std::vector<HaloTransfer> transfers, Rank rank,
                        const BlockArrays& arrays);

}  // namespace weir::rt
