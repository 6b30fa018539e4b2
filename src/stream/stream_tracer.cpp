#include "stream/stream_tracer.hpp"

#include <cstdio>
#include <cstring>
#include <span>

#include "stream/context.hpp"
#include "stream/place_base.hpp"

namespace weir::rt {

namespace {

/// Writes the label of an action. A transfer that the program has not named gets the name of its
/// buffer, too: that in host memory, if any, as task queues copy from and to buffers of their own.
void put_name(const Action& action, std::span<char> name) noexcept {
  if (action.kind == ActionKind::transfer && !action.traits.named) {
    const bool from_host = action.operands()[0].memory == kHostMemory;
    const Buffer& buffer = *action.operands()[from_host ? 0 : 1].buffer;
    std::snprintf(name.data(), name.size(), "%s %s", action.label(), buffer.name().c_str());
  } else {
    std::strncpy(name.data(), action.label(), name.size() - 1);
  }
}

}  // namespace

StreamTracer::StreamTracer(Context& context, const PlaceBase& place, const std::string& stream,
                           weir_dependence_policy policy)
    : context_(context),
      place_(place),
      policy_(policy),
      index_(context.recorder().add_stream(stream)) {}

void StreamTracer::note_ready(Action& action) const noexcept {
  if (action.times().ready == 0) action.times().ready = context_.now_ns();
}

void StreamTracer::note_admission(const Action& action) noexcept {
  try {
    if (!history_) history_ = std::make_unique<History>(policy_);
    trace::Recorder& recorder = context_.recorder();
    recorder.record_dependences(action.id(), history_->note(action));
    for (const EventWait& wait : const_cast<Action&>(action).events()) {
      const std::uint64_t id = wait.event.opaque[1];
      if (id != 0) recorder.record_dependences(action.id(), {&id, 1});
    }
  } catch (...) {
    history_.reset();
  }
}

/// Records that an action that orders the stream depends on the one that completed last before it.
void StreamTracer::note_order(const Action& action) noexcept {
  if (!history_) return;
  const bool orders = action.kind == ActionKind::barrier || action.kind == ActionKind::marker;
  if (!orders) return history_->note_end(action);
  const std::uint64_t last = history_->last_ended();
  if (last != 0) context_.recorder().record_dependences(action.id(), {&last, 1});
}

std::uint16_t StreamTracer::cores_of(const Action& action) const noexcept {
  const bool parallel = action.kind == ActionKind::compute && action.code->kernel->parallel();
  return parallel ? static_cast<std::uint16_t>(place_.width()) : 1;
}

void StreamTracer::note_end(Action& action) noexcept {
  if (action.kind == ActionKind::drain) return;
  note_order(action);
  const bool ran = action.started && action.times().ended != 0;
  if (!ran) {
    note_ready(action);
    action.times().started = action.times().ended = action.times().ready;
  }
  const Domain& domain = place_.domain();
  const bool moved = action.kind == ActionKind::transfer && !action.traits.elided;
  const bool incoming = moved && action.operands()[1].memory == domain.residency().memory();
  trace::Entry entry{.id = action.id(),
                     .enqueued = action.times().enqueued,
                     .ready = action.times().ready,
                     .started = action.times().started,
                     .ended = action.times().ended,
                     .bytes = action.bytes(),
                     .stream = index_,
                     .track = incoming ? domain.track_in
                              : moved  ? domain.track_out
                                       : place_.track(),
                     .core = action.record().worker,
                     .cores = cores_of(action),
                     .kind = action.kind == ActionKind::compute ? trace::Kind::compute
                             : moved                            ? trace::Kind::transfer
                                                                : trace::Kind::sync,
                     .status = action.status};
  put_name(action, entry.name);
  context_.recorder().record(entry);
}

}  // namespace weir::rt
