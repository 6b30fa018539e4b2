#include "grid/halo_plan.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

namespace weir::rt {

namespace {

bool inside(const GridRange& inner, const GridRange& outer) noexcept {
  for (std::size_t d = 0; d < 3; ++d) {
    if (inner.begin[d] < outer.begin[d] || inner.end[d] > outer.end[d]) return false;
  }
  return true;
}

GridRange with_halo(const GridRange& block, const HaloShape& shape) noexcept {
  const GridCell grown{-shape.width[0], -shape.width[1], -shape.width[2]};
  return weir_grid_range_shrink(block, grown.data());
}

/// Returns the directions in which a block has a halo: -1, 0 or 1 in each dimension, not all 0.
std::vector<GridCell> directions_of(const HaloShape& shape) {
  std::vector<GridCell> all;
  for (int i = 0; i < 27; ++i) {
    const GridCell direction{i % 3 - 1, i / 3 % 3 - 1, i / 9 - 1};
    int moved = 0;
    bool has_halo = true;
    for (std::size_t d = 0; d < 3; ++d) {
      if (direction[d] == 0) continue;
      ++moved;
      has_halo = has_halo && shape.width[d] > 0;
    }
    if (has_halo && (moved == 1 || (shape.corners && moved > 1))) all.push_back(direction);
  }
  return all;
}

GridRange halo_towards(const GridRange& block, const GridCell& direction, const HaloShape& shape) {
  GridRange range = block;
  for (int d = 0; d < 3; ++d) {
    const auto side = static_cast<int>(direction[static_cast<std::size_t>(d)]);
    if (side == 0) continue;
    range = weir_grid_range_halo(range, d, side, shape.width[static_cast<std::size_t>(d)]);
  }
  return range;
}

/// Returns the possible shifts between a cell and its use in that direction: none, or by the
/// period.
std::vector<GridCell> shifts_towards(const Partition& grid, const GridCell& direction) {
  std::vector<GridCell> all{{0, 0, 0}};
  for (std::size_t d = 0; d < 3; ++d) {
    if (direction[d] == 0 || !grid.periodic[d]) continue;
    for (std::size_t i = 0, count = all.size(); i < count; ++i) {
      GridCell wrapped = all[i];
      wrapped[d] = direction[d] * grid.cells[d];
      all.push_back(wrapped);
    }
  }
  return all;
}

}  // namespace

HaloShape make_halo_shape(const Partition& grid, const weir_halo_options& options) {
  constexpr std::size_t kMost = std::numeric_limits<std::int32_t>::max();
  HaloShape shape{{0, 0, 0}, options.corners};
  for (unsigned d = 0; d < grid.dimensions; ++d) {
    for (std::size_t i = 0; i < grid.blocks.size(); ++i) {
      const GridRange& cells = grid.blocks[i].cells;
      const auto extent = static_cast<std::uint64_t>(cells.end[d] - cells.begin[d]);
      if (options.width[d] <= std::min(extent, std::uint64_t{kMost})) continue;
      fail_argument(
          "a halo of {} cells in {} is wider than block {}, which has {}: choose larger blocks or "
          "a narrower halo",
          options.width[d], kDimensionNames[d], i, extent);
    }
    shape.width[d] = static_cast<std::int64_t>(options.width[d]);
  }
  return shape;
}

std::vector<HaloTransfer> make_transfers(const Partition& grid, const HaloShape& shape, Rank rank) {
  std::vector<HaloTransfer> transfers;
  const std::vector<GridCell> directions = directions_of(shape);
  std::vector<std::vector<GridCell>> shifts;
  for (const GridCell& direction : directions) shifts.push_back(shifts_towards(grid, direction));
  std::vector<std::size_t> all(grid.blocks.size()), own;
  std::iota(all.begin(), all.end(), std::size_t{0});
  std::copy_if(all.begin(), all.end(), std::back_inserter(own),
               [&](std::size_t block) { return grid.blocks[block].rank == rank; });
  for (std::size_t to = 0; to < grid.blocks.size(); ++to) {
    const bool receives = grid.blocks[to].rank == rank;
    for (std::size_t i = 0; i < directions.size(); ++i) {
      const GridRange halo = halo_towards(grid.blocks[to].cells, directions[i], shape);
      for (const std::size_t from : receives ? all : own) {
        for (const GridCell& shift : shifts[i]) {
          const GridCell back{-shift[0], -shift[1], -shift[2]};
          const GridRange source = weir_grid_range_intersect(
              weir_grid_range_shift(halo, back.data()), grid.blocks[from].cells);
          if (!weir_grid_range_is_empty(source)) transfers.push_back({from, to, source, shift});
        }
      }
    }
  }
  return transfers;
}

std::vector<HaloTransfer> read_transfers(const Partition& grid, const HaloShape& shape,
                                         std::span<const weir_halo_transfer> given, Rank rank) {
  std::vector<HaloTransfer> transfers;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const weir_halo_transfer& asked = given[i];
    const std::size_t count = grid.blocks.size();
    if (asked.from >= count || asked.to >= count) {
      fail_argument("transfer {} is from block {} to block {}: there are {}", i, asked.from,
                    asked.to, count);
    }
    HaloTransfer transfer{asked.from, asked.to, asked.source, {}};
    for (std::size_t d = 0; d < 3; ++d) {
      if (d >= grid.dimensions) {
        transfer.source.begin[d] = 0;
        transfer.source.end[d] = 1;
        continue;
      }
      // For cells far outside of the grid the difference could overflow.
      const std::int64_t far = 4 * (grid.cells[d] + shape.width[d]);
      if (asked.target[d] < -far || asked.target[d] > far) {
        fail_argument("transfer {} goes to cell {} in {}: that is not in a halo", i,
                      asked.target[d], kDimensionNames[d]);
      }
      if (asked.source.begin[d] >= -far && asked.source.begin[d] <= far) {
        transfer.shift[d] = asked.target[d] - asked.source.begin[d];
      }
    }
    const GridRange& from = grid.blocks[asked.from].cells;
    if (weir_grid_range_is_empty(transfer.source) || !inside(transfer.source, from)) {
      fail_argument("transfer {} takes {} from block {}, which has {}", i,
                    to_text(transfer.source, grid.dimensions), asked.from,
                    to_text(from, grid.dimensions));
    }
    const GridRange room = with_halo(grid.blocks[asked.to].cells, shape);
    if (!inside(transfer.target(), room)) {
      fail_argument("transfer {} goes to {} of block {}, which has {} with its halo", i,
                    to_text(transfer.target(), grid.dimensions), asked.to,
                    to_text(room, grid.dimensions));
    }
    if (grid.blocks[asked.from].rank == rank || grid.blocks[asked.to].rank == rank) {
      transfers.push_back(transfer);
    }
  }
  return transfers;
}

