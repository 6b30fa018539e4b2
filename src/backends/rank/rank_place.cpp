#include "backends/rank/rank_place.hpp"

#include <utility>

#include "base/config.hpp"
#include "base/thread_role.hpp"

namespace weir::rt {

RankPlace::RankPlace(RankConnection& connection, RankPlaces& places, const PlaceRequest& request,
                     PlaceFeed& feed)
    : connection_(connection),
      places_(places),
      feed_(feed),
      number_(connection.client().next_number()),
      spin_ns_(config::spin_ns()),
      clock_ahead_ns_(connection.client().clock_ahead_ns(connection.rank())),
      batch_(RankMessageKind::jobs, number_) {
  batch_start_ = batch_.bytes().size();
  RankClient& client = connection.client();
  client.add_place(number_, connection.rank(), *this);
  try {
    client.ask(
        connection.rank(), RankMessageKind::open_place,
        [&](WireWriter& message) {
          message.put(connection.number(), number_, request.name,
                      static_cast<std::uint32_t>(request.cores.size()));
          for (const unsigned core : request.cores) message.put(core);
        },
        [](WireReader&) {});
    thread_.emplace(request.name, [this] { serve(); });
    places_.add(*this);
  } catch (...) {
    close();
    throw;
  }
}

RankPlace::~RankPlace() {
  places_.remove(*this);
  close();
}

void RankPlace::close() noexcept {
  stopping_.store(true, std::memory_order_seq_cst);
  end_park();
  parking_.unpark_all();
  thread_.reset();
  connection_.client().remove_place(number_);
  try {
    connection_.post(WireWriter(RankMessageKind::close_place, number_));
  } catch (...) {  // a lost rank has no places
  }
}

void RankPlace::serve() noexcept {
  const NoWaitScope no_wait;
  sys::run_promptly();
  while (!stopping_.load(std::memory_order_relaxed)) {
    if (has_pollers()) {
      const std::uint64_t first = jobs_.first();
      park_timed();
      if (jobs_.first() == first) ask();  // pollers may poll again and again without ever sleeping
      continue;
    }
    connection_.port().progress();
    if (!pass().any()) idle();
  }
}

bool RankPlace::poll() noexcept {
  polls_.fetch_add(1, std::memory_order_relaxed);
  return poll_once();
}

bool RankPlace::poll_once() noexcept {
  const NoWaitScope no_wait;
  const Moved moved = pass();
  // it requests completions when no thread polls any more
  if (moved.out && owes_request()) parking_.unpark_one();
  return moved.any();
}

/// Returns whether other threads have polled since the last call.
bool RankPlace::has_pollers() noexcept {
  const std::uint32_t polls = polls_.load(std::memory_order_relaxed);
  return std::exchange(polls_seen_, polls) != polls;
}

/// Leaves the work to polling threads until a timeout, or until one of them is about to block.
void RankPlace::park_timed() noexcept {
  parked_.store(1);
  if (!stopping_.load()) sys::wait(parked_, 1, sys::now_ns() + kParkNs);
  if (parked_.exchange(0) == 0) has_pollers();
}

void RankPlace::end_park() noexcept {
  if (parked_.load() != 0 && parked_.exchange(0) != 0) sys::wake_all(parked_);
}

bool RankPlace::try_serve() noexcept {
  const void* none = nullptr;
  return server_.compare_exchange_strong(none, this_thread(), std::memory_order_acquire,
                                         std::memory_order_relaxed);
}

/// Moves jobs in both directions, unless another thread does so.
RankPlace::Moved RankPlace::pass() noexcept {
  if (!try_serve()) return {false, false};
  const bool back = take_back();
  const bool out = hand_out();
  server_.store(nullptr, std::memory_order_release);
  return {back, out};
}

// ---- To the rank -------------------------------------------------------------------------------

/// Sends jobs until there are no more, or the window is full. Returns whether there were any.
bool RankPlace::hand_out() noexcept {
  bool any = false;
  try {
    while (!jobs_.full()) {
      Slot& slot = jobs_.free_slot();
      if (!feed_.next(worker_, slot.job)) break;
      jobs_.add();
      any = true;
      slot.job.started_ns = slot.job.ended_ns = 0;
      if (completions_.failed()) {
        fail_job(slot);
        continue;
      }
      write(slot);
      if (batch_.bytes().size() > kBatchBytes) send_batch();
    }
    send_batch();
  } catch (...) {
    batch_.cut(batch_start_);  // the rank could not read a partial job
    abandon(current_exception_outcome(WEIR_STATUS_INTERNAL));
  }
  return any;
}

void RankPlace::send_batch() {
  if (batch_.bytes().size() == batch_start_) return;
  asked_.store(false);
  connection_.post(batch_);
  batch_.cut(batch_start_);
}

/// Returns whether the rank may delay the report of a completion: it does so while it has brief
/// jobs to run.
bool RankPlace::owes_request() const noexcept {
  return !asked_.load() && jobs_.first() <= last_brief_.load();
}

/// Requests all completions, including those that the rank would delay. Returns false if another
/// thread is serving the place.
bool RankPlace::ask() {
  if (!owes_request()) return true;
  if (!try_serve()) return false;
  try {
    if (!completions_.failed() && !asked_.exchange(true)) connection_.post(batch_);
  } catch (...) {
    abandon(current_exception_outcome(WEIR_STATUS_INTERNAL));
  }
  server_.store(nullptr, std::memory_order_release);
  return true;
}

void RankPlace::write(Slot& slot) {
  const Job& job = slot.job;
  if (!job.is_copy) connection_.define(job);
  const bool named = !job.is_copy && std::string_view(job.call.name) != job.kernel;
  const unsigned flags = (job.is_copy ? kJobCopies : 0) | (job.parallel ? kJobParallel : 0) |
                         (job.brief ? kJobBrief : 0) | (job.timed ? kJobTimed : 0) |
                         (job.source != nullptr ? kJobSource : 0) | (named ? kJobNamed : 0);
  if (job.brief) last_brief_.store(job.id);
  batch_.put(job.id, static_cast<std::uint8_t>(flags), job.priority,
             static_cast<std::uint16_t>(job.waits.size()));
  for (const std::uint64_t earlier : job.waits) batch_.put(earlier);
  if (job.is_copy) {
    write_copy(slot);
  } else {
    write_call(job);
  }
}

void RankPlace::write_call(const Job& job) {
  batch_.put(static_cast<std::uint32_t>(job.kernel_number));
  if (std::string_view(job.call.name) != job.kernel) batch_.put(std::string_view(job.call.name));
  batch_.put(static_cast<std::uint16_t>(job.call.scalar_count));
  for (std::size_t i = 0; i < job.call.scalar_count; ++i) batch_.put(job.call.scalars[i]);
  batch_.put(static_cast<std::uint16_t>(job.call.operand_count));
  for (std::size_t i = 0; i < job.call.operand_count; ++i) batch_.put(job.call.operands[i]);
  if (job.source == nullptr) return;
  for (const std::uint32_t groups : job.groups) batch_.put(groups);
}

void RankPlace::write_copy(Slot& slot) {
  for (const CopyEnd* end : {&slot.job.from, &slot.job.to}) {
    if (end->device == nullptr) {
      const RankCopyEnd lent = connection_.lend(*end);
      slot.window = lent.window;
      batch_.put(lent);
    } else {
      batch_.put(connection_.near_end(*end));
    }
  }
}

// ---- Back to the feed --------------------------------------------------------------------------

void RankPlace::done(WireReader& message) {
  completions_.read(message);
  if (!connection_.port().on_own_thread()) parking_.unpark_one();
}

/// Returns completed jobs here, which spares the place's thread a wake-up. Wakes the thread if
/// another one was serving and may have missed them, or if the feed calls callbacks of the program,
/// which must not hold up progress.
void RankPlace::on_progress() noexcept {
  if (!feed_.calls_back()) poll_once();
  if (completions_.any()) parking_.unpark_one();
}

void RankPlace::on_rank_lost(const Outcome& why) noexcept {
  completions_.end(failed_outcome(why.status, why.message.c_str()));
  parking_.unpark_one();
}

/// Gives up a rank to which jobs cannot be sent. It may still run jobs that are failed here, and
/// must not be notified that their memory is free.
void RankPlace::abandon(Outcome why) noexcept {
  const char* const because = why.message.c_str();
  connection_.port().drop(connection_.rank(), "cannot be sent jobs: ", because);
  completions_.end(std::move(why));
  parking_.unpark_one();
}

/// Returns completed jobs to the feed. Returns whether there were any, or a failure.
bool RankPlace::take_back() noexcept {
  if (!completions_.any()) return false;
  for (RankCompletion& completion : completions_.take()) {
    Slot* const slot = completion.number == 0 ? nullptr : jobs_.find(completion.number);
    if (slot == nullptr) continue;
    if (slot->job.timed) {
      slot->job.started_ns = completion.started_ns - clock_ahead_ns_;
      slot->job.ended_ns = completion.ended_ns - clock_ahead_ns_;
    }
    worker_.index = completion.worker;
    give_back(*slot, std::move(completion.outcome));
  }
  if (completions_.failed()) jobs_.for_each([this](Slot& slot) { fail_job(slot); });
  return true;
}

void RankPlace::fail_job(Slot& slot) noexcept { give_back(slot, completions_.failure()); }

void RankPlace::give_back(Slot& slot, Outcome outcome) noexcept {
  if (slot.window) connection_.port().withdraw(*std::exchange(slot.window, std::nullopt));
  if (slot.job.timed && slot.job.ended_ns == 0) {  // the job has not run
    slot.job.started_ns = slot.job.ended_ns = sys::now_ns();
  }
  feed_.finish(worker_, slot.job, std::move(outcome));
  jobs_.remove(slot);
}

// ---- Nothing to do -----------------------------------------------------------------------------

bool RankPlace::has_work() const noexcept {
  return completions_.any() || (!jobs_.full() && feed_.has_work()) ||
         stopping_.load(std::memory_order_seq_cst);
}

/// Polls for a while, then requests completions and sleeps until there is work.
void RankPlace::idle() noexcept {
  const std::int64_t until = sys::now_ns() + spin_ns_;
  while (sys::now_ns() < until) {
    if (!connection_.port().progress()) sys::pause();
    if (has_work() || polls_.load(std::memory_order_relaxed) != polls_seen_) return;
  }
  if (!ask()) return;
  parking_.prepare();
  connection_.port().about_to_block();
  if (has_work() || owes_request()) {
    parking_.cancel();
  } else {
    parking_.park();
  }
}

// ---- The places of a device --------------------------------------------------------------------

void RankPlaces::add(RankPlace& place) {
  const sys::Lock lock(mutex_);
  places_.push_back(&place);
}

void RankPlaces::remove(RankPlace& place) noexcept {
  {
    const sys::Lock lock(mutex_);
    std::erase(places_, &place);
  }
  place.wait_for_pins();
}

RankPlace* RankPlaces::pin(std::size_t index) noexcept {
  const sys::Lock lock(mutex_);
  if (index >= places_.size()) return nullptr;
  places_[index]->pin();
  return places_[index];
}

}  // namespace weir::rt
