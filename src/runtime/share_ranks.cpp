// Shares over ranks.
#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/runtime.hpp"
#include "runtime/share.hpp"

namespace weir::rt {

// ---- All ranks ---------------------------------------------------------------------------------

/// The count is 0 for a moment only, in release().
void Share::enter() noexcept {
  for (;;) {
    std::uint64_t count = in_flight_.load();
    if (count > 0 && in_flight_.compare_exchange_strong(count, count + 1)) return;
    sys::yield();
  }
}

/// Fails with what it throws.
template <class Say>
void Share::tell(const Say& say) noexcept {
  try {
    say();
  } catch (...) {
    Outcome outcome = current_exception_outcome(WEIR_STATUS_INTERNAL);
    fail_with(outcome.status,
              FailureRef::make(outcome.status, std::move(outcome.message), "chunk", name_, 0));
  }
}

/// Tells the others of a failure.
void Share::announce() noexcept {
  if (crew_ == nullptr || !failed_.load() || announced_.exchange(true)) return;
  if (is_home()) {
    dismiss();
    return;
  }
  try {
    WaitResult why;
    {
      const SpinGuard guard(failing_);
      why = {status_, failure_, 0};
    }
    crew_->say_failure(why.status, why.failure ? why.failure->message : "");
  } catch (...) {
    crew_->port().drop(0, "could not be told of a failure");  // unless it is gone
    detach();
  }
}

std::span<std::byte> Share::results_of(const Range& range) const noexcept {
  if (results_ == nullptr) return {};
  const std::size_t first = result_offsets_[range.first];
  return {results_ + first, result_offsets_[range.first + range.count] - first};
}

PartReport Share::report_of(Part& part) noexcept {
  const SpinGuard guard(part.lock);
  const std::int64_t now = runtime_.now_ns();
  return {.speed = part.speed.load(),
          .pending = part.pending.load(),
          .current = part.current.load(),
          .age_ns = now - part.since_ns.load(),
          .grain = part.grain.load(),
          .visits = part.visits.load(),
          .calls = part.calls,
          .trial = part.trial,
          .done = part.done,
          .work_done = part.work_done,
          .busy_ns = part.busy_ns + (part.in_flight > 0 ? now - part.busy_since_ns : 0),
          .way = static_cast<std::uint32_t>(part.way),
          .lost = part.lost.load()};
}

/// Takes over what another rank says. Two reports of one place may come in the wrong order.
void Share::update(Part& part, const PartReport& report) noexcept {
  const SpinGuard guard(part.lock);
  part.visits.store(std::max(part.visits.load(), report.visits));
  part.calls = std::max(part.calls, report.calls);
  if (report.lost != 0) part.lost.store(true);
  note_change(part);
  if (report.done < part.done) return;
  part.speed.store(report.speed);
  part.pending.store(report.pending);
  part.current.store(report.current);
  part.since_ns.store(runtime_.now_ns() - report.age_ns);
  part.grain.store(report.grain);
  part.trial = report.trial;
  part.done = report.done;
  part.work_done = report.work_done;
  part.busy_ns = report.busy_ns;
  part.way = report.way;
}

void Share::lost_rank(Rank rank, const std::string& why) noexcept {
  enter();
  FailureRef failure;
  tell([&] {
    failure = FailureRef::make(WEIR_STATUS_NETWORK_ERROR, std::string(why), "chunk", name_, 0);
  });
  if (is_home()) {
    {
      const SpinGuard guard(failing_);
      last_loss_ = failure;
    }
    depart(rank, true);
  } else if (rank == 0) {
    fail_with(WEIR_STATUS_NETWORK_ERROR, failure);
    announced_.store(true);
    detach();
  }
  release();
}

// ---- Not at rank 0 -----------------------------------------------------------------------------

void Share::Call::completed(std::int64_t found, const Outcome& ended) noexcept {
  old = static_cast<std::uint64_t>(found);
  outcome = failed_outcome(ended.status, ended.message.c_str());
  if (!met.exchange(true)) return;
  Share& share = *part->share;
  if (share.fetched(*part)) share.call_on(*part);
  share.release();
}

/// Gets a place the chunks that it should have, one after the other.
void Share::call_on(Part& part) noexcept {
  for (;;) {
    std::uint64_t size = 0;
    {
      const SpinGuard guard(part.lock);
      if (part.calling || part.in_flight >= depth(part)) return;
      if (stopped_.load() || part.lost.load()) return;
      part.calling = true;
      ++part.calls;
      if (one_sided_) size = size_of_next(part);
    }
    if (size == 0) return tell([&] { crew_->say_ask(part.index, report_of(part)); });
    in_flight_.fetch_add(1);
    part.call.count = size;
    part.call.met.store(false);
    try {
      crew_->fetch_add(size, part.call);
      if (!part.call.met.exchange(true)) return;
    } catch (...) {
      part.call.outcome = current_exception_outcome(WEIR_STATUS_INTERNAL);
    }
    const bool more = fetched(part);
    in_flight_.fetch_sub(1);  // the caller is counted as well
    if (!more) return;
  }
}

/// Takes what a call brought. Returns whether to go on.
bool Share::fetched(Part& part) noexcept {
  const Call& call = part.call;
  if (!call.outcome.ok()) {
    fail_with(call.outcome.status,
              FailureRef::make(call.outcome.status, call.outcome.message, "chunk", name_, 0));
    return false;
  }
  note_taken(call.old + call.count);
  if (call.old >= items_.count()) {
    tell([&] { crew_->say_ask(part.index, report_of(part)); });
    return false;
  }
  accept(part, {call.old, std::min(call.count, items_.count() - call.old)});
  return true;
}

/// So many have been handed out, as is known now. Several threads hear that at once.
void Share::note_taken(std::uint64_t taken) noexcept {
  const SpinGuard guard(knowing_);
  const std::uint64_t known = counter_->read();
  if (taken > known) counter_->fetch_add(taken - known);
}

void Share::accept(Part& part, const Range& range) noexcept {
  if (stopped_.load()) return;
  Chunk* chunk = nullptr;
  {
    const SpinGuard guard(part.lock);
    part.calling = false;
    if (part.lost.load()) {
      part.visits.fetch_add(1);
    } else {
      chunk = &take(part, range);
    }
  }
  if (chunk == nullptr) return tell_end(part, range, WEIR_STATUS_DEVICE_ERROR, {});
  tell([&] { crew_->say_took(part.index, report_of(part)); });
  if (!hand_out(*chunk)) in_flight_.fetch_sub(1);  // the caller is counted as well
}

void Share::tell_end(Part& part, const Range& range, weir_status status,
                     const FailureRef& failure) noexcept {
  tell([&] {
    const PartReport report = report_of(part);
    if (status == WEIR_STATUS_OK) {
      crew_->say_done(part.index, report, range, results_of(range));
    } else if (part.lost.load()) {
      crew_->say_returned(part.index, report, range, status, failure ? failure->message : "");
    }
  });
}

void Share::tell_left() noexcept {
  try {
    crew_->say_left();
  } catch (...) {
    crew_->port().drop(0, "could not be told of the end");  // unless it is gone
  }
}

/// The share is over, or nobody says so any more.
void Share::detach() noexcept {
  if (attached_.exchange(false)) in_flight_.fetch_sub(1);  // the caller is counted as well
}

void Share::heard_give(std::size_t part, const ItemRange& range) noexcept {
  enter();
  const bool inside = range.first < items_.count() && range.count <= items_.count() - range.first;
  if (inside && range.count > 0) {
    accept(parts_[part], range);
    call_on(parts_[part]);
  }
  release();
}

void Share::heard_taken(std::uint64_t taken) noexcept {
  enter();
  note_taken(taken);
  release();
}

void Share::heard_peer(const PeerReport& peer) noexcept {
  enter();
  update(parts_[peer.part], peer.report);
  release();
}

void Share::heard_over(weir_status status, std::string_view why) noexcept {
  enter();
  announced_.store(true);
  if (status == WEIR_STATUS_OK) {
    complete_.store(true);
    stopped_.store(true);
  } else {
    tell([&] {
      FailureRef failure = FailureRef::make(status, std::string(why), "chunk", name_, 0);
      fail_with(status, failure);
      {
        const SpinGuard guard(failing_);  // all ranks return the same, whatever failed here first
        status_ = status;
        failure_ = std::move(failure);
      }
      if (status == WEIR_STATUS_CANCELLED) cancel_chunks();
    });
  }
  detach();
  release();
}

// ---- At rank 0 ---------------------------------------------------------------------------------

/// Answers a place of another rank that has asked, if there is something for it.
void Share::give_to(Part& part, bool forced) noexcept {
  Range range{0, 0};
  {
    const SpinGuard guard(part.lock);
    if (!part.asked || stopped_.load() || part.lost.load()) return;
    const std::uint64_t size = std::max<std::uint64_t>(size_of_next(part), forced ? 1 : 0);
    if (size == 0 || !fetch(size, range)) {
      part.resting.store(true);
      return;
    }
    part.asked = false;
    if (!part.counted) in_flight_.fetch_add(1);
    part.counted = true;
  }
  try {
    crew_->say_give(part.index, range);
  } catch (...) {
    give_back(range);  // the rank is gone, or counts as that
    crew_->port().drop(part.rank, "could not be given a chunk");
  }
}

/// A place of another rank is no longer counted when it has nothing, which the caller is, and gets
/// nothing: what has been given to one that was lost meanwhile comes back.
void Share::settle(Part& part) noexcept {
  const SpinGuard guard(part.lock);
  const std::uint64_t visits = part.visits.load();
  const bool rests = part.asked || (part.lost.load() && part.calls <= visits);
  if (rests && part.ended >= visits && std::exchange(part.counted, false)) in_flight_.fetch_sub(1);
}

/// Nobody has anything: what is not done was of ranks that are lost.
void Share::find_missing() noexcept {
  if (crew_ == nullptr || !is_home()) return;
  if (counter_->read() < items_.count() || returned_items_.load() > 0) return;
  const SpinGuard guard(marking_);
  std::size_t room = kDepth * parts_.size();
  marks_.for_each_gap(items_.count(), [&](const Range& gap) {
    give_back(gap);
    return --room > 0;
  });
}

/// Lets the others go, and counts those that are to say that they have gone. Returns whether it was
/// the first time.
bool Share::dismiss() noexcept {
  if (crew_ == nullptr || dismissed_.exchange(true)) return false;
  WaitResult why;
  {
    const SpinGuard guard(failing_);
    complete_.store(done_.load() == items_.count());
    if (!complete_.load()) why = {status_, failure_, 0};
  }
  for (Rank rank = 1; rank < crew_->ranks(); ++rank) {
    {
      const SpinGuard guard(departing_);
      if (fellows_[rank].gone) continue;
      fellows_[rank].awaited = true;
      in_flight_.fetch_add(1);
    }
    try {
      crew_->say_over(rank, why.status, why.failure ? why.failure->message : "");
    } catch (...) {
      crew_->port().drop(rank, "could not be told of the end");
    }
  }
  return true;
}

/// A rank takes no part any more: it counts as lost, unless it has been let go. The caller is
/// counted.
void Share::depart(Rank rank, bool lost) noexcept {
  lost = lost || !dismissed_.load();
  for (Part& part : parts_) {
    if (part.rank != rank) continue;
    const SpinGuard guard(part.lock);
    part.asked = false;
    if (lost) {
      part.lost.store(true);
      note_change(part);
    }
    if (std::exchange(part.counted, false)) in_flight_.fetch_sub(1);
  }
  {
    const SpinGuard guard(departing_);
    Fellow& fellow = fellows_[rank];
    fellow.gone = true;
    if (std::exchange(fellow.awaited, false)) in_flight_.fetch_sub(1);
  }
  wake_resting();
}

void Share::heard_took(std::size_t part, const PartReport& report) noexcept {
  enter();
  update(parts_[part], report);
  if (sends_boards() && begins_round(parts_[part])) send_board(parts_[part].rank);
  release();
}

/// The next board tells other ranks of the place, whose lock is held.
void Share::note_change(Part& part) noexcept {
  if (sends_boards()) part.changed = changes_.fetch_add(1) + 1;
}

/// A place has taken a chunk. Returns whether that begins a round of its rank.
bool Share::begins_round(Part& part) noexcept {
  Fellow& fellow = fellows_[part.rank];
  const bool begins = part.round == fellow.round;
  if (begins) ++fellow.round;
  part.round = fellow.round;
  return begins;
}

/// Tells a rank what has changed of the places of others since its last board.
void Share::send_board(Rank rank) noexcept {
  Fellow& fellow = fellows_[rank];
  const std::uint64_t last = changes_.load();
  const auto has_news = [&](Part& part) {
    const SpinGuard guard(part.lock);
    return part.rank != rank && part.changed > fellow.told;
  };
  try {
    std::vector<PeerReport> reports;
    for (Part& part : parts_) {
      if (has_news(part)) reports.push_back({report_of(part), part.index});
    }
    crew_->say_board(rank, std::min(counter_->read(), items_.count()), reports);
    fellow.told = last;
  } catch (...) {
    // It goes by what it knew before.
  }
}

void Share::heard_done(std::size_t part, const PartReport& report, const ItemRange& range,
                       std::span<const std::byte> results) noexcept {
  enter();
  const bool inside = range.first < items_.count() && range.count <= items_.count() - range.first;
  if (inside && results.size() == results_of(range).size()) {
    note_done(range, results);
    update(parts_[part], report);
    ++parts_[part].ended;
    wake_resting();
    settle(parts_[part]);
  } else {
    crew_->port().drop(parts_[part].rank, "sent results of items that there are not");
  }
  release();
}

void Share::heard_returned(std::size_t part, const PartReport& report, const ItemRange& range,
                           weir_status status, std::string_view why) noexcept {
  enter();
  const bool inside = range.first < items_.count() && range.count <= items_.count() - range.first;
  update(parts_[part], report);
  tell([&] {
    FailureRef failure = FailureRef::make(status, std::string(why), "chunk", name_, 0);
    const SpinGuard guard(failing_);
    last_loss_ = std::move(failure);
  });
  if (inside) give_back(range);
  ++parts_[part].ended;
  wake_resting();
  settle(parts_[part]);
  release();
}

void Share::heard_ask(std::size_t part, const PartReport& report) noexcept {
  enter();
  update(parts_[part], report);
  {
    const SpinGuard guard(parts_[part].lock);
    parts_[part].asked = true;
  }
  give_to(parts_[part], false);
  settle(parts_[part]);
  release();
}

void Share::heard_failure(Rank rank, weir_status status, std::string_view why) noexcept {
  enter();
  tell([&] {
    fail_with(status,
              FailureRef::make(status, fmt::format("rank {}: {}", rank, why), "chunk", name_, 0));
    if (status == WEIR_STATUS_CANCELLED) cancel_chunks();
  });
  release();
}

void Share::heard_left(Rank rank) noexcept {
  enter();
  depart(rank, false);
  release();
}

}  // namespace weir::rt