BlockArrays::BlockArrays(const Partition& grid, const HaloShape& shape, Rank rank,
                         std::span<const weir_halo_field> fields,
                         std::span<const weir_grid_array> arrays)
    : blocks_(grid.blocks), places_(grid.blocks.size(), 0), width_(shape.width) {
  constexpr std::size_t kMostBytes = 1 << 20, kMostFields = 256;
  if (fields.empty()) fail_argument("a halo needs at least one field");
  if (fields.size() > kMostFields) {
    fail_argument("{} fields are more than {}: make two halos", fields.size(), kMostFields);
  }
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].element_bytes == 0 || fields[i].element_bytes > kMostBytes) {
      fail_argument("field {} has elements of {} bytes: give them from 1 to {}", i,
                    fields[i].element_bytes, kMostBytes);
    }
    element_bytes_.push_back(fields[i].element_bytes);
  }
  std::size_t mine = 0;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    if (blocks_[i].rank == rank) places_[i] = mine++;
  }
  if (arrays.size() != mine * fields.size()) {
    fail_argument("{} arrays for {} fields of {} blocks on rank {}: give {}", arrays.size(),
                  fields.size(), mine, rank, mine * fields.size());
  }
  arrays_.assign(arrays.begin(), arrays.end());
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    if (blocks_[i].rank != rank) continue;
    const GridRange room = with_halo(blocks_[i].cells, shape);
    for (std::size_t field = 0; field < fields.size(); ++field) {
      const weir_grid_array& given = array(i, field);
      if (given.first == nullptr) fail_argument("field {} of block {} is NULL", field, i);
      const auto extent = [&](std::size_t d) {
        return static_cast<std::size_t>(room.end[d] - room.begin[d]);
      };
      const std::size_t row = extent(0) * element_bytes_[field];
      if (extent(1) > 1 && given.row < row) {
        fail_argument("field {} of block {} has rows {} bytes apart, which are {} long with halos",
                      field, i, given.row, row);
      }
      const std::size_t row_stride = extent(1) > 1 ? given.row : row;
      if (extent(2) > 1 && given.plane / extent(1) < row_stride) {
        fail_argument("field {} of block {} has planes {} bytes apart: {} rows take {}", field, i,
                      given.plane, extent(1), extent(1) * row_stride);
      }
    }
  }
}

Strided BlockArrays::cells(std::size_t block, std::size_t field,
                           const GridRange& cells) const noexcept {
  const weir_grid_array& given = array(block, field);
  const GridRange& own = blocks_[block].cells;
  const auto element = static_cast<std::int64_t>(element_bytes_[field]);
  const auto row = static_cast<std::int64_t>(given.row);
  const auto plane = static_cast<std::int64_t>(given.plane);
  return {static_cast<std::byte*>(given.first) + (cells.begin[0] - own.begin[0]) * element +
              (cells.begin[1] - own.begin[1]) * row + (cells.begin[2] - own.begin[2]) * plane,
          static_cast<std::size_t>((cells.end[0] - cells.begin[0]) * element),
          static_cast<std::size_t>(cells.end[1] - cells.begin[1]),
          static_cast<std::size_t>(cells.end[2] - cells.begin[2]),
          row,
          plane};
}

