#include "runtime/queue.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/log.hpp"
#include "base/thread_role.hpp"
#include "runtime/queue_combining_lock.hpp"
#include "runtime/runtime.hpp"

namespace weir::rt {

namespace {

constexpr std::size_t kMostArguments = 255;
constexpr std::size_t kMostPartials = 32;  ///< partial results of a reduction

weir_access as_read_write(weir_access access) noexcept {
  return static_cast<weir_access>(access & WEIR_ACCESS_READ_WRITE);
}

/// Whether a stream can run the task as an ordinary action.
bool is_plain(const weir_task& task) noexcept {
  if (task.domains != 0 || task.place != nullptr) return false;
  if (task.priority < -1 || task.priority > 1) return false;
  return task.operands == nullptr ||
         std::none_of(task.operands, task.operands + task.operand_count, [](const auto& operand) {
           return operand.access == WEIR_ACCESS_COMMUTE || operand.access == WEIR_ACCESS_REDUCE;
         });
}

weir_compute as_compute(const weir_task& task) noexcept {
  weir_compute compute = WEIR_COMPUTE_INIT;
  compute.kernel = task.kernel;
  compute.kernel_name = task.kernel_name;
  compute.operands = task.operands;
  compute.operand_count = task.operand_count;
  compute.scalars = task.scalars;
  compute.scalar_count = task.scalar_count;
  compute.name = task.name;
  return compute;
}

bool is_access(weir_access access) noexcept {
  return (access >= WEIR_ACCESS_READ && access <= WEIR_ACCESS_READ_WRITE) ||
         access == WEIR_ACCESS_COMMUTE || access == WEIR_ACCESS_REDUCE;
}

}  // namespace

// ---- Making and ending -------------------------------------------------------------------------

Queue::Queue(Runtime& runtime, std::uint64_t serial, const weir_queue_options& options)
    : runtime_(runtime),
      serial_(serial),
      name_(options.name != nullptr ? options.name : fmt::format("queue {}", serial)),
      policy_name_(options.policy != nullptr ? options.policy : "finish"),
      keeps_models_(!options.no_models),
      most_in_flight_(runtime.max_in_flight(options.max_in_flight)),
      places_(runtime, fmt::format("queue '{}'", name_), options.places, options.place_count),
      policy_(runtime.make_policy(policy_name_)) {
  try {
    open_queue_places(options);
    direct_ = queue_places_.size() == 1 && queue_places_.front().domain().info().aliases_host;
    for (QueuePlace& queue_place : queue_places_)
      queue_place.stream->set_cancellation_watermark({&cancel_until_, !direct_});
    coherence_ = std::make_unique<Coherence>(runtime_, queue_places_);
    reductions_.emplace(*this, std::min(kMostPartials, cores_of(queue_places_)));
    if (keeps_models_ && !direct_) models_.load_cached(runtime_.machine_name());
    if (options.weight_count == 0) weigh_queue_places();
  } catch (...) {
    close_queue_places();
    throw;
  }
}

Queue::~Queue() {
  try {
    await_end(sys::kNever);
  } catch (...) {
    wait_for_tasks();
  }
  while (notifiers_.load() > 0) sys::yield();
  notify_waiters(std::exchange(finished_, nullptr));
  try {
    if (keeps_models_ && !direct_) models_.store_cached(runtime_.machine_name());
  } catch (...) {
    log::warning("queue '{}' found no memory to keep its models", name_);
  }
  unreported_.add(unreported_failure_.failure);
  unreported_.add(first_failure_);
  report_unreported();
  close_queue_places();  // copies for tasks whose enqueue failed may be in flight
  coherence_.reset();
  reductions_.reset();
  for (Task* task = spare_; task != nullptr; task = task->next) take_ticket_of(*task);
  runtime_.tickets().give(tickets_);
}

void Queue::open_queue_places(const weir_queue_options& options) {
  const std::vector<weir_place*>& places = places_.all();
  if (options.weight_count != 0 && options.weight_count != places.size()) {
    fail_argument("{} for {}: give one for each place", counted(options.weight_count, "weight"),
                  counted(places.size(), "place"));
  }
  if (options.weights == nullptr && options.weight_count > 0) {
    fail_argument("{} {} given as NULL", counted(options.weight_count, "weight"),
                  is_or_are(options.weight_count));
  }
  queue_places_.reserve(places.size());
  for (std::size_t i = 0; i < places.size(); ++i) {
    weir_place& place = *places[i];
    const double weight =
        options.weight_count > 0 ? options.weights[i] : static_cast<double>(place.width());
    if (!(weight > 0) || weight > 1e9) {
      fail_argument("weight {} of place '{}' is not a positive number", weight, place.name());
    }
    add_queue_place(place, weight);
  }
}

void Queue::add_queue_place(weir_place& place, double weight) {
  const DeviceInfo& info = place.domain().info();
  weir_stream_options options = WEIR_STREAM_OPTIONS_INIT;
  const std::string name = fmt::format("{}/{}", name_, place.name());
  options.name = name.c_str();
  options.max_in_flight = most_in_flight_;
  QueuePlace& queue_place = queue_places_.emplace_back();
  queue_place.index = static_cast<std::uint32_t>(queue_places_.size() - 1);
  queue_place.place = &place;
  queue_place.kind = fmt::format("{} {} x{}", info.backend, info.description, place.width());
  queue_place.weight = weight;
  queue_place.core_times = queue_place.claimed_times = CoreTimes(place.width());
  queue_place.share.place = place.name().c_str();
  queue_place.stream = runtime_.create_stream(place, options);
}

void Queue::weigh_queue_places() {
  std::vector<std::string> kinds;
  for (const QueuePlace& queue_place : queue_places_) kinds.push_back(queue_place.kind);
  const std::vector<double> speeds = models_.speeds(kinds);
  for (std::size_t i = 0; i < speeds.size(); ++i) queue_places_[i].weight *= speeds[i];
}

void Queue::close_queue_places() noexcept {
  for (const QueuePlace& queue_place : queue_places_) {
    if (queue_place.stream != nullptr) runtime_.destroy_stream(queue_place.stream);
  }
}

std::size_t Queue::cores_of(const std::vector<QueuePlace>& queue_places) noexcept {
  std::size_t cores = 0;
  for (const QueuePlace& queue_place : queue_places) cores += queue_place.place->width();
  return cores;
}

/// Waits without allocating, for when there is no memory.
void Queue::wait_for_tasks() noexcept {
  while (completed_.load() < submitted_.load()) {
    try_progress();
    runtime_.pass_time();
  }
}

// ---- Producers ---------------------------------------------------------------------------------

/// Does not wait in a kernel or a callback: other tasks may wait for that one.
void Queue::await_room() {
  constexpr std::uint64_t kParts = 8;
  if (direct_) return queue_places_.front().stream->await_room();
  for (;;) {
    const std::uint64_t closed = closed_.load();  // read first, so that closed <= made
    const std::uint64_t made = made_.load();
    if (made - closed < most_in_flight_ || NoWaitScope::active()) return;
    RoomRequest request;
    request.closed = made - most_in_flight_ + std::max<std::uint64_t>(1, most_in_flight_ / kParts);
    request.next = new_room_requests_.load();
    while (!new_room_requests_.compare_exchange_weak(request.next, &request)) {
    }
    more_.store(true);
    try_progress();
    wait_for_signal(runtime_, request.granted, 1, sys::kNever);
  }
}

weir_event Queue::submit(const weir_task& given, bool with_event) {
  await_room();
  if (direct_ && reductions_->idle() && is_plain(given)) [[likely]] {
    return queue_places_.front().stream->compute(as_compute(given), with_event, given.priority);
  }
  const weir_event event = reductions_->applies_to(given) ? reductions_->submit(given, with_event)
                                                          : submit_one(given, with_event);
  try_progress();
  return event;
}

weir_event Queue::submit_one(const weir_task& given, bool with_event) {
  if (direct_) return submit_directly(given, with_event);
  OwnedTask task = take_task();
  task->kind = Task::Kind::call;
  fill_call(*task, given);
  return append(std::move(task));
}

weir_event Queue::submit_directly(const weir_task& given, bool with_event) {
  Stream& stream = *queue_places_.front().stream;
  weir_compute compute = as_compute(given);
  if (is_plain(given)) return stream.compute(compute, with_event, given.priority);
  Task task;
  fill_call(task, given);
  std::vector<weir_operand> operands(given.operands, given.operands + given.operand_count);
  for (weir_operand& operand : operands) operand.access = as_read_write(operand.access);
  compute.operands = operands.data();
  return stream.compute(compute, with_event, given.priority);
}

NamedUse Queue::check_operand(weir_buffer* handle, const weir_region& region,
                              weir_access access) const {
  weir_buffer& buffer = weir_buffer::check(handle);
  if (buffer.owner() != &runtime_) {
    fail_argument("buffer '{}' belongs to another runtime than queue '{}'", buffer.name(), name_);
  }
  if (!is_access(access)) {
    fail_argument(
        "access {} of an operand in buffer '{}' is not read, write, read-write, commute or reduce",
        static_cast<int>(access), buffer.name());
  }
  NamedUse use;
  use.buffer = &buffer;
  use.region = make_region(region, buffer.bytes(), buffer.name().c_str());
  use.access = as_read_write(access);
  use.commutes = access == WEIR_ACCESS_COMMUTE;
  return use;
}

void Queue::fill_call(Task& task, const weir_task& given) const {
  if (given.operand_count > kMostArguments || given.scalar_count > kMostArguments) {
    fail_argument("{} operands and {} scalars are too many: at most {} each", given.operand_count,
                  given.scalar_count, kMostArguments);
  }
  if ((given.operands == nullptr && given.operand_count > 0) ||
      (given.scalars == nullptr && given.scalar_count > 0)) {
    fail_argument("{} or {} are given as NULL", counted(given.operand_count, "operand"),
                  counted(given.scalar_count, "scalar"));
  }
  if (given.priority < -1 || given.priority > 1) {
    fail_argument("priority {} of a task is not -1, 0 or 1", given.priority);
  }
  const weir_kernel& kernel = given.kernel != nullptr || given.kernel_name == nullptr
                                  ? weir_kernel::check(given.kernel)
                                  : runtime_.kernels().find(given.kernel_name);
  if (!runtime_.kernels().has(kernel)) {
    fail_argument("kernel '{}' belongs to another runtime than queue '{}'", kernel.name(), name_);
  }
  task.kernel = &kernel;
  task.level = static_cast<unsigned>(given.priority + 1) & 3u;
  task.set_name(given.name);
  task.reserve(given.operand_count, given.scalar_count);
  for (std::size_t i = 0; i < given.operand_count; ++i) {
    const weir_operand& operand = given.operands[i];
    task.set_use(i, check_operand(operand.buffer, operand.region, operand.access));
  }
  std::copy_n(given.scalars, given.scalar_count, task.scalars().data());
  task.allowed_places = queue_places_for(task, given);
}

std::uint64_t Queue::queue_places_for(const Task& task, const weir_task& given) const {
  std::uint64_t able = 0, allowed = 0;
  for (const QueuePlace& queue_place : queue_places_) {
    const std::uint64_t bit = std::uint64_t{1} << queue_place.index;
    const std::size_t domain = queue_place.domain().index();
    const bool named = given.domains == 0 || (domain < 64 && (given.domains >> domain & 1) != 0);
    if (!named || (given.place != nullptr && given.place != queue_place.place)) continue;
    allowed |= bit;
    const KernelCode* const code = task.kernel->code_for(queue_place.domain().info());
    if (code == nullptr || !fits(queue_place, task)) continue;
    if (code->portable != nullptr) {
      code->portable->check(task.kernel->name(), task.uses().size(), task.scalars());
    }
    able |= bit;
  }
  if (able != 0) return able;
  if (allowed == 0) {
    fail_argument(
        "task '{}' may run on no place of queue '{}': its domains and its place leave none",
        task.label(), name_);
  }
  fail(
      WEIR_STATUS_UNSUPPORTED,
      "task '{}' can run on none of the places it may run on: kernel '{}' has code for {}; its "
      "operands need {} bytes, and only places that work in host memory take operands that overlap "
      "and are written",
      task.label(), task.kernel->name(), task.kernel->backends(), task.bytes());
}

/// Whether the operands fit together in a place's memory.
bool Queue::fits(const QueuePlace& queue_place, const Task& task) const {
  std::uint64_t apart = 0;
  for (const PieceUse& own : task.uses()) {
    if (queue_place.memory_of(own.buffer()) == kHostMemory) continue;
    const Region region = own.region();
    bool repeated = false;
    for (const PieceUse* other = task.uses().data(); other != &own; ++other) {
      if (&other->buffer() != &own.buffer()) continue;
      const Region earlier = other->region();
      if (earlier == region) {
        repeated = true;
      } else if ((own.writes() || other->writes()) && overlap(earlier, region)) {
        return false;
      }
    }
    if (!repeated) apart += region.bytes();
  }
  return apart <= queue_place.domain().residency().capacity();
}

void Queue::Spare::operator()(Task* task) const noexcept {
  const SpinGuard guard(queue->submitting_);
  task->next = std::exchange(queue->spare_, task);
}

// Callers of the functions below hold the lock if other threads may submit.

void Queue::take_ticket_of(Task& task) noexcept {
  Ticket* const ticket = std::exchange(task.ticket, nullptr);
  if (ticket == nullptr) return;
  ticket->next = tickets_;
  tickets_ = ticket;
}

void Queue::make_tasks() {
  constexpr std::size_t kChunk = 64;
  Task* const made = tasks_.emplace_back(std::make_unique<Task[]>(kChunk)).get();
  for (std::size_t i = kChunk; i-- > 0;) made[i].next = std::exchange(spare_, &made[i]);
}

Queue::OwnedTask Queue::take_task() {
  const SpinGuard guard(submitting_);
  if (spare_ == nullptr) [[unlikely]]
    make_tasks();
  Task* const task = std::exchange(spare_, spare_->next);
  take_ticket_of(*task);
  return OwnedTask(task, Spare{this});
}

weir_event Queue::append(OwnedTask owned) {
  Task& task = *owned;
  weir_event event = WEIR_EVENT_INIT;
  {
    const SpinGuard guard(submitting_);
    if (tickets_ == nullptr) tickets_ = runtime_.tickets().take();
    Ticket& ticket = *tickets_;
    tickets_ = ticket.next;
    const std::uint64_t sequence = made_.load() + 1;
    made_.store(sequence);
    task.sequence = sequence & Task::kMostSequence;
    const std::uint64_t id = serial_ << Action::kSequenceBits | sequence;
    ticket.waiters = nullptr;
    ticket.status = WEIR_STATUS_OK;
    ticket.event.open(id);
    event = runtime_.event_of(ticket, id);
    task.ticket = &ticket;
    task.next = nullptr;
    // Before the owner can see the task, which may then complete and be reused.
    if (task.kind == Task::Kind::call) submitted_.fetch_add(1);
    (submitted_last_ != nullptr ? submitted_last_->next : submitted_first_) = owned.release();
    submitted_last_ = &task;
  }
  more_.store(true);
  return event;
}

weir_event Queue::access(Task::Kind kind, weir_buffer* buffer, const weir_region& region,
                         weir_access access) {
  OwnedTask task = take_task();
  task->kind = kind;
  task->kernel = nullptr;
  task->level = 1;
  task->set_name(nullptr);
  task->reserve(kind == Task::Kind::access ? 1 : 0, 0);
  if (kind == Task::Kind::access) task->set_use(0, check_operand(buffer, region, access));
  const weir_event event = append(std::move(task));
  try_progress();
  return event;
}

// ---- The program waits -------------------------------------------------------------------------

std::uint64_t Queue::newest() const noexcept {
  return direct_ ? queue_places_.front().stream->enqueued() : made_.load();
}

/// Enqueues an access or a fetch by the program and returns its event. If the program repeats the
/// last one, which timed out, it gets the same event again, so that repeated short waits succeed.
weir_event Queue::request_access(Task::Kind kind, weir_buffer* buffer, const weir_region& region,
                                 weir_access wanted) {
  constexpr std::uint64_t kSequence = (std::uint64_t{1} << Action::kSequenceBits) - 1;
  LastAccess asked{kind, buffer, {}, wanted};
  if (kind == Task::Kind::access) asked.region = check_operand(buffer, region, wanted).region;
  {
    const SpinGuard guard(submitting_);
    const bool again = last_access_.kind == kind && last_access_.buffer == buffer &&
                       last_access_.region == asked.region && last_access_.access == wanted;
    if (again && (last_access_.event.opaque[1] & kSequence) == newest()) return last_access_.event;
  }
  asked.event = direct_ ? queue_places_.front().stream->fence({buffer, region, wanted})
                        : access(kind, buffer, region, wanted);
  const SpinGuard guard(submitting_);
  last_access_ = asked;
  return asked.event;
}

/// Waits for the event of an access. After a failure a repeated access is a new one.
WaitResult Queue::await_access(const weir_event& event, std::int64_t timeout_ns) {
  WaitResult result = wait_for_events(runtime_, {&event, 1}, WEIR_WAIT_MODE_ALL, timeout_ns);
  if (result.status == WEIR_STATUS_OK || result.status == WEIR_STATUS_TIMEOUT) return result;
  const SpinGuard guard(submitting_);
  last_access_ = {};
  return result;
}

void Queue::combine_reductions(weir_buffer* buffer, const weir_region& region, weir_access access) {
  const NamedUse part = check_operand(buffer, region, access);
  reductions_->combine(*part.buffer, part.region);
}

weir_event Queue::flush(weir_buffer* buffer, const weir_region& region) {
  await_room();
  combine_reductions(buffer, region, WEIR_ACCESS_READ);
  if (!direct_) return access(Task::Kind::access, buffer, region, WEIR_ACCESS_READ);
  return queue_places_.front().stream->fence({buffer, region, WEIR_ACCESS_READ});
}

WaitResult Queue::acquire(weir_buffer* buffer, const weir_region& region, weir_access wanted,
                          std::int64_t timeout_ns) {
  if (wanted < WEIR_ACCESS_READ || wanted > WEIR_ACCESS_READ_WRITE) {
    fail_argument("access {} of the program is not read, write or read-write",
                  static_cast<int>(wanted));
  }
  if (NoWaitScope::active()) {
    fail(WEIR_STATUS_BUSY, "a kernel or callback must not wait for queue '{}'", name_);
  }
  combine_reductions(buffer, region, wanted);
  return await_access(request_access(Task::Kind::access, buffer, region, wanted), timeout_ns);
}

WaitResult Queue::synchronize(std::int64_t timeout_ns) {
  if (NoWaitScope::active()) {
    fail(WEIR_STATUS_BUSY, "a kernel or callback must not synchronise queue '{}'", name_);
  }
  reductions_->combine_everything();
  if (direct_) {
    WaitResult result = runtime_.synchronize(*queue_places_.front().stream, timeout_ns);
    if (result.status != WEIR_STATUS_TIMEOUT) reductions_->clear_poison();
    return result;
  }
  const std::int64_t deadline = sys::deadline_after(timeout_ns);
  const auto left = [&] {
    return deadline == sys::kNever ? WEIR_FOREVER
                                   : std::max<std::int64_t>(0, deadline - sys::now_ns());
  };
  const weir_event fetched = request_access(Task::Kind::fetch, nullptr, {}, WEIR_ACCESS_READ);
  WaitResult result = await_access(fetched, left());
  if (result.status == WEIR_STATUS_TIMEOUT) return result;
  runtime_.failures().remove(fetched.opaque[1]);
  const auto note = [&](WaitResult&& ended) {
    if (ended.status == WEIR_STATUS_OK) return;
    const CombiningLock owner(*this);
    if (unreported_failure_.status == WEIR_STATUS_OK) unreported_failure_ = std::move(ended);
  };
  if (result.status != WEIR_STATUS_OK) {
    const CombiningLock owner(*this);
    coherence_->carry_failures_over();
  }
  note(std::move(result));
  for (const QueuePlace& queue_place : queue_places_) {
    WaitResult drained = runtime_.synchronize(*queue_place.stream, left());
    if (drained.status == WEIR_STATUS_TIMEOUT) return drained;
    note(std::move(drained));
  }
  {
    const CombiningLock owner(*this);
    result = std::exchange(unreported_failure_, {});
    if (first_status_ != WEIR_STATUS_OK) result = {first_status_, first_failure_, 0};
    first_status_ = WEIR_STATUS_OK;
    first_failure_.reset();
    broken_.reset();
    coherence_->drop_completed_uses();
    unreported_.forget_up_to(fetched.opaque[1]);
  }
  reductions_->clear_poison();
  return result;
}

bool Queue::await_end(std::int64_t deadline_ns) {
  reductions_->combine_everything();
  if (!direct_) {
    const weir_event fetched = request_access(Task::Kind::fetch, nullptr, {}, WEIR_ACCESS_READ);
    const WaitResult result = await_access(fetched, time_until(deadline_ns));
    if (result.status == WEIR_STATUS_TIMEOUT && !result.failure) return false;
    runtime_.failures().remove(fetched.opaque[1]);
  }
  for (const QueuePlace& queue_place : queue_places_) {
    if (!runtime_.await_end({queue_place.stream}, time_until(deadline_ns))) return false;
  }
  return true;
}

void Queue::report_unreported() noexcept {
  for (const QueuePlace& queue_place : queue_places_) {
    if (queue_place.stream != nullptr) unreported_.take(queue_place.stream->unreported());
  }
  unreported_.report("queue", name_);
}

void Queue::cancel() {
  reductions_->discard_all([this] {
    const SpinGuard guard(submitting_);
    cancel_until_.store(newest());
  });
  more_.store(true);
  try_progress();
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
    reductions_->combine(buffer,
                         make_region(weir_region_range(0, buffer.bytes()), buffer.bytes(), ""));
  } catch (...) {
    reductions_->discard(buffer);
  }
  if (direct_) return;
  try {
    const weir_region all = weir_region_range(0, buffer.bytes());
    const weir_event event = access(Task::Kind::access, &buffer, all, WEIR_ACCESS_READ_WRITE);
    wait_for_events(runtime_, {&event, 1}, WEIR_WAIT_MODE_ALL, WEIR_FOREVER);
    runtime_.failures().remove(event.opaque[1]);
  } catch (...) {
    wait_for_tasks();
  }
  const CombiningLock owner(*this);
  forget_pieces_of(buffer);
  coherence_->forget(buffer);
}

