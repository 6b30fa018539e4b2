#include "tasks/queue.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/thread_role.hpp"
#include "stream/registry.hpp"
#include "tasks/queue_binding.hpp"

namespace weir::rt {

namespace {

constexpr std::size_t kMostPartials = 32;  ///< partial results of a reduction

}  // namespace

Queue::Queue(Registry& registry, std::uint64_t serial, const weir_queue_options& options,
             std::unique_ptr<Policy> policy)
    : properties_{registry,
                  serial,
                  options.name != nullptr ? options.name : fmt::format("queue {}", serial),
                  policy_of(options),
                  !options.no_models,
                  registry.max_in_flight(options.max_in_flight)},
      places_(properties_, options) {
  if (places_.direct_stream() != nullptr) {
    direct_ = new DirectQueue(properties_, places_);
    core_.reset(direct_);
  } else {
    core_ = std::make_unique<BindingQueue>(properties_, options, places_, std::move(policy),
                                           unreported_);
  }
  reductions_.emplace(properties_, *core_, std::min(kMostPartials, places_.cores()));
}

Queue::~Queue() {
  try {
    await_end(sys::kNever);
  } catch (...) {  // no memory: the destructor of the core needs none
  }
  core_.reset();
  places_.close(unreported_);
  unreported_.report("queue", name());
}

weir_event Queue::submit(const weir_task& given, bool with_event) {
  if (direct_ != nullptr) [[likely]] {
    direct_->await_room();
    if (reductions_->idle() && DirectQueue::is_plain(given)) [[likely]]
      return direct_->submit_plain(given, with_event);
  } else {
    core_->await_room();
  }
  if (reductions_->applies_to(given) && direct_ != nullptr && direct_->stream().is_recorded()) {
    fail(WEIR_STATUS_UNSUPPORTED, "a task with access REDUCE cannot be recorded from queue '{}'",
         name());
  }
  const weir_event event = reductions_->applies_to(given) ? reductions_->submit(given, with_event)
                                                          : core_->submit(given, with_event);
  core_->progress();
  return event;
}

Stream& Queue::stream_to_record() {
  if (direct_ == nullptr) {
    fail(
        WEIR_STATUS_UNSUPPORTED,
        "queue '{}' cannot be recorded: a graph takes the tasks of a queue with one place, in host "
        "memory; on a simulated device record a stream",
        name());
  }
  reductions_->combine_everything();
  return direct_->stream();
}

void Queue::combine(weir_buffer* buffer, const weir_region& region, weir_access access) {
  const NamedUse part = core_->check_operand({buffer, region, access});
  reductions_->combine(*part.buffer, part.region);
}

weir_event Queue::flush(weir_buffer* buffer, const weir_region& region) {
  core_->await_room();
  combine(buffer, region, WEIR_ACCESS_READ);
  return core_->enqueue_access({buffer, region, WEIR_ACCESS_READ});
}

WaitResult Queue::acquire(weir_buffer* buffer, const weir_region& region, weir_access wanted,
                          std::int64_t timeout_ns) {
  if (wanted < WEIR_ACCESS_READ || wanted > WEIR_ACCESS_READ_WRITE) {
    fail_argument("access {} of the program is not read, write or read-write",
                  static_cast<int>(wanted));
  }
  if (NoWaitScope::active()) {
    fail(WEIR_STATUS_BUSY, "a kernel or callback must not wait for queue '{}'", name());
  }
  combine(buffer, region, wanted);
  return core_->acquire({buffer, region, wanted}, timeout_ns);
}

WaitResult Queue::synchronize(std::int64_t timeout_ns) {
  if (NoWaitScope::active()) {
    fail(WEIR_STATUS_BUSY, "a kernel or callback must not synchronise queue '{}'", name());
  }
  reductions_->combine_everything();
  WaitResult result = core_->synchronize(timeout_ns);
  if (result.status != WEIR_STATUS_TIMEOUT) reductions_->clear_poison();
  return result;
}

bool Queue::await_end(std::int64_t deadline_ns) {
  reductions_->combine_everything();
  return core_->await_end(deadline_ns);
}

void Queue::report_unreported() noexcept {
  for (const QueuePlace& queue_place : places_.all())
    unreported_.take(queue_place.stream->unreported());
  unreported_.report("queue", name());
}

void Queue::cancel() {
  reductions_->discard_all([this] { core_->cancel(); });
  core_->progress();
}

void Queue::finish_or_cancel(std::int64_t timeout_ns) noexcept {
  if (timeout_ns < 0) return;  // the destructor waits without a limit
  try {
    if (!await_end(sys::deadline_after(timeout_ns))) cancel();
  } catch (...) {  // no memory: the destructor waits
  }
}

void Queue::release(weir_buffer& buffer) noexcept {
  try {
    combine(&buffer, weir_region_range(0, buffer.bytes()), WEIR_ACCESS_READ);
  } catch (...) {
    reductions_->discard(buffer);
  }
  core_->release(buffer);
}

void Queue::get_info(weir_queue_info& info, weir_queue_share* shares, std::size_t count) {
  info.name = name().c_str();
  info.policy = properties_.policy.c_str();
  info.place_count = places_.all().size();
  info.max_in_flight = properties_.max_in_flight;
  if (NoWaitScope::active()) {
    fail(WEIR_STATUS_BUSY, "a policy, kernel or callback must not ask queue '{}'", name());
  }
  core_->get_info(info, {shares, shares != nullptr ? count : 0});
}

}  // namespace weir::rt
