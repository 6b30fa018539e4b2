#include "runtime/share.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/thread_role.hpp"
#include "runtime/runtime.hpp"
#include "sched/ideal_time.hpp"

namespace weir::rt {

namespace {

bool is_of_device(weir_status status) noexcept {
  return status == WEIR_STATUS_DEVICE_ERROR || status == WEIR_STATUS_NETWORK_ERROR ||
         status == WEIR_STATUS_UNAVAILABLE;
}

bool is_one_sided(const weir_share_options& options) {
  const std::string_view text = options.scheduler != nullptr ? options.scheduler : "onesided";
  if (text != "onesided" && text != "master") {
    fail_argument("the scheduler of a share is '{}': choose onesided or master", text);
  }
  return text == "onesided";
}

std::vector<std::size_t> offsets_of(const weir_share_options& options) {
  if ((options.results == nullptr) != (options.result_offsets == nullptr)) {
    fail_argument("a share has results and their offsets, or neither: {} is NULL",
                  options.results == nullptr ? "results" : "result_offsets");
  }
  if (options.results == nullptr) return {};
  const std::size_t* const first = options.result_offsets;
  std::vector<std::size_t> offsets(first, first + options.items + 1);
  const auto wrong = std::is_sorted_until(offsets.begin(), offsets.end());
  if (wrong != offsets.end()) {
    fail_argument("result offset {} is less than the one before it", wrong - offsets.begin());
  }
  return offsets;
}

}  // namespace

// ---- Making and ending -------------------------------------------------------------------------

std::string Share::describe(const weir_share_options& options) {
  return fmt::format("share of {} items in chunks '{}' by '{}' with results of {} bytes",
                     options.items, options.chunks != nullptr ? options.chunks : "learned",
                     options.scheduler != nullptr ? options.scheduler : "onesided",
                     options.result_offsets != nullptr ? options.result_offsets[options.items] : 0);
}

Share::Share(Runtime& runtime, const weir_share_options& options, std::string name, Enqueue enqueue,
             ShareGroup::CollectiveJoin& join)
    : runtime_(runtime),
      name_(std::move(name)),
      chunks_(options.chunks != nullptr ? options.chunks : "learned"),
      items_(options.items, options.work),
      ways_(std::max<std::size_t>(1, options.ways)),
      enqueue_(std::move(enqueue)),
      one_sided_(is_one_sided(options)),
      results_(static_cast<std::byte*>(options.results)),
      result_offsets_(offsets_of(options)),
      counter_(std::make_unique<LocalCounter>()),
      places_(runtime, fmt::format("share '{}'", name_), options.places, options.place_count) {
  if (options.fabric != nullptr && runtime.virtual_time()) {
    fail(WEIR_STATUS_UNSUPPORTED,
         "a share over ranks needs real time: each has a clock of its own");
  }
  try {
    begin(join);
  } catch (...) {
    if (group_ != nullptr) group_->abandon(current_exception_outcome(WEIR_STATUS_INTERNAL));
    close_parts();
    throw;
  }
}

void Share::start() {
  try {
    if (group_ != nullptr) group_->listen(*this);
  } catch (...) {
    group_->abandon(current_exception_outcome(WEIR_STATUS_INTERNAL));
    complete_signal_.deliver();
    throw;
  }
  for (Part& part : parts_) {
    if (is_own(part)) advance(part, false);
  }
  release();
}

void Share::begin(ShareGroup::CollectiveJoin& join) {
  std::vector<std::string> names;
  for (const weir_place* const place : places_.all()) names.push_back(place->name());
  if (join.has_others()) group_ = std::make_unique<ShareGroup>(join, names);
  add_parts();
  policy_ = make_chunk_policy(chunks_, parts_.size());
  for (Part& part : parts_) {
    if (is_own(part)) part.trial = tries_ways() ? part.place->width() : 0;
    if (is_own(part) && part.trial > 0) part.untried = ways_;
  }
  returned_.reserve(2 * kDepth * parts_.size());
  started_ns_ = runtime_.now_ns();
  if (group_ == nullptr) return;
  if (is_root()) {
    counter_ = std::make_unique<WindowCounter>(group_->word());
    peers_.resize(group_->ranks());
  } else {
    attached_.store(true);
    in_flight_.fetch_add(1);
  }
}

void Share::add_parts() {
  const std::size_t count = group_ != nullptr ? group_->places().size() : places_.all().size();
  const std::size_t first = group_ != nullptr ? group_->first(group_->rank()) : 0;
  for (std::size_t index = 0; index < count; ++index) {
    Part& part = parts_.emplace_back();
    part.share = this;
    part.index = index;
    if (group_ != nullptr) part.rank = group_->places()[index].rank;
    if (index - first < places_.all().size()) part.place = places_.all()[index - first];
    part.name = part.place != nullptr ? part.place->name() : group_->places()[index].name;
    if (part.place != nullptr || is_root()) part.peers.resize(count);
    if (part.place != nullptr) {
      open_stream(part);
    } else if (is_root()) {
      part.counted = true;
      in_flight_.fetch_add(1);
    }
  }
}

void Share::finish() noexcept {
  try {
    wait_until_over(sys::kNever);
  } catch (...) {
    while (complete_signal_.count() == 0) runtime_.pass_time();
  }
  if (group_ != nullptr) group_->leave();
}

Share::~Share() {
  for (const Part& part : parts_) {
    if (part.stream == nullptr) continue;
    try {
      runtime_.await_end({part.stream}, WEIR_FOREVER);
    } catch (...) {  // the destructor waits
    }
  }
  report_unreported();
  close_parts();
}

void Share::report_unreported() noexcept {
  {
    const SpinGuard guard(failure_lock_);
    unreported_.add(unreported_failure_.failure);
    unreported_.add(failure_);
  }
  for (const Part& part : parts_) {
    if (part.stream != nullptr) unreported_.take(part.stream->unreported());
  }
  unreported_.report("share", name_);
}

void Share::open_stream(Part& part) {
  for (Chunk& chunk : part.chunks) {
    chunk.part = &part;
    chunk.deliver = on_end;
  }
  part.counter_fetch.part = &part;
  const std::string name = fmt::format("{}/{}", name_, part.name);
  weir_stream_options options = WEIR_STREAM_OPTIONS_INIT;
  options.name = name.c_str();
  part.stream = runtime_.create_stream(*part.place, options);
}

/// Whether there are enough items to find the fastest way.
bool Share::tries_ways() const noexcept {
  constexpr std::size_t kWorthwhile = 8;
  std::size_t cores = 0;
  for (const weir_place* const place : places_.all()) cores += place->width();
  if (group_ != nullptr) cores *= group_->ranks();
  return ways_ > 1 && policy_->uses_measured_speeds() &&
         items_.count() >= kWorthwhile * ways_ * cores;
}

void Share::close_parts() noexcept {
  for (const Part& part : parts_) {
    if (part.stream != nullptr) runtime_.destroy_stream(part.stream);
  }
}

// ---- Handing out -------------------------------------------------------------------------------

/// Gives a place as many chunks as it should have, at least one item if `forced`.
void Share::advance(Part& part, bool forced) noexcept {
  if (!is_own(part)) return assign_to(part, forced);
  if (!is_root()) return fetch_for(part);
  while (Chunk* const chunk = fetch_chunk(part, std::exchange(forced, false))) {
    if (!hand_out(*chunk))
      in_flight_.fetch_sub(1);  // complete already; the caller has a count, too
  }
}

/// Returns how many chunks a place has at once.
std::size_t Share::depth(const Part& part) const noexcept {
  const bool measured = !policy_->uses_measured_speeds() || part.meter.speed() > 0;
  return measured && policy_->fetches_ahead() ? kDepth : 1;
}

Share::Chunk* Share::fetch_chunk(Part& part, bool forced) noexcept {
  const SpinGuard guard(part.lock);
  if (part.in_flight >= depth(part)) return nullptr;
  if (stopped_.load() || part.lost.load()) return nullptr;
  const std::uint64_t size = std::max<std::uint64_t>(size_of_next(part), forced ? 1 : 0);
  Range range{0, 0};
  if (size == 0 || !fetch(size, range)) {
    part.idle.store(true);
    return nullptr;
  }
  return &take(part, range);
}

/// Makes items a chunk of a place. The caller holds the lock of the part.
Share::Chunk& Share::take(Part& part, const Range& range) noexcept {
  in_flight_.fetch_add(1);
  part.visits.fetch_add(1);
  Chunk& chunk = part.chunks[part.chunks[0].range.count == 0 ? 0 : 1];
  chunk.range = range;
  chunk.number = part.visits.load();
  chunk.way = part.untried > 0 ? part.untried - 1 : part.way;
  if (part.in_flight++ == 0) {
    part.busy_since_ns = runtime_.now_ns();
    part.meter.begin(part.busy_since_ns);
  }
  publish(part);
  return chunk;
}

std::uint64_t Share::size_of_next(Part& part) noexcept {
  const std::uint64_t taken = std::min(counter_->read(), items_.count());
  const Range next = next_range(taken);
  if (next.count == 0) return 0;
  if (part.trial > 0) return part.trial;
  const std::int64_t now = runtime_.now_ns();
  if (policy_->uses_peer_speeds()) {
    for (const Part& other : parts_) part.peers[other.index] = peer_of(other, now);
  }
  // Assumes that returned items have as much work each as the next ones.
  const std::uint64_t returned = returned_items_.load();
  const double work_returned = returned == 0 ? 0
                                             : work_of(next) / static_cast<double>(next.count) *
                                                   static_cast<double>(returned);
  const double work_left = items_.work(taken, items_.count()) + work_returned;
  const std::uint64_t size =
      policy_->count({.items = items_,
                      .next = next.first,
                      .remaining = items_.count() - taken + returned,
                      .remaining_work = std::max(0.0, work_left - estimate_unreported(now)),
                      .peers = part.peers,
                      .self = part.index});
  return std::min(size, items_.count());  // so that the counter does not overflow
}

/// Returns the range from which the next chunk will be cut.
Share::Range Share::next_range(std::uint64_t taken) noexcept {
  if (returned_items_.load() > 0) {
    const SpinGuard guard(returned_lock_);
    if (!returned_.empty()) return returned_.back();
  }
  return {taken, items_.count() - taken};
}

SharePeer Share::peer_of(const Part& part, std::int64_t now_ns) const noexcept {
  SharePeer peer{.speed = part.speed.load(),
                 .grain = part.grain.load(),
                 .visits = part.visits.load(),
                 .lost = part.lost.load()};
  if (peer.speed <= 0) return peer;
  const double current = part.current.load(), pending = std::max(current, part.pending.load());
  const double elapsed =
      static_cast<double>(std::max<std::int64_t>(1, now_ns - part.since_ns.load()));
  if (has_stale_status(part)) {
    peer.free_ns = std::max(0.0, pending / peer.speed - elapsed);
    return peer;
  }
  if (current > 0)
    peer.speed = std::min(peer.speed, current / elapsed);  // overdue: the place has become slower
  peer.free_ns = (pending - std::min(current, peer.speed * elapsed)) / peer.speed;
  return peer;
}

/// Returns the estimated work that places with old reports have started since.
double Share::estimate_unreported(std::int64_t now_ns) const noexcept {
  if (is_root()) return 0;
  double work = 0;
  for (const Part& part : parts_) {
    if (!has_stale_status(part) || part.lost.load()) continue;
    const auto elapsed =
        static_cast<double>(std::max<std::int64_t>(0, now_ns - part.since_ns.load()));
    work += std::max(0.0, part.speed.load() * elapsed - part.pending.load());
  }
  return work;
}

bool Share::fetch(std::uint64_t count, Range& range) noexcept {
  if (returned_items_.load() > 0) {
    const SpinGuard guard(returned_lock_);
    if (!returned_.empty()) {
      Range& some = returned_.back();
      range = {some.first, std::min(count, some.count)};
      some = {some.first + range.count, some.count - range.count};
      if (some.count == 0) returned_.pop_back();
      returned_items_.fetch_sub(range.count);
      return true;
    }
  }
  if (counter_->read() >= items_.count()) return false;
  range.first = counter_->fetch_add(count);
  if (range.first >= items_.count()) return false;
  range.count = std::min(count, items_.count() - range.first);
  return true;
}

/// Enqueues a chunk. Returns false if it is complete already.
bool Share::hand_out(Chunk& chunk) noexcept {
  const std::size_t first = group_ != nullptr ? group_->first(group_->rank()) : 0;
  const weir_chunk given = {chunk.range.first, chunk.range.count, chunk.part->stream,
                            chunk.part->index - first, chunk.way};
  weir_status status = WEIR_STATUS_OK;
  FailureRef failure;
  try {
    const NoWaitScope no_wait;
    const weir_event event = enqueue_(given);
    runtime_.check_event(event);
    const std::uint64_t id = event.opaque[1];
    chunk.cut = id != 0 && cancelled_.load();
    if (id != 0 && runtime_.slot_of(event).watch(id, chunk)) return true;
    FailureLog::Entry entry = id != 0 ? runtime_.failures().find(id) : FailureLog::Entry{};
    status = entry.status;
    failure = std::move(entry.failure);
  } catch (...) {
    Outcome outcome = current_exception_outcome(WEIR_STATUS_INTERNAL);
    status = outcome.status;
    failure = FailureRef::make(status, std::move(outcome.message), "chunk", name_, 0);
  }
  account(chunk, status, failure);
  return false;
}

// ---- Ends --------------------------------------------------------------------------------------

void Share::on_end(Waiter& waiter, weir_status status, const FailureRef& failure) {
  Part& part = *static_cast<Chunk&>(waiter).part;
  Share& share = *part.share;
  share.account(static_cast<Chunk&>(waiter), status, failure);
  share.advance(part, false);
  share.wake_idle();
  share.release();
}

void Share::account(Chunk& chunk, weir_status status, const FailureRef& failure) noexcept {
  Part& part = *chunk.part;
  const Range range = chunk.range;
  if (failure) status = failure->status;  // the root failure, if the last action was poisoned
  {
    const SpinGuard guard(part.lock);
    const std::int64_t now = runtime_.now_ns();
    if (status == WEIR_STATUS_OK && chunk.cut) status = WEIR_STATUS_CANCELLED;
    if (status == WEIR_STATUS_OK) {
      measure(part, chunk, now);
      if (is_root()) note_done(range, {});
    } else if (is_of_device(status)) {
      part.lost.store(true);
      if (is_root()) give_back(range);
      const SpinGuard noting(failure_lock_);
      last_loss_ = failure;
    } else {
      fail_with(status, failure);
    }
    chunk.range = {0, 0};
    if (--part.in_flight == 0) part.busy_ns += now - part.busy_since_ns;
    publish(part);
  }
  if (!is_root()) send_end(part, range, status, failure);
}

/// Records completed items. Returns false if they were complete before. `results` is set for items
/// of another rank.
bool Share::note_done(const Range& range, std::span<const std::byte> results) noexcept {
  if (group_ != nullptr) {
    const SpinGuard guard(marks_lock_);
    try {
      if (!marks_.add(range)) return false;
    } catch (const std::bad_alloc&) {
      fail_with(WEIR_STATUS_OUT_OF_MEMORY,
                FailureRef::make(WEIR_STATUS_OUT_OF_MEMORY, "out of memory", "chunk", name_, 0));
      return false;
    }
  }
  if (!results.empty()) std::memcpy(results_of(range).data(), results.data(), results.size());
  if (done_.fetch_add(range.count) + range.count == items_.count()) {
    ended_ns_.store(runtime_.now_ns());
  }
  return true;
}

void Share::measure(Part& part, const Chunk& chunk, std::int64_t now_ns) noexcept {
  const double work = work_of(chunk.range);
  part.done += chunk.range.count;
  part.work_done += work;
  if (part.untried == 0) {
    part.meter.end(now_ns, chunk.range.count, work);
    return;
  }
  const auto taken = std::max<std::int64_t>(1, now_ns - part.meter.since_ns());
  const double speed = work / static_cast<double>(taken);
  if (speed > part.way_speed) {
    part.way_speed = speed;
    part.way = chunk.way;
  }
  if (--part.untried == 0) part.trial = 0;
}

/// Publishes the load and speed of a place for the other places.
void Share::publish(Part& part) noexcept {
  const Chunk* begun = nullptr;
  double pending = 0;
  for (const Chunk& chunk : part.chunks) {
    if (chunk.range.count == 0) continue;
    pending += work_of(chunk.range);
    if (begun == nullptr || chunk.number < begun->number) begun = &chunk;
  }
  part.current.store(begun != nullptr ? work_of(begun->range) : 0);
  part.pending.store(pending);
  part.since_ns.store(part.meter.since_ns());
  part.speed.store(part.meter.speed() > 0 ? part.meter.speed() : part.way_speed);
  part.grain.store(part.meter.grain());
  note_change(part);
}

void Share::give_back(const Range& range) noexcept {
  const SpinGuard guard(returned_lock_);
  returned_.push_back(range);
  returned_items_.fetch_add(range.count);
}

void Share::fail_with(weir_status status, FailureRef failure) noexcept {
  const SpinGuard guard(failure_lock_);
  if (status_ == WEIR_STATUS_OK) {
    status_ = status;
    failure_ = std::move(failure);
  }
  failed_.store(true);
  stopped_.store(true);
}

void Share::wake_idle() noexcept {
  for (Part& part : parts_) {
    if (part.idle.load() && part.idle.exchange(false)) advance(part, false);
  }
}

/// Releases the caller's count. The thread that releases the last one gives remaining items to a
/// place, or completes the share.
void Share::release() noexcept {
  broadcast_status();
  while (in_flight_.fetch_sub(1) == 1) {
    in_flight_.store(1);
    if (any_place_takes_more()) continue;
    if (ended_ns_.load() < 0) ended_ns_.store(runtime_.now_ns());
    if (is_root() && dismiss()) continue;
    if (!is_root()) send_left();
    complete_signal_.deliver();
    return;
  }
}

/// Called when nothing is in flight. Gives remaining items to a place; returns false if there are
/// none or no place is left.
bool Share::any_place_takes_more() noexcept {
  if (stopped_.load() || done_.load() == items_.count()) return false;
  find_missing();
  wake_idle();
  if (in_flight_.load() > 1) return true;
  Part* best = nullptr;
  for (Part& part : parts_) {
    if (part.lost.load()) continue;
    if (best == nullptr || part.speed.load() > best->speed.load()) best = &part;
  }
  if (best != nullptr) {
    advance(*best, true);
    return true;
  }
  FailureRef loss;
  {
    const SpinGuard guard(failure_lock_);
    loss = last_loss_;
  }
  fail_with(loss ? loss->status : WEIR_STATUS_NETWORK_ERROR, loss);
  return false;
}

// ---- The program -------------------------------------------------------------------------------

/// Waits for the end of the share, and makes progress on the fabric if the caller has to.
bool Share::wait_until_over(std::int64_t deadline_ns) {
  if (group_ == nullptr || group_->port().progress_by() != ProgressBy::caller) {
    return wait_for_signal(runtime_, complete_signal_, 1, deadline_ns);
  }
  constexpr std::int64_t kSlice =
      1'000'000;  // completions of chunks do not wake threads that wait for the fabric
  const auto over = [this] { return complete_signal_.count() > 0; };
  for (;;) {
    const std::int64_t left = deadline_ns == sys::kNever ? kSlice : deadline_ns - sys::now_ns();
    if (group_->port().wait_until(over, std::clamp<std::int64_t>(left, 0, kSlice), "a share")) {
      return true;
    }
    if (left <= 0) return false;
  }
}

WaitResult Share::wait(std::int64_t timeout_ns) {
  if (NoWaitScope::active()) {
    fail(WEIR_STATUS_BUSY, "a kernel or callback must not wait for share '{}'", name_);
  }
  const std::int64_t deadline = sys::deadline_after(timeout_ns);
  if (!wait_until_over(deadline)) return {WEIR_STATUS_TIMEOUT, {}, 0};
  for (const Part& part : parts_) {
    if (!is_own(part)) continue;
    const std::int64_t left = deadline == sys::kNever
                                  ? WEIR_FOREVER
                                  : std::max<std::int64_t>(0, deadline - sys::now_ns());
    WaitResult drained = runtime_.synchronize(*part.stream, left);
    if (drained.status == WEIR_STATUS_TIMEOUT) return drained;
    if (drained.status == WEIR_STATUS_OK || part.lost.load()) continue;
    const SpinGuard guard(failure_lock_);
    if (unreported_failure_.status == WEIR_STATUS_OK) unreported_failure_ = std::move(drained);
  }
  const SpinGuard guard(failure_lock_);
  WaitResult result = std::exchange(unreported_failure_, {});
  const bool complete = group_ == nullptr ? done_.load() == items_.count() : complete_.load();
  return complete ? result : WaitResult{status_, failure_, 0};
}

void Share::cancel() {
  if (complete_signal_.count() > 0) return;
  struct Entered {
    explicit Entered(Share& entered) : share(entered) { share.enter(); }
    Entered(const Entered&) = delete;
    Entered& operator=(const Entered&) = delete;
    ~Entered() { share.release(); }
    Share& share;
  };
  const Entered entered(*this);  // without memory a stream may fail to cancel
  fail_with(WEIR_STATUS_CANCELLED,
            FailureRef::make(WEIR_STATUS_CANCELLED, "the share was cancelled", "chunk", name_, 0));
  cancel_chunks();
}

/// Cancels the chunks that have not started on this rank. Throws Error.
void Share::cancel_chunks() {
  cancelled_.store(true);
  for (const Part& part : parts_) {
    if (is_own(part)) part.stream->cancel();
  }
}

void Share::finish_or_cancel(std::int64_t timeout_ns) noexcept {
  try {
    if (!wait_until_over(sys::deadline_after(timeout_ns))) cancel();
  } catch (...) {  // no memory to wait or to cancel
    enter();
    fail_with(WEIR_STATUS_OUT_OF_MEMORY,
              FailureRef::make(WEIR_STATUS_OUT_OF_MEMORY, "out of memory", "chunk", name_, 0));
    release();  // notifies other ranks
  }
}

void Share::get_info(weir_share_info& info, weir_share_part* parts, std::size_t count) {
  const std::int64_t ended = ended_ns_.load();
  info.name = name_.c_str();
  info.chunks = chunks_.c_str();
  info.place_count = is_root() ? parts_.size() : places_.all().size();
  info.items = items_.count();
  info.done = done_.load();
  const std::int64_t now = ended >= 0 ? ended : runtime_.now_ns();
  info.makespan_ns = now - started_ns_;
  std::vector<PlaceWork> places;
  places.reserve(parts_.size());
  std::size_t index = 0;
  for (Part& part : parts_) {
    if (!is_own(part) && !is_root()) continue;
    const SpinGuard guard(part.lock);
    const std::int64_t busy = part.busy_ns + (part.in_flight > 0 ? now - part.busy_since_ns : 0);
    places.push_back({part.work_done, static_cast<double>(busy), part.lost.load()});
    if (parts == nullptr || index >= count) continue;
    parts[index++] = {.place = part.name.c_str(),
                      .items = part.done,
                      .visits = part.visits.load(),
                      .work = part.work_done,
                      .busy_ns = busy,
                      .idle_ns = std::max<std::int64_t>(0, info.makespan_ns - busy),
                      .way = part.way,
                      .lost = part.lost.load(),
                      .rank = part.rank};
  }
  info.ideal_ns = ideal_ns(places);
}

}  // namespace weir::rt
