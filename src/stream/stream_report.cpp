#include "stream/stream_report.hpp"

#include <fmt/format.h>

#include "core/engine.hpp"
#include "stream/context.hpp"

namespace weir::rt {

namespace {

/// Returns how many actions `action` waits for, and names one: "3 actions, 'gemm' (12) one of
/// them".
std::string predecessors_of(const Action& action, const Engine& engine) {
  std::size_t count = 0;
  const Action* first = nullptr;
  engine.each_admitted([&](Action& earlier) {
    earlier.successors.for_each([&](const Edge& edge) {
      if (edge.successor != &action) return;
      if (first == nullptr) first = &earlier;
      ++count;
    });
  });
  if (count == 0) return {};
  const std::string name = fmt::format("'{}', action {}", first->label(), first->sequence());
  return count == 1 ? name : fmt::format("{} and {} more", name, count - 1);
}

std::string state_of(const Action& action, const Engine& engine, const Context& context) {
  if (action.started) {
    const std::string memory = context.awaited_memory(action);
    if (!memory.empty()) return fmt::format("waits for memory of '{}'", memory);
    if (action.kind == ActionKind::external)
      return "has been started, and the program completes it";
    return action.kind == ActionKind::transfer ? "is being copied" : "has been given to a worker";
  }
  if (orders_stream(action.kind)) return "waits for everything before it";
  if (action.pending == 0) return "is ready and waits for a worker";
  const std::string earlier = predecessors_of(action, engine);
  return earlier.empty() ? fmt::format("waits for {}", action.pending)
                         : fmt::format("waits for {}: {}", action.pending, earlier);
}

std::vector<std::uint64_t> incomplete_events(Action& action, const Context& context) {
  std::vector<std::uint64_t> missing;
  for (const EventWait& wait : action.events()) {
    const std::uint64_t id = wait.event.opaque[1];
    if (id != 0 && !context.slot_of(wait.event).event.is_complete(id)) missing.push_back(id);
  }
  return missing;
}

}  // namespace

void answer(ReportMessage& message, const Engine& engine, const Context& context) noexcept {
  const std::unique_ptr<ReportMessage> owned(&message);
  std::vector<StreamReport::Line> lines;
  try {
    engine.each_admitted([&](Action& action) {
      if (lines.size() == StreamReport::kMostLines) return;
      lines.push_back({fmt::format("'{}', action {}, {}", action.label(), action.sequence(),
                                   state_of(action, engine, context)),
                       incomplete_events(action, context)});
    });
  } catch (...) {  // reports the lines it has
  }
  owned->report->answer(std::move(lines));
}

void StreamReport::answer(std::vector<Line> lines) noexcept {
  sys::Lock lock(mutex_);
  lines_ = std::move(lines);
  ready_ = true;
  answered_.notify_all();
}

bool StreamReport::wait(std::int64_t deadline_ns) {
  sys::Lock lock(mutex_);
  while (!ready_ && sys::now_ns() < deadline_ns) answered_.wait_until(lock, deadline_ns);
  return ready_;
}

}  // namespace weir::rt
