#include "core/action.hpp"

#include "core/kernel.hpp"

namespace weir::rt {

/// Allocates memory for the arguments that do not fit into the action.
void Action::spill(std::size_t of_operands, std::size_t others) {
  const bool all = of_operands > kInlineBytes;
  const std::size_t bytes = all ? of_operands + others : others;
  if (!extras) extras = std::make_unique<ActionExtras>();
  if (bytes > extras->spill_bytes) {
    extras->spill = std::make_unique<std::byte[]>(bytes);
    extras->spill_bytes = static_cast<std::uint32_t>(bytes);
  }
  spilled = all ? Spilled::all : Spilled::all_but_operands;
}

void Action::make_events() noexcept {
  for (EventWait& wait : events()) new (&wait) EventWait;
}

void Action::make_record() {
  if (!extras) extras = std::make_unique<ActionExtras>();
  extras->record = std::make_unique<ActionRecord>();
}

void Action::drop_events() noexcept {
  for (EventWait& wait : events()) wait.~EventWait();
  event_count = 0;
}

const char* Action::label() const noexcept {
  if (traits.named) return record().name.data();
  switch (kind) {
    case ActionKind::compute: return code->kernel->name().c_str();
    case ActionKind::transfer: {
      const bool from_host = operands()[0].memory == 0, to_host = operands()[1].memory == 0;
      return from_host ? (to_host ? "h2h" : "h2d") : (to_host ? "d2h" : "d2d");
    }
    case ActionKind::external: return "external";
    case ActionKind::drain: return "synchronize";
    default: return "sync";
  }
}

std::uint64_t Action::bytes() const noexcept {
  if (kind == ActionKind::transfer) return operands()[0].bytes();
  std::uint64_t total = 0;
  for (const Operand& operand : operands()) total += operand.bytes();
  return total;
}

}  // namespace weir::rt
