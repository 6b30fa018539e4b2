#include "graph/call_list.hpp"

#include <algorithm>

#include "core/buffer.hpp"
#include "core/kernel.hpp"

namespace weir::rt {

namespace {

/// Makes room for one more element, so that adding it does not throw. Throws std::bad_alloc.
template <class T>
void make_room(std::vector<T>& list) {
  if (list.size() == list.capacity()) list.reserve(std::max<std::size_t>(16, 2 * list.size()));
}

}  // namespace

std::uint32_t CallList::buffer_of(const Operand& operand) {
  const auto next = static_cast<std::uint32_t>(buffers_.size());
  make_room(buffers_);
  const auto [found, added] = buffer_index_.try_emplace(operand.buffer->id(), next);
  if (added) {
    const Buffer& buffer = *operand.buffer;
    buffers_.push_back({operand.buffer, buffer.id(), buffer.bytes(), operand.offset, 0, false});
  }
  UsedBuffer& used = buffers_[found->second];
  used.begin = std::min(used.begin, operand.offset);
  used.end = std::max(used.end, operand.end());
  used.written = used.written || operand.writes();
  return found->second;
}

std::uint32_t CallList::piece_of(const Operand& operand) {
  const Piece piece{buffer_of(operand), operand.region()};
  const auto next = static_cast<std::uint32_t>(pieces_.size());
  make_room(pieces_);
  const auto [found, added] = piece_index_.try_emplace(piece, next);
  if (added) pieces_.push_back(piece);
  return found->second;
}

weir_view CallList::view_of(const Use& use) const noexcept {
  const Region& region = pieces_[use.piece].region;
  weir_view view{};
  view.extent[0] = region.row;
  view.extent[1] = region.rows;
  view.extent[2] = region.planes;
  view.stride[0] = region.row_stride;
  view.stride[1] = region.plane_stride;
  view.access = use.access;
  return view;
}

void CallList::add(const Action& action, std::span<const std::uint32_t> parameters) {
  Call call{};
  call.code = action.code;
  call.name = names_.emplace(action.label()).first->c_str();
  call.first_use = static_cast<std::uint32_t>(uses_.size());
  call.use_count = action.operand_count;
  call.first_scalar = static_cast<std::uint32_t>(scalars_.size());
  call.scalar_count = action.scalar_count;
  call.parallel = action.code->kernel->parallel();
  for (const Operand& operand : action.operands()) {
    uses_.push_back({piece_of(operand), static_cast<weir_access>(operand.access)});
  }
  const auto scalars = const_cast<Action&>(action).scalars();
  scalars_.insert(scalars_.end(), scalars.begin(), scalars.end());
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i] == 0) continue;
    parameters_.push_back({call.first_scalar + static_cast<std::uint32_t>(i), parameters[i] - 1});
  }
  most_uses_ = std::max<std::size_t>(most_uses_, call.use_count);
  calls_.push_back(call);
}

}  // namespace weir::rt
