// Shares with several ranks.
#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/runtime.hpp"
#include "runtime/share.hpp"

namespace weir::rt {

// ---- All ranks ---------------------------------------------------------------------------------

/// The count is 0 only for a moment, in release().
void Share::enter() noexcept {
  for (;;) {
    std::uint64_t count = in_flight_.load();
    if (count > 0 && in_flight_.compare_exchange_strong(count, count + 1)) return;
    sys::yield();
  }
}

/// Calls say(). What it throws fails the share.
template <class Say>
void Share::send(const Say& say) noexcept {
  try {
    say();
  } catch (...) {
    Outcome outcome = current_exception_outcome(WEIR_STATUS_INTERNAL);
    fail_with(outcome.status,
              FailureRef::make(outcome.status, std::move(outcome.message), "chunk", name_, 0));
  }
}

/// Reports a failure to the other ranks.
void Share::broadcast_status() noexcept {
  if (group_ == nullptr || !failed_.load() || announced_.exchange(true)) return;
  if (is_root()) {
    dismiss();
    return;
  }
  try {
    WaitResult why;
    {
      const SpinGuard guard(failure_lock_);
      why = {status_, failure_, 0};
    }
    group_->send_failure(why.status, why.failure ? why.failure->message : "");
  } catch (...) {
    group_->port().drop(0, "could not be told of a failure");  // unless the root is lost
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

/// Applies the report of another rank's place. Two reports of one place may arrive in reverse
/// order.
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

void Share::on_rank_lost(Rank rank, const std::string& why) noexcept {
  enter();
  FailureRef failure;
  send([&] {
    failure = FailureRef::make(WEIR_STATUS_NETWORK_ERROR, std::string(why), "chunk", name_, 0);
  });
  if (is_root()) {
    {
      const SpinGuard guard(failure_lock_);
      last_loss_ = failure;
    }
    remove_peer(rank, true);
  } else if (rank == 0) {
    fail_with(WEIR_STATUS_NETWORK_ERROR, failure);
    announced_.store(true);
    detach();
  }
  release();
}

// ---- Not at rank 0 -----------------------------------------------------------------------------

void Share::CounterFetch::completed(std::int64_t found, const Outcome& ended) noexcept {
  old = static_cast<std::uint64_t>(found);
  outcome = failed_outcome(ended.status, ended.message.c_str());
  if (!one_side_done.exchange(true)) return;
  Share& share = *part->share;
  if (share.fetched(*part)) share.fetch_for(*part);
  share.release();
}

/// Fetches as many chunks as the place should have, one after the other.
void Share::fetch_for(Part& part) noexcept {
  for (;;) {
    std::uint64_t size = 0;
    {
      const SpinGuard guard(part.lock);
      if (part.fetching || part.in_flight >= depth(part)) return;
      if (stopped_.load() || part.lost.load()) return;
      part.fetching = true;
      ++part.calls;
      if (one_sided_) size = size_of_next(part);
    }
    if (size == 0) return send([&] { group_->send_request(part.index, report_of(part)); });
    in_flight_.fetch_add(1);
    part.counter_fetch.count = size;
    part.counter_fetch.one_side_done.store(false);
    try {
      group_->fetch_add(size, part.counter_fetch);
      if (!part.counter_fetch.one_side_done.exchange(true)) return;
    } catch (...) {
      part.counter_fetch.outcome = current_exception_outcome(WEIR_STATUS_INTERNAL);
    }
    const bool more = fetched(part);
    in_flight_.fetch_sub(1);  // the caller has a count, too
    if (!more) return;
  }
}

/// Handles a completed fetch. Returns whether to fetch again.
bool Share::fetched(Part& part) noexcept {
  const CounterFetch& call = part.counter_fetch;
  if (!call.outcome.ok()) {
    fail_with(call.outcome.status,
              FailureRef::make(call.outcome.status, call.outcome.message, "chunk", name_, 0));
    return false;
  }
  raise_counter(call.old + call.count);
  if (call.old >= items_.count()) {
    send([&] { group_->send_request(part.index, report_of(part)); });
    return false;
  }
  accept(part, {call.old, std::min(call.count, items_.count() - call.old)});
  return true;
}

/// Raises the known number of taken items. Several threads may learn of it at once.
void Share::raise_counter(std::uint64_t taken) noexcept {
  const SpinGuard guard(counter_lock_);
  const std::uint64_t known = counter_->read();
  if (taken > known) counter_->fetch_add(taken - known);
}

void Share::accept(Part& part, const Range& range) noexcept {
  if (stopped_.load()) return;
  Chunk* chunk = nullptr;
  {
    const SpinGuard guard(part.lock);
    part.fetching = false;
    if (part.lost.load()) {
      part.visits.fetch_add(1);
    } else {
      chunk = &take(part, range);
    }
  }
  if (chunk == nullptr) return send_end(part, range, WEIR_STATUS_DEVICE_ERROR, {});
  send([&] { group_->send_taken(part.index, report_of(part)); });
  if (!hand_out(*chunk)) in_flight_.fetch_sub(1);  // the caller has a count, too
}

void Share::send_end(Part& part, const Range& range, weir_status status,
                     const FailureRef& failure) noexcept {
  send([&] {
    const PartReport report = report_of(part);
    if (status == WEIR_STATUS_OK) {
      group_->send_done(part.index, report, range, results_of(range));
    } else if (part.lost.load()) {
      group_->send_returned(part.index, report, range, status, failure ? failure->message : "");
    }
  });
}

void Share::send_left() noexcept {
  try {
    group_->send_left();
  } catch (...) {
    group_->port().drop(0, "could not be told of the end");  // unless the root is lost
  }
}

/// The share is complete, or the root is lost and will not report it.
void Share::detach() noexcept {
  if (attached_.exchange(false)) in_flight_.fetch_sub(1);  // the caller has a count, too
}

void Share::on_assigned(std::size_t part, const ItemRange& range) noexcept {
  enter();
  const bool inside = range.first < items_.count() && range.count <= items_.count() - range.first;
  if (inside && range.count > 0) {
    accept(parts_[part], range);
    fetch_for(parts_[part]);
  }
  release();
}

void Share::on_counter(std::uint64_t taken) noexcept {
  enter();
  raise_counter(taken);
  release();
}

void Share::on_peer_report(const PeerReport& peer) noexcept {
  enter();
  update(parts_[peer.part], peer.report);
  release();
}

void Share::on_complete(weir_status status, std::string_view why) noexcept {
  enter();
  announced_.store(true);
  if (status == WEIR_STATUS_OK) {
    complete_.store(true);
    stopped_.store(true);
  } else {
    send([&] {
      FailureRef failure = FailureRef::make(status, std::string(why), "chunk", name_, 0);
      fail_with(status, failure);
      {
        const SpinGuard guard(
            failure_lock_);  // all ranks return the same failure, even if this rank failed first
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

/// Assigns items to a place of another rank that has sent a request, if there are any.
void Share::assign_to(Part& part, bool forced) noexcept {
  Range range{0, 0};
  {
    const SpinGuard guard(part.lock);
    if (!part.asked || stopped_.load() || part.lost.load()) return;
    const std::uint64_t size = std::max<std::uint64_t>(size_of_next(part), forced ? 1 : 0);
    if (size == 0 || !fetch(size, range)) {
      part.idle.store(true);
      return;
    }
    part.asked = false;
    if (!part.counted) in_flight_.fetch_add(1);
    part.counted = true;
  }
  try {
    group_->send_assignment(part.index, range);
  } catch (...) {
    give_back(range);  // the rank is lost, or counts as lost
    group_->port().drop(part.rank, "could not be given a chunk");
  }
}

/// Releases the count of a place of another rank that has completed all its items and has sent a
/// request, or was lost with no fetch in flight. The caller has a count.
void Share::settle(Part& part) noexcept {
  const SpinGuard guard(part.lock);
  const std::uint64_t visits = part.visits.load();
  const bool rests = part.asked || (part.lost.load() && part.calls <= visits);
  if (rests && part.ended >= visits && std::exchange(part.counted, false)) in_flight_.fetch_sub(1);
}

/// Called when nothing is in flight: items that are not complete belonged to lost ranks, and are
/// returned.
void Share::find_missing() noexcept {
  if (group_ == nullptr || !is_root()) return;
  if (counter_->read() < items_.count() || returned_items_.load() > 0) return;
  const SpinGuard guard(marks_lock_);
  std::size_t room = kDepth * parts_.size();
  marks_.for_each_gap(items_.count(), [&](const Range& gap) {
    give_back(gap);
    return --room > 0;
  });
}

/// Reports the end to the other ranks, and takes a count for each until it has left. Returns
/// whether this was the first call.
bool Share::dismiss() noexcept {
  if (group_ == nullptr || dismissed_.exchange(true)) return false;
  WaitResult why;
  {
    const SpinGuard guard(failure_lock_);
    complete_.store(done_.load() == items_.count());
    if (!complete_.load()) why = {status_, failure_, 0};
  }
  for (Rank rank = 1; rank < group_->ranks(); ++rank) {
    {
      const SpinGuard guard(peers_lock_);
      if (peers_[rank].departed) continue;
      peers_[rank].awaited = true;
      in_flight_.fetch_add(1);
    }
    try {
      group_->send_complete(rank, why.status, why.failure ? why.failure->message : "");
    } catch (...) {
      group_->port().drop(rank, "could not be told of the end");
    }
  }
  return true;
}

/// Removes a rank. It counts as lost unless it was dismissed. The caller has a count.
void Share::remove_peer(Rank rank, bool lost) noexcept {
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
    const SpinGuard guard(peers_lock_);
    PeerState& fellow = peers_[rank];
    fellow.departed = true;
    if (std::exchange(fellow.awaited, false)) in_flight_.fetch_sub(1);
  }
  wake_idle();
}

void Share::on_taken(std::size_t part, const PartReport& report) noexcept {
  enter();
  update(parts_[part], report);
  if (sends_boards() && begins_round(parts_[part])) send_board(parts_[part].rank);
  release();
}

/// Includes the place in the next status broadcast. The caller holds the lock of the part.
void Share::note_change(Part& part) noexcept {
  if (sends_boards()) part.changed = changes_.fetch_add(1) + 1;
}

/// Called when a place has taken a chunk. Returns whether that starts a new round of its rank.
bool Share::begins_round(Part& part) noexcept {
  PeerState& fellow = peers_[part.rank];
  const bool begins = part.round == fellow.round;
  if (begins) ++fellow.round;
  part.round = fellow.round;
  return begins;
}

/// Sends a rank the reports of other ranks' places that have changed since its last status
/// broadcast.
void Share::send_board(Rank rank) noexcept {
  PeerState& fellow = peers_[rank];
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
    group_->send_status(rank, std::min(counter_->read(), items_.count()), reports);
    fellow.told = last;
  } catch (...) {
    // The rank continues with the state that it knows.
  }
}

void Share::on_done(std::size_t part, const PartReport& report, const ItemRange& range,
                    std::span<const std::byte> results) noexcept {
  enter();
  const bool inside = range.first < items_.count() && range.count <= items_.count() - range.first;
  if (inside && results.size() == results_of(range).size()) {
    note_done(range, results);
    update(parts_[part], report);
    ++parts_[part].ended;
    wake_idle();
    settle(parts_[part]);
  } else {
    group_->port().drop(parts_[part].rank, "sent results of items that there are not");
  }
  release();
}

void Share::on_returned(std::size_t part, const PartReport& report, const ItemRange& range,
                        weir_status status, std::string_view why) noexcept {
  enter();
  const bool inside = range.first < items_.count() && range.count <= items_.count() - range.first;
  update(parts_[part], report);
  send([&] {
    FailureRef failure = FailureRef::make(status, std::string(why), "chunk", name_, 0);
    const SpinGuard guard(failure_lock_);
    last_loss_ = std::move(failure);
  });
  if (inside) give_back(range);
  ++parts_[part].ended;
  wake_idle();
  settle(parts_[part]);
  release();
}

void Share::on_request(std::size_t part, const PartReport& report) noexcept {
  enter();
  update(parts_[part], report);
  {
    const SpinGuard guard(parts_[part].lock);
    parts_[part].asked = true;
  }
  assign_to(parts_[part], false);
  settle(parts_[part]);
  release();
}

void Share::on_failure(Rank rank, weir_status status, std::string_view why) noexcept {
  enter();
  send([&] {
    fail_with(status,
              FailureRef::make(status, fmt::format("rank {}: {}", rank, why), "chunk", name_, 0));
    if (status == WEIR_STATUS_CANCELLED) cancel_chunks();
  });
  release();
}

void Share::on_left(Rank rank) noexcept {
  enter();
  remove_peer(rank, false);
  release();
}

}  // namespace weir::rt
