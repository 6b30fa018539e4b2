#include "stream/action_builder.hpp"

#include <algorithm>

#include "base/counted.hpp"
#include "base/error.hpp"
#include "stream/context.hpp"
#include "stream/domain.hpp"
#include "stream/executor.hpp"
#include "stream/external_action.hpp"

namespace weir::rt {

namespace {

constexpr std::size_t kMostOperands = 1000;
constexpr std::size_t kMostScalars = 255;
constexpr std::size_t kMostEvents = 10'000;

// What fails is apart from the checks, which are inlined.
[[noreturn, gnu::cold]] void fail_array(std::size_t count, const char* kind) {
  fail_argument("{} {} given as NULL", counted(count, kind), is_or_are(count));
}

/// Throws Error if an array with elements is null. `kind` is for the message: "operand".
void check_array(const void* array, std::size_t count, const char* kind) {
  if (array == nullptr && count != 0) [[unlikely]]
    fail_array(count, kind);
}

[[noreturn, gnu::cold]] void fail_counts(const weir_compute& compute) {
  fail_argument("{} operands and {} scalars are too many: at most {} and {}", compute.operand_count,
                compute.scalar_count, kMostOperands, kMostScalars);
}

/// Throws Error for more events than Action::event_count can hold.
void check_waits(std::span<const weir_event> events) {
  constexpr std::size_t kMost = UINT16_MAX;
  if (events.size() <= kMost) return;
  fail(WEIR_STATUS_UNSUPPORTED, "{} actions are too many for one to wait for: at most {}",
       events.size(), kMost);
}

bool same_shape(const Region& a, const Region& b) noexcept {
  return a.row == b.row && a.rows == b.rows && a.planes == b.planes;
}

}  // namespace

// Inline, because it runs for each operand of each action.
[[gnu::always_inline]] inline Operand ActionBuilder::make_operand(weir_buffer* handle,
                                                                  const weir_region& region,
                                                                  weir_access access,
                                                                  const Domain* domain) const {
  weir_buffer& buffer = weir_buffer::check(handle);
  if (buffer.owner() != &context_) {
    fail_argument("buffer '{}' belongs to another runtime than stream '{}'", buffer.name(),
                  stream_);
  }
  if (access < WEIR_ACCESS_READ || access > WEIR_ACCESS_READ_WRITE) {
    fail_argument("access {} of an operand in buffer '{}' is not read, write or read-write",
                  static_cast<int>(access), buffer.name());
  }
  buffer.note_use(serial_);
  Operand operand{make_region(region, buffer.bytes(), buffer.name().c_str())};
  operand.memory = static_cast<std::uint8_t>(domain ? domain->memory_of(buffer) : kHostMemory);
  operand.access = static_cast<std::uint8_t>(access);
  operand.buffer = &buffer;
  return operand;
}

const KernelCode& ActionBuilder::find_code(const weir_kernel& kernel, CachedCode& cached) {
  if (!context_.kernels().has(kernel)) {
    fail_argument("kernel '{}' belongs to another runtime than stream '{}'", kernel.name(),
                  stream_);
  }
  const std::string& backend = domain_.info().backend;
  const KernelCode* const code = kernel.code_for(domain_.info());
  if (code == nullptr) {
    fail(WEIR_STATUS_UNSUPPORTED,
         "kernel '{}' has no implementation for domain '{}' (backend {}); it has: {}",
         kernel.name(), domain_.name(), backend, kernel.backends());
  }
  cached = {&kernel, code};
  return *code;
}

void ActionBuilder::fill_compute(Action& action, const weir_compute& compute,
                                 std::span<const weir_event> events) {
  if (compute.operand_count > kMostOperands || compute.scalar_count > kMostScalars) [[unlikely]]
    fail_counts(compute);
  check_array(compute.operands, compute.operand_count, "operand");
  check_array(compute.scalars, compute.scalar_count, "scalar");
  check_waits(events);
  const weir_kernel& kernel = compute.kernel != nullptr || compute.kernel_name == nullptr
                                  ? weir_kernel::check(compute.kernel)
                                  : context_.kernels().find(compute.kernel_name);
  action.reserve(compute.operand_count, compute.scalar_count, events.size());
  action.code = &code_of(kernel);
  const Domain& here = domain_;
  Operand* operand = action.operands().data();
  for (std::size_t i = 0; i < compute.operand_count; ++i, ++operand) {
    const weir_operand& given = compute.operands[i];
    *operand = make_operand(given.buffer, given.region, given.access, &here);
    action.traits.needs_memory |= operand->memory != kHostMemory;
  }
  std::copy_n(compute.scalars, compute.scalar_count, action.scalars().data());
  if (recorder_ != nullptr) [[unlikely]]
    recorder_->take_parameters(action.scalars());
  if (action.code->portable != nullptr) [[unlikely]] {
    action.code->portable->check(kernel.name(), compute.operand_count, action.scalars());
  }
  if (!events.empty()) fill_events(action, events);
  if (compute.name != nullptr) action.set_name(compute.name);
}

void ActionBuilder::fill_transfer(Action& action, const weir_transfer& transfer,
                                  std::span<const weir_event> events) const {
  const auto domain_of = [&](const weir_endpoint& end) -> const Domain* {
    if (end.domain == nullptr) return nullptr;
    const weir_domain& given = weir_domain::check(end.domain);
    if (&given.context() != &context_) {
      fail_argument("domain '{}' belongs to another runtime than stream '{}'", given.name(),
                    stream_);
    }
    return &given;
  };
  const Domain* const from = domain_of(transfer.source);
  const Domain* const to = domain_of(transfer.target);
  check_waits(events);
  action.reserve(2, 0, events.size());
  Operand& source = action.operands()[0];
  Operand& target = action.operands()[1];
  source = make_operand(transfer.source.buffer, transfer.source.region, WEIR_ACCESS_READ, from);
  target = make_operand(transfer.target.buffer, transfer.target.region, WEIR_ACCESS_WRITE, to);
  if (!same_shape(source.region(), target.region())) {
    fail_argument("{} x {} x {} bytes of buffer '{}' cannot fill {} x {} x {} of buffer '{}'",
                  source.row, source.rows, source.planes, source.buffer->name(), target.row,
                  target.rows, target.planes, target.buffer->name());
  }
  check_route(source, target, from, to);
  const bool same_memory = source.buffer == target.buffer && source.memory == target.memory;
  action.traits.elided = same_memory && source.region() == target.region();
  action.traits.needs_memory =
      !action.traits.elided && (source.memory != kHostMemory || target.memory != kHostMemory);
  if (same_memory && !action.traits.elided && overlap(source.region(), target.region())) {
    fail_argument("source and target of a transfer within buffer '{}' overlap",
                  source.buffer->name());
  }
  fill_events(action, events);
  if (transfer.name != nullptr) action.set_name(transfer.name);
}

void ActionBuilder::fill_external(Action& action, const weir_external& external,
                                  bool on_host) const {
  if (external.start == nullptr) {
    fail_argument("an external action of stream '{}' has no function that starts it", stream_);
  }
  if (external.operand_count > kMostOperands) {
    fail_argument("{} operands are too many: at most {}", external.operand_count, kMostOperands);
  }
  check_array(external.operands, external.operand_count, "operand");
  action.reserve(external.operand_count, ExternalCall::kScalars, 0);
  for (std::size_t i = 0; i < external.operand_count; ++i) {
    const weir_operand& given = external.operands[i];
    Operand& operand = action.operands()[i];
    operand = make_operand(given.buffer, given.region, given.access, on_host ? nullptr : &domain_);
    action.traits.needs_memory |= operand.memory != kHostMemory;
    if (operand.memory != kHostMemory && domain_.info().backend == "rank") {
      fail(WEIR_STATUS_UNSUPPORTED,
           "operand {} of an external action is in the memory of domain '{}', another process", i,
           domain_.name());
    }
  }
  ExternalCall::put_in(action, external);
  if (external.name != nullptr) action.set_name(external.name);
}

/// Throws Error unless the device of this stream can make the copy.
void ActionBuilder::check_route(const Operand& source, const Operand& target, const Domain* from,
                                const Domain* to) const {
  if (source.memory == target.memory && source.buffer == target.buffer &&
      source.region() == target.region()) {
    return;
  }
  const std::uint16_t own = domain_.residency().memory();
  const bool within_host = source.memory == kHostMemory && target.memory == kHostMemory;
  if (within_host ? !domain_.info().aliases_host : source.memory != own && target.memory != own) {
    fail_argument("neither end of the transfer is domain '{}' of stream '{}': use a stream of '{}'",
                  domain_.name(), stream_,
                  to ? to->name() : (from ? from->name() : std::string("host")));
  }
  const Domain* const peer = target.memory == own ? from : to;
  const bool host_peer = (target.memory == own ? source : target).memory == kHostMemory;
  const Device* const other = host_peer || peer == nullptr ? nullptr : &peer->device();
  if (!domain_.device().reaches(other)) {
    fail(WEIR_STATUS_UNSUPPORTED,
         "domain '{}' has no link to '{}': transfer to host memory and from there", domain_.name(),
         other ? peer->name() : std::string("host"));
  }
}

void ActionBuilder::check_not_later(const weir_event& event, std::uint64_t enqueued) const {
  const std::uint64_t id = event.opaque[1];
  if (id >> Action::kSequenceBits != serial_) return;
  const std::uint64_t position = id - (serial_ << Action::kSequenceBits);
  if (position > enqueued) {
    fail_argument("stream '{}' cannot wait for its own later action: number {} of {} enqueued",
                  stream_, position, enqueued);
  }
}

void ActionBuilder::fill_operand(Action& action, const weir_operand& operand, bool on_host) const {
  action.reserve(1, 0, 0);
  action.operands()[0] =
      make_operand(operand.buffer, operand.region, operand.access, on_host ? nullptr : &domain_);
}

void ActionBuilder::fill_events(Action& action, std::span<const weir_event> events) noexcept {
  EventWait* wait = action.events().data();
  for (const weir_event& event : events) {
    wait->event = event;
    wait->action = &action;
    wait->submission_id = 0;
    wait->awaits_submission = false;
    wait->ignores_failure = false;
    wait->message_kind = Message::Kind::event;
    wait->deliver = Executor::deliver_event;
    ++wait;
  }
}

void ActionBuilder::fill_sync(Action& action, const weir_sync& sync, std::uint64_t enqueued) const {
  if (sync.scope < WEIR_SYNC_SCOPE_STREAM || sync.scope > WEIR_SYNC_SCOPE_NOTHING) {
    fail_argument("scope {} of a sync is not stream, operands or nothing",
                  static_cast<int>(sync.scope));
  }
  if (sync.scope == WEIR_SYNC_SCOPE_OPERANDS && sync.operand_count == 0) {
    fail_argument("a sync with WEIR_SYNC_SCOPE_OPERANDS has no operands: it would order nothing");
  }
  if (sync.scope != WEIR_SYNC_SCOPE_OPERANDS && sync.operand_count > 0) {
    fail_argument("a sync with {} operands needs WEIR_SYNC_SCOPE_OPERANDS", sync.operand_count);
  }
  if (sync.operand_count > kMostOperands || sync.event_count > kMostEvents) {
    fail_argument("{} operands and {} events are too many: at most {} and {}", sync.operand_count,
                  sync.event_count, kMostOperands, kMostEvents);
  }
  check_array(sync.operands, sync.operand_count, "operand");
  check_array(sync.events, sync.event_count, "event");
  for (std::size_t i = 0; i < sync.event_count; ++i) {
    context_.check_event(sync.events[i]);
    check_not_later(sync.events[i], enqueued);
  }
  action.reserve(sync.operand_count, 0, sync.event_count);
  const Domain& here = domain_;
  Operand* operand = action.operands().data();
  for (std::size_t i = 0; i < sync.operand_count; ++i) {
    const weir_operand& given = sync.operands[i];
    *operand++ = make_operand(given.buffer, given.region, WEIR_ACCESS_READ_WRITE, &here);
  }
  fill_events(action, {sync.events, sync.event_count});
  if (sync.name != nullptr) action.set_name(sync.name);
}

}  // namespace weir::rt