GridCell BlockArrays::cell_at(std::size_t block, std::size_t field,
                              const std::byte* address) const noexcept {
  const weir_grid_array& given = array(block, field);
  const GridRange& own = blocks_[block].cells;
  const auto element = static_cast<std::int64_t>(element_bytes_[field]);
  const GridCell extent{own.end[0] - own.begin[0] + 2 * width_[0],
                        own.end[1] - own.begin[1] + 2 * width_[1],
                        own.end[2] - own.begin[2] + 2 * width_[2]};
  // A dimension with one row or plane has no stride.
  const std::int64_t row =
      extent[1] > 1 ? static_cast<std::int64_t>(given.row) : extent[0] * element;
  const std::int64_t plane =
      extent[2] > 1 ? static_cast<std::int64_t>(given.plane) : extent[1] * row;
  std::int64_t offset = address - static_cast<const std::byte*>(given.first) + width_[0] * element +
                        width_[1] * row + width_[2] * plane;
  const std::int64_t z = offset / plane;
  offset -= z * plane;
  return {own.begin[0] - width_[0] + offset % row / element,
          own.begin[1] - width_[1] + offset / row, own.begin[2] - width_[2] + z};
}

namespace {

/// Splits a part into pieces of at most one message, in whole rows or planes: both ranks split
/// alike.
void add_pieces(const HaloPlan::Part& part, std::vector<HaloPlan::Part>& parts) {
  const Strided& box = part.memory;
  const auto fit = [](std::size_t bytes, std::size_t most) {
    return std::clamp<std::size_t>(HaloPlan::kMessageBytes / bytes, 1, most);
  };
  const std::size_t rows = fit(box.row_bytes, box.rows);
  const std::size_t planes = rows < box.rows ? 1 : fit(box.row_bytes * box.rows, box.planes);
  for (std::size_t plane = 0; plane < box.planes; plane += planes) {
    for (std::size_t row = 0; row < box.rows; row += rows) {
      HaloPlan::Part& piece = parts.emplace_back(part);
      piece.memory.first += static_cast<std::ptrdiff_t>(plane) * box.plane +
                            static_cast<std::ptrdiff_t>(row) * box.row;
      piece.memory.rows = std::min(rows, box.rows - row);
      piece.memory.planes = std::min(planes, box.planes - plane);
    }
  }
}

std::vector<HaloPlan::Message> messages_of(const std::vector<HaloPlan::Part>& parts) {
  std::vector<HaloPlan::Message> messages(1);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::size_t bytes = parts[i].memory.bytes();
    if (messages.back().bytes > 0 && messages.back().bytes + bytes > HaloPlan::kMessageBytes) {
      messages.push_back({i, i, 0});
    }
    messages.back().last = i + 1;
    messages.back().bytes += bytes;
  }
  return messages;
}

}  // namespace

HaloPlan make_halo_plan(const Partition& grid, std::vector<HaloTransfer> transfers, Rank rank,
                        const BlockArrays& arrays) {
  HaloPlan plan;
  plan.transfers = std::move(transfers);
  std::map<Rank, HaloPlan::Peer> peers;
  const auto peer_of = [&](Rank other) -> HaloPlan::Peer& {
    HaloPlan::Peer& peer = peers[other];
    peer.rank = other;
    return peer;
  };
  for (std::size_t i = 0; i < plan.transfers.size(); ++i) {
    const HaloTransfer& transfer = plan.transfers[i];
    const Rank source = grid.blocks[transfer.from].rank, target = grid.blocks[transfer.to].rank;
    for (std::size_t field = 0; field < arrays.fields(); ++field) {
      HaloPlan::Part from{i, field, {}}, to{i, field, {}};
      if (source == rank) from.memory = arrays.cells(transfer.from, field, transfer.source);
      if (target == rank) to.memory = arrays.cells(transfer.to, field, transfer.target());
      if (source == target) {
        // Blocks may share an array, so that cells of one are the halo of the other.
        if (from.memory.first != to.memory.first) plan.copies.push_back({from, to});
      } else if (source == rank) {
        HaloPlan::Peer& peer = peer_of(target);
        peer.send_bytes += from.memory.bytes();
        add_pieces(from, peer.sends);
      } else {
        HaloPlan::Peer& peer = peer_of(source);
        peer.receive_bytes += to.memory.bytes();
        add_pieces(to, peer.receives);
      }
    }
  }
  for (auto& [other, peer] : peers) {
    peer.outgoing = messages_of(peer.sends);
    peer.incoming = messages_of(peer.receives);
    plan.peers.push_back(std::move(peer));
  }
  return plan;
}

}  // namespace weir::rt
