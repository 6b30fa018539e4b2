#include "tasks/queue_binding.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/thread_role.hpp"
#include "stream/registry.hpp"
#include "stream/waiting.hpp"

namespace weir::rt {

/// Holds the lock during its lifetime, on a thread that may wait.
class WEIR_SCOPED_CAPABILITY BindingQueue::Owner {
 public:
  explicit Owner(BindingQueue& queue) noexcept WEIR_ACQUIRE(queue.lock_) : queue_(queue) {
    queue_.lock_.lock();
  }
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;
  ~Owner() WEIR_RELEASE() {
    queue_.lock_.unlock();
    queue_.progress();  // does the work that arrived meanwhile
  }

 private:
  BindingQueue& queue_;
};

BindingQueue::BindingQueue(const QueueProperties& properties, const weir_queue_options& options,
                           QueuePlaces& places, std::unique_ptr<Policy> policy,
                           Unreported& unreported)
    : QueueCore(properties, places),
      unreported_(unreported),
      submissions_(properties),
      bound_(*this),
      binder_(properties, options, places, std::move(policy), submissions_, bound_, unreported,
              lock_) {
  for (const QueuePlace& queue_place : places_.all())
    queue_place.stream->set_cancellation_watermark({&submissions_.cancelled_until(), true});
}

BindingQueue::~BindingQueue() {
  await_calls();  // those that await_end() found no memory to wait for
  bound_.await_notifiers();
  {
    const Owner owner(*this);
    binder_.chooser().store_models();
    binder_.live().add_failures_to(unreported_);
  }
  places_.close(unreported_);  // copies for tasks whose enqueue failed may be in flight
}

// ---- The owner ----------------------------------------------------------------------------------

void BindingQueue::progress() noexcept {
  while (lock_.has_work() || bound_.any_completed()) {
    if (!lock_.try_lock_as(CombiningLock::State::binding)) {
      if (lock_.state() == CombiningLock::State::binding) return;  // the owner checks again
      sys::yield();
      continue;
    }
    while (lock_.take_work() || bound_.any_completed()) {
      binder_.take_completed(bound_.collect());
      binder_.take_submitted(submissions_.collect());
      if (binder_.bind_ready()) lock_.add_work();
      submissions_.grant_room();
    }
    Task* const finished = binder_.live().take_finished();
    lock_.unlock();
    submissions_.notify_waiters(finished);
  }
}

void BindingQueue::Bound::on_end(Waiter& waiter, weir_status status, const FailureRef& failure) {
  auto& bound = static_cast<BoundTask&>(static_cast<ActionWatcher&>(waiter));
  auto& list = static_cast<Bound&>(*bound.list);
  list.complete(bound, status, failure, [&list] { list.queue.progress(); });
}

// ---- Producers ----------------------------------------------------------------------------------

void BindingQueue::await_room() {
  pass_enqueue_time(properties_.registry);
  for (;;) {
    SubmissionQueue::RoomRequest request;
    if (NoWaitScope::active() || !submissions_.request_room(request)) return;
    lock_.add_work();
    progress();
    wait_for_signal(properties_.registry, request.has_room, 1, sys::kNever);
  }
}

weir_event BindingQueue::submit(const weir_task& given, bool) {
  SubmissionQueue::OwnedTask task = submissions_.take();
  fill_call(*task, given);
  const weir_event event = submissions_.append(std::move(task));
  lock_.add_work();
  return event;
}

weir_event BindingQueue::enqueue_access(const weir_operand& operand) {
  SubmissionQueue::OwnedTask task = submissions_.take();
  task->kind = operand.buffer != nullptr ? Task::Kind::access : Task::Kind::fetch;
  task->kernel = nullptr;
  task->level = 1;
  task->set_name(nullptr);
  task->reserve(operand.buffer != nullptr ? 1 : 0, 0);
  if (operand.buffer != nullptr) task->set_use(0, check_operand(operand));
  const weir_event event = submissions_.append(std::move(task));
  lock_.add_work();
  progress();
  return event;
}

void BindingQueue::cancel() noexcept {
  submissions_.cancel();
  lock_.add_work();
}

// ---- The program waits --------------------------------------------------------------------------

WaitResult BindingQueue::synchronize(std::int64_t timeout_ns) {
  const std::int64_t deadline = sys::deadline_after(timeout_ns);
  const weir_event fetched = request_access({});
  WaitResult result = await_access(fetched, time_until(deadline));
  if (result.status == WEIR_STATUS_TIMEOUT) return result;
  properties_.registry.failures().remove(fetched.opaque[1]);
  if (result.status != WEIR_STATUS_OK) {
    const Owner owner(*this);
    binder_.coherence().attach_failures();
    binder_.live().keep_failure(std::move(result));
  }
  for (const QueuePlace& queue_place : places_.all()) {
    WaitResult drained =
        properties_.registry.synchronize(*queue_place.stream, time_until(deadline));
    if (drained.status == WEIR_STATUS_TIMEOUT) return drained;
    if (drained.status == WEIR_STATUS_OK) continue;
    const Owner owner(*this);
    binder_.live().keep_failure(std::move(drained));
  }
  const Owner owner(*this);
  binder_.coherence().drop_completed_uses();
  unreported_.forget_up_to(fetched.opaque[1]);
  return binder_.live().take_failure();
}

bool BindingQueue::await_end(std::int64_t deadline_ns) {
  const weir_event fetched = request_access({});
  const WaitResult result = await_access(fetched, time_until(deadline_ns));
  if (result.status == WEIR_STATUS_TIMEOUT && !result.failure) return false;
  Registry& registry = properties_.registry;
  registry.failures().remove(fetched.opaque[1]);
  return std::ranges::all_of(places_.all(), [&](const QueuePlace& queue_place) {
    return registry.await_end({queue_place.stream.get()}, time_until(deadline_ns));
  });
}

/// Waits without allocating, for when there is no memory.
void BindingQueue::await_calls() noexcept {
  while (completed() < submitted()) {
    progress();
    properties_.registry.pass_time();
  }
}

void BindingQueue::release(weir_buffer& buffer) noexcept {
  try {
    const weir_region all = weir_region_range(0, buffer.bytes());
    const weir_event event = enqueue_access({&buffer, all, WEIR_ACCESS_READ_WRITE});
    wait_for_events(properties_.registry, {&event, 1}, WEIR_WAIT_MODE_ALL, WEIR_FOREVER);
    properties_.registry.failures().remove(event.opaque[1]);
  } catch (...) {
    await_calls();
  }
  const Owner owner(*this);
  binder_.live().forget_pieces_of(buffer);
  binder_.coherence().forget(buffer);
}

// ---- Information --------------------------------------------------------------------------------

void BindingQueue::get_info(weir_queue_info& info, std::span<weir_queue_share> shares) {
  const Owner owner(*this);
  info.completed = completed();
  info.submitted = submitted();
  if (info.completed > 0) {
    if (std::string text = binder_.chooser().remarks(); !text.empty()) {
      info.remarks = logged_remarks_.insert(std::move(text)).first->c_str();
    }
  }
  for (std::size_t i = 0; i < std::min(shares.size(), places_.all().size()); ++i)
    shares[i] = places_.all()[i].share;
}

std::string BindingQueue::report(std::int64_t deadline_ns) {
  while (!lock_.try_lock_as(CombiningLock::State::inspecting)) {
    if (sys::now_ns() < deadline_ns) {
      sys::yield();
      continue;
    }
    return fmt::format(
        "  queue '{}': {} tasks are not over; a thread that chooses places for them "
        "does not return from policy '{}'\n",
        properties_.name, submitted() - completed(), properties_.policy);
  }
  std::string text;
  try {
    text = binder_.describe_deferred();
  } catch (...) {  // reports nothing
  }
  lock_.unlock();
  return text;
}

}  // namespace weir::rt
