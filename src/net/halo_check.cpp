#include "net/halo_check.hpp"

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
    const std::int64_t apart = a[d] - b[d];
    if (apart != 0 && !(grid_.periodic[d] && apart % grid_.cells[d] == 0)) return false;
  }
  return true;
}

}  // namespace weir::rt
