#include "grid/halo_check.hpp"

#include <cstdlib>
#include <cstring>

namespace weir::rt {

namespace {

/// Calls visit(address) for each cell of a box until it returns false.
template <class Visit>
bool for_each_cell(const Strided& box, std::size_t element, const Visit& visit) {
  for (std::size_t z = 0; z < box.planes; ++z) {
    for (std::size_t y = 0; y < box.rows; ++y) {
      std::byte* const row = box.first + static_cast<std::ptrdiff_t>(z) * box.plane +
                             static_cast<std::ptrdiff_t>(y) * box.row;
      for (std::size_t x = 0; x < box.row_bytes; x += element) {
        if (!visit(row + x)) return false;
      }
    }
  }
  return true;
}

}  // namespace

// ---- Arrays -------------------------------------------------------------------------------------

std::string HaloCheck::find_misplaced(Rank rank, const CellLocator& locate) const {
  std::string wrong;
  const auto check = [&](const HaloPlan::Part& part, std::size_t block) {
    if (!wrong.empty() || grid_.blocks[block].rank != rank) return;
    for_each_cell(part.memory, arrays_.element_bytes(part.field), [&](const std::byte* address) {
      wrong = compare_place(block, part.field, address, locate);
      return wrong.empty();
    });
  };
  const auto from = [&](const HaloPlan::Part& part) {
    check(part, plan_.transfers[part.transfer].from);
  };
  const auto to = [&](const HaloPlan::Part& part) {
    check(part, plan_.transfers[part.transfer].to);
  };
  for (const HaloPlan::Copy& copy : plan_.copies) {
    from(copy.from);
    to(copy.to);
  }
  for (const HaloPlan::Peer& peer : plan_.peers) {
    for (const HaloPlan::Part& part : peer.sends) from(part);
    for (const HaloPlan::Part& part : peer.receives) to(part);
  }
  return wrong;
}

std::string HaloCheck::compare_place(std::size_t block, std::size_t field, const std::byte* address,
                                     const CellLocator& locate) const {
  const GridCell cell = arrays_.cell_at(block, field, address);
  const auto* const kept = static_cast<const std::byte*>(locate(block, field, cell));
  if (kept == address) return {};
  const std::string place =
      fmt::format("block {} on rank {}, field {}: expected cell {}", block,
                  grid_.blocks[block].rank, field, to_text(cell, grid_.dimensions));
  if (kept == nullptr) return place + ", which the program keeps nowhere";
  return fmt::format(
      "{}, found {}: the program keeps them {} bytes apart; look at first, row and plane of the "
      "array",
      place, text_of_found(block, field, cell, address - kept, locate), std::abs(address - kept));
}

/// Returns the cell that the program stores `offset` bytes after `cell`, computed from the
/// distances to its neighbours.
std::string HaloCheck::text_of_found(std::size_t block, std::size_t field, const GridCell& cell,
                                     std::ptrdiff_t offset, const CellLocator& locate) const {
  const GridRange& own = grid_.blocks[block].cells;
  std::array<std::ptrdiff_t, 3> steps{};  // 0: unknown
  for (std::size_t d = 0; d < 3; ++d) {
    if (own.end[d] - own.begin[d] < 2) continue;
    GridCell low = cell, high = cell;
    low[d] = own.begin[d];
    high[d] = own.begin[d] + 1;
    const auto* const first = static_cast<const std::byte*>(locate(block, field, low));
    const auto* const second = static_cast<const std::byte*>(locate(block, field, high));
    if (first != nullptr && second != nullptr) steps[d] = second - first;
  }
  for (const bool nearest : {true, false}) {
    GridCell found = cell;
    std::ptrdiff_t rest = offset;
    for (std::size_t d = 3; d-- > 0;) {
      if (steps[d] == 0) continue;
      const std::ptrdiff_t half = nearest ? std::abs(steps[d]) / 2 : 0;
      const std::ptrdiff_t cells = (rest + (rest < 0 ? -half : half)) / steps[d];
      found[d] += cells;
      rest -= cells * steps[d];
    }
    if (rest == 0) return to_text(found, grid_.dimensions);
  }
  return "none";
}

// ---- Cells in messages --------------------------------------------------------------------------

std::size_t HaloCheck::bytes(const HaloPlan::Part& part) const noexcept {
  const std::size_t element = arrays_.element_bytes(part.field);
  return part.memory.bytes() / element * (element + sizeof(CellTag));
}

std::byte* HaloCheck::pack(const HaloPlan::Part& part, std::uint64_t step, std::byte* to) const {
  const HaloTransfer& transfer = plan_.transfers[part.transfer];
  const std::size_t element = arrays_.element_bytes(part.field);
  CellTag tag{{},
              {},
              step,
              grid_.blocks[transfer.from].rank,
              grid_.blocks[transfer.to].rank,
              static_cast<std::uint32_t>(transfer.from),
              static_cast<std::uint32_t>(transfer.to),
              static_cast<std::uint32_t>(part.field)};
  for_each_cell(part.memory, element, [&](const std::byte* address) {
    tag.source = arrays_.cell_at(transfer.from, part.field, address);
    for (std::size_t d = 0; d < 3; ++d) tag.target[d] = tag.source[d] + transfer.shift[d];
    std::memcpy(to, &tag, sizeof tag);
    std::memcpy(to + sizeof tag, address, element);
    to += sizeof tag + element;
    return true;
  });
  return to;
}

std::string HaloCheck::unpack(const std::byte* from, const HaloPlan::Part& part,
                              std::uint64_t step) const {
  const HaloTransfer& transfer = plan_.transfers[part.transfer];
  const std::size_t element = arrays_.element_bytes(part.field);
  std::string wrong;
  for_each_cell(part.memory, element, [&](std::byte* address) {
    CellTag tag;
    std::memcpy(&tag, from, sizeof tag);
    wrong =
        compare(tag, transfer, arrays_.cell_at(transfer.to, part.field, address), part.field, step);
    if (!wrong.empty()) return false;
    std::memcpy(address, from + sizeof tag, element);
    from += sizeof tag + element;
    return true;
  });
  return wrong;
}

std::string HaloCheck::compare(const CellTag& tag, const HaloTransfer& transfer,
                               const GridCell& written, std::size_t field,
                               std::uint64_t step) const {
  const bool right_place = same_cell(tag.source, written) && tag.target == written &&
                           tag.target_block == transfer.to && tag.field == field;
  const GridRange& owner = grid_.blocks[transfer.from].cells;
  bool owned = tag.source_block == transfer.from;
  for (std::size_t d = 0; d < 3; ++d) {
    owned = owned && tag.source[d] >= owner.begin[d] && tag.source[d] < owner.end[d];
  }
  if (right_place && owned && tag.step == step) return {};
  const auto text = [&](const GridCell& cell) { return to_text(cell, grid_.dimensions); };
  return fmt::format(
      "cell {} of block {} on rank {}, field {}, step {}, sent to {} of block {} on rank {}, lands "
      "at {} of block {} on rank {}, field {}, step {}{}",
      text(tag.source), tag.source_block, tag.source_rank, tag.field, tag.step, text(tag.target),
      tag.target_block, tag.target_rank, text(written), transfer.to, grid_.blocks[transfer.to].rank,
      field, step, owned ? "" : fmt::format("; block {} does not own it", transfer.from));
}

bool HaloCheck::same_cell(const GridCell& a, const GridCell& b) const {
  for (std::size_t d = 0; d < 3; ++d) {
    const std::int64_t distance = a[d] - b[d];
    if (distance != 0 && !(grid_.periodic[d] && distance % grid_.cells[d] == 0)) return false;
  }
  return true;
}

}  // namespace weir::rt
