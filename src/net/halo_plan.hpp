// What an exchange of halos moves: which cells, between which blocks, from where to where in
// memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <weir/grid.h>

#include "net/grid.hpp"
#include "net/strided.hpp"
#include "net/transport.hpp"

namespace weir::rt {

struct HaloShape {
  GridCell width{1, 1, 1};  ///< 0 in a dimension that the grid lacks
  bool corners = false;
};

/// Reads the width that options ask for. Throws Error for one that is wider than a block.
HaloShape make_halo_shape(const Partition& grid, const weir_halo_options& options);

/// Cells of one block, and the cells of another's halo that they are for.
struct HaloTransfer {
  std::size_t from, to;  ///< numbers of blocks
  GridRange source;
  GridCell shift;  ///< from a cell to where it lands

  GridRange target() const noexcept { return weir_grid_range_shift(source, shift.data()); }
};

/// Returns what rank `rank` sends or receives, so that every cell of a halo that is a cell of the
/// grid, or by its period, is filled once. All ranks have those that they share in the same order.
std::vector<HaloTransfer> make_transfers(const Partition& grid, const HaloShape& shape, Rank rank);

/// The same for a plan of the program's own. Throws Error for cells outside of a block or its halo.
std::vector<HaloTransfer> read_transfers(const Partition& grid, const HaloShape& shape,
                                         std::span<const weir_halo_transfer> given, Rank rank);

/// The fields of a rank's blocks in memory.
class BlockArrays {
 public:
  /// Throws Error for arrays that are missing, or whose rows or planes overlap.
  BlockArrays(const Partition& grid, const HaloShape& shape, Rank rank,
              std::span<const weir_halo_field> fields, std::span<const weir_grid_array> arrays);

  std::size_t fields() const noexcept { return element_bytes_.size(); }
  std::size_t element_bytes(std::size_t field) const noexcept { return element_bytes_[field]; }

  /// Some cells of a block of this rank, or of its halo.
  Strided cells(std::size_t block, std::size_t field, const GridRange& cells) const noexcept;
  /// Returns which cell an address in a block's field is: the reverse of cells(), found from the
  /// address alone.
  GridCell cell_at(std::size_t block, std::size_t field, const std::byte* address) const noexcept;

 private:
  const weir_grid_array& array(std::size_t block, std::size_t field) const noexcept {
    return arrays_[places_[block] * fields() + field];
  }

  std::vector<GridBlock> blocks_;
  std::vector<std::size_t> places_;  ///< of each block among those of the rank
  GridCell width_;
  std::vector<std::size_t> element_bytes_;
  std::vector<weir_grid_array> arrays_;
};

/// All that one rank does in a step.
struct HaloPlan {
  /// One field of a transfer at one of its ends.
  struct Part {
    std::size_t transfer, field;
    Strided memory;
  };
  /// A transfer between two blocks of the rank. The second part is the halo.
  struct Copy {
    Part from, to;
  };
  /// Consecutive parts [first, last).
  struct Message {
    std::size_t first = 0, last = 0, bytes = 0;
  };
  /// What goes to and comes from another rank, each in at least one message: several, where there
  /// is much, so that some travel while others are packed and unpacked.
  struct Peer {
    Rank rank = 0;
    std::vector<Part> sends, receives;
    std::size_t send_bytes = 0, receive_bytes = 0;
    std::vector<Message> outgoing, incoming;
  };
  /// Bytes of a message that is not the last, about: it goes in one frame.
  static constexpr std::size_t kMessageBytes = 60'000;

  std::vector<HaloTransfer> transfers;
  std::vector<Copy> copies;
  std::vector<Peer> peers;  ///< by rank
};

HaloPlan make_halo_plan(const Partition& grid, std::vector<HaloTransfer> transfers, Rank rank,
                        const BlockArrays& arrays);

}  // namespace weir::rt