/// A task whose action has completed stays until the owner processes the completion, which may be
/// after the buffer was destroyed.
void Queue::forget_pieces_of(const weir_buffer& buffer) noexcept {
  for (Task* task = live_.first(); task != nullptr; task = Live::after(*task)) {
    if (!task->found) continue;
    for (PieceUse& use : task->uses()) {
      if (use.piece() != nullptr && use.piece()->host_storage.buffer == &buffer) use.forget_piece();
    }
  }
}

void Queue::get_info(weir_queue_info& info, weir_queue_share* shares, std::size_t count) {
  info.name = name_.c_str();
  info.policy = policy_name_.c_str();
  info.place_count = queue_places_.size();
  info.max_in_flight = most_in_flight_;
  if (NoWaitScope::active()) {
    fail(WEIR_STATUS_BUSY, "a policy, kernel or callback must not ask queue '{}'", name_);
  }
  const CombiningLock owner(*this);
  if (direct_) {
    weir_stats stats = WEIR_STATS_INIT;
    queue_places_.front().stream->add_to(stats);
    const auto without = [](std::uint64_t all, std::uint64_t some) {
      return all - std::min(all, some);
    };
    const std::uint64_t in_flight = without(stats.actions_enqueued, stats.actions_completed);
    info.submitted =
        without(stats.actions_enqueued, queue_places_.front().stream->non_ordering_count());
    info.completed = without(info.submitted, in_flight);
  } else {
    info.completed = completed_.load();
    info.submitted = submitted_.load();
  }
  if (std::string text = remarks(); !text.empty()) {
    info.remarks = logged_remarks_.insert(std::move(text)).first->c_str();
  }
  if (shares == nullptr) return;
  for (std::size_t i = 0; i < std::min(count, queue_places_.size()); ++i)
    shares[i] = queue_places_[i].share;
  if (direct_ && count > 0) shares[0].tasks = info.completed;
}

}  // namespace weir::rt
