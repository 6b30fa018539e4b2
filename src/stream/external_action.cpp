#include "stream/external_action.hpp"

#include <array>
#include <new>
#include <span>
#include <vector>

#include "base/thread_role.hpp"
#include "stream/context.hpp"

namespace weir::rt {

namespace {

constexpr std::size_t kFewOperands = 8;  ///< for more, the views need memory

std::size_t fill_views(const Action& action, std::span<weir_view> views) noexcept {
  std::size_t count = 0;
  for (const Operand& operand : action.operands()) {
    const Region& region = operand.region();
    views[count++] = {.address = operand.buffer->address_in(operand.memory) + region.offset,
                      .extent = {region.row, region.rows, region.planes},
                      .stride = {region.row_stride, region.plane_stride},
                      .access = static_cast<weir_access>(operand.access)};
  }
  return count;
}

}  // namespace

void ExternalCall::put_in(Action& action, const weir_external& external) noexcept {
  new (action.scalars().data()) ExternalCall{external.start, external.payload, State::waits};
}

ExternalCall& ExternalCall::of(Action& action) noexcept {
  return *std::launder(reinterpret_cast<ExternalCall*>(action.scalars().data()));
}

bool ExternalCall::change_state(Action& action, std::uint64_t id, State from, State to) noexcept {
  bool changed = false;
  action.event.guard(id, [&] {
    if (action.kind != ActionKind::external || of(action).state != from) return;
    of(action).state = to;
    changed = true;
  });
  return changed;
}

Outcome call_external(const Context& context, Action& action) noexcept {
  std::array<weir_view, kFewOperands> few;
  std::vector<weir_view> many;
  std::span<weir_view> views = few;
  if (action.operand_count > kFewOperands) {
    try {
      many.resize(action.operand_count);
    } catch (...) {
      return failed_outcome(WEIR_STATUS_OUT_OF_MEMORY, "no memory for its arguments");
    }
    views = many;
  }
  const weir_external_call started{.event = context.event_of(action, action.id()),
                                   .operands = views.data(),
                                   .operand_count = fill_views(action, views),
                                   .payload = ExternalCall::of(action).payload};
  if (action.traits.traced) action.times().started = context.now_ns();
  const std::uint64_t id = action.id();
  ExternalCall::change_state(action, id, ExternalCall::State::waits,
                             ExternalCall::State::in_progress);
  weir_status status = WEIR_STATUS_OK;
  Outcome thrown;
  {
    const NoWaitScope scope;
    try {
      status = ExternalCall::of(action).start(&started);
    } catch (...) {
      thrown = current_exception_outcome(WEIR_STATUS_KERNEL_ERROR);
      status = thrown.status;
    }
  }
  if (status == WEIR_STATUS_OK ||
      !ExternalCall::change_state(action, id, ExternalCall::State::in_progress,
                                  ExternalCall::State::completed)) {
    return {};
  }
  if (action.traits.traced) action.times().ended = context.now_ns();
  return failed_outcome(status,
                        thrown.ok() ? "its function could not start it" : thrown.message.c_str());
}

}  // namespace weir::rt
