#include "share/share_ranks.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "stream/registry.hpp"

namespace weir::rt {

// ==== The root ==================================================================================

PartReport RemotePart::report(std::int64_t now_ns) noexcept {
  const SpinGuard guard(lock);
  PartReport report = last;
  report.age_ns = now_ns - status.since_ns.load();
  report.visits = status.visits.load();
  report.lost = status.lost.load();
  return report;
}

ShareRoot::ShareRoot(ShareState& state, ShareGroup& group, std::deque<LocalPart>& own,
                     bool one_sided)
    : state_(state),
      group_(group),
      own_(own),
      sends_status_(one_sided && state.source.policy().uses_peer_speeds()),
      rounds_(group.ranks()),
      peers_(group.ranks()) {
  state_.completed.refuse_repeated();
  for (std::size_t index = own.size(); index < group.places().size(); ++index) {
    parts_.emplace_back(state, static_cast<std::uint32_t>(index), group.places()[index].rank);
    state_.pending.add();
  }
  for (LocalPart& part : own) part.changes = sends_status_ ? &changes_ : nullptr;
}

// ---- Places of other ranks ---------------------------------------------------------------------

void ShareRoot::assign(RemotePart& part, bool forced) noexcept {
  ItemRange range{0, 0};
  {
    const SpinGuard guard(part.lock);
    if (!part.asked || state_.outcome.has_stopped() || part.status.lost.load()) return;
    const std::uint64_t size = std::max<std::uint64_t>(
        state_.source.next_size(part.index, part.last.trial, part.peers, state_.registry.now_ns()),
        forced ? 1 : 0);
    if (size == 0 || !state_.source.take(size, range)) {
      part.status.idle.store(true);
      return;
    }
    part.asked = false;
    if (!std::exchange(part.counted, true)) state_.pending.add();
  }
  if (!group_.send_or_drop(part.rank, ShareMessage::assignment,
                           {.range = range, .part = part.index}, "",
                           "could not be given a chunk")) {
    state_.source.give_back(range);  // the rank is lost, or counts as lost
  }
}

/// Two reports of one place may arrive in reverse order.
void ShareRoot::update(RemotePart& part, const PartReport& report, bool asks) noexcept {
  const SpinGuard guard(part.lock);
  if (asks) part.asked = true;
  const std::uint64_t calls = std::max(part.last.calls, report.calls);
  part.status.visits.store(std::max(part.status.visits.load(), report.visits));
  if (report.lost != 0) part.status.lost.store(true);
  if (report.done >= part.last.done) {
    part.last = report;
    report.publish(part.status, state_.registry.now_ns());
  }
  part.last.calls = calls;
  note_change(part);
}

/// Includes the place in the next status broadcasts.
void ShareRoot::note_change(RemotePart& part) noexcept {
  if (sends_status_) part.changed = changes_.fetch_add(1) + 1;
}

/// Releases the count of a place that has completed all its items and has sent a request, or was
/// lost with no fetch in flight. The caller has a count.
void ShareRoot::settle(RemotePart& part) noexcept {
  const SpinGuard guard(part.lock);
  const std::uint64_t visits = part.status.visits.load();
  const bool rests = part.asked || (part.status.lost.load() && part.last.calls <= visits);
  if (rests && part.ended >= visits && std::exchange(part.counted, false)) state_.pending.remove();
}

void ShareRoot::find_missing() noexcept {
  if (state_.source.taken() < state_.source.count() || state_.source.has_returned_items()) return;
  std::size_t room = ChunkSource::kMostChunks * state_.statuses.size();
  state_.completed.for_each_gap([&](const ItemRange& gap) {
    state_.source.give_back(gap);
    return --room > 0;
  });
}

// ---- Ranks -------------------------------------------------------------------------------------

bool ShareRoot::dismiss() noexcept {
  if (dismissed_.load() || dismissed_.exchange(true)) return false;
  const bool complete = state_.completed.are_all();
  if (complete) state_.outcome.succeed();
  const WaitResult why = complete ? WaitResult{} : state_.outcome.failure();
  for (Rank rank = 1; rank < group_.ranks(); ++rank) {
    {
      const SpinGuard guard(peers_lock_);
      if (peers_[rank].departed) continue;
      peers_[rank].awaited = true;
      state_.pending.add();
    }
    group_.send_or_drop(rank, ShareMessage::complete, {.status = why.status},
                        why.failure ? why.failure->message : "",
                        "could not be notified of the end");
  }
  return true;
}

/// Removes a rank. It counts as lost unless it was dismissed. The caller has a count.
void ShareRoot::remove_peer(Rank rank, bool lost) noexcept {
  lost = lost || !dismissed_.load();
  for (RemotePart& part : parts_) {
    if (part.rank != rank) continue;
    const SpinGuard guard(part.lock);
    part.asked = false;
    if (lost) {
      part.status.lost.store(true);
      note_change(part);
    }
    if (std::exchange(part.counted, false)) state_.pending.remove();
  }
  {
    const SpinGuard guard(peers_lock_);
    peers_[rank].departed = true;
    if (std::exchange(peers_[rank].awaited, false)) state_.pending.remove();
  }
}

/// Called when a place has taken a chunk. If that starts a new round of its rank, sends the rank
/// the reports of other ranks' places that have changed since its last status broadcast.
void ShareRoot::send_status(RemotePart& taker) noexcept {
  Round& round = rounds_[taker.rank];
  const bool begins = taker.round == round.number;
  if (begins) ++round.number;
  taker.round = round.number;
  if (!begins) return;
  const std::uint64_t last = changes_.load();
  const std::int64_t now = state_.registry.now_ns();
  try {
    std::vector<PeerReport> reports;
    const auto add_changed = [&](auto& part) {
      {
        const SpinGuard guard(part.lock);
        if (part.changed <= round.reported_change) return;
      }
      reports.push_back({part.report(now), part.index});
    };
    for (LocalPart& part : own_) add_changed(part);
    for (RemotePart& part : parts_) {
      if (part.rank != taker.rank) add_changed(part);
    }
    group_.send(taker.rank, ShareMessage::status_update, {.range = {state_.source.taken(), 0}},
                std::as_bytes(std::span(reports)));
    round.reported_change = last;
  } catch (...) {
    // The rank continues with the state that it knows.
  }
}

// ---- Messages ----------------------------------------------------------------------------------

void ShareRoot::take(Rank from, ShareMessage::Kind kind, const ShareMessage& message,
                     std::span<const std::byte> rest) noexcept {
  if (kind == ShareMessage::leave) {
    remove_peer(from, false);
  } else if (kind == ShareMessage::failure) {
    state_.outcome.attempt([&] {
      state_.outcome.fail(
          {message.status, fmt::format("rank {}: {}", from, ShareGroup::as_text(rest))});
    });
  } else if (RemotePart& part = remote(message.part);
             kind == ShareMessage::done || kind == ShareMessage::returned) {
    end_chunk(part, kind == ShareMessage::done, message, rest);
  } else {
    update(part, message.report, kind == ShareMessage::request);
    if (kind == ShareMessage::taken && sends_status_) send_status(part);
    if (kind == ShareMessage::request) {
      assign(part, false);
      settle(part);
    }
  }
}

/// A chunk of a place has ended: its items are complete, or were returned because it was lost.
void ShareRoot::end_chunk(RemotePart& part, bool complete, const ShareMessage& message,
                          std::span<const std::byte> rest) noexcept {
  const ItemRange& range = message.range;
  const bool inside = state_.source.contains(range);
  if (complete && (!inside || rest.size() != state_.completed.results_of(range).size())) {
    return group_.port().drop(part.rank, "sent results of items that there are not");
  }
  update(part, message.report, false);
  if (complete) {
    state_.outcome.attempt([&] { state_.completed.add(range, rest, state_.registry.now_ns()); });
  } else {
    state_.outcome.add_loss(message.status, ShareGroup::as_text(rest));
    if (inside) state_.source.give_back(range);
  }
  ++part.ended;
  settle(part);
}

void ShareRoot::take_loss(Rank rank, const std::string& why) noexcept {
  state_.outcome.add_loss(WEIR_STATUS_NETWORK_ERROR, why);
  remove_peer(rank, true);
}

// ==== The other ranks ===========================================================================

ShareMember::ShareMember(ShareState& state, ShareGroup& group, std::deque<LocalPart>& own,
                         bool one_sided, OnFetched on_fetched)
    : state_(state),
      group_(group),
      one_sided_(one_sided),
      on_fetched_(on_fetched),
      first_(group.first(group.rank())) {
  for (PlaceStatus& status : state.statuses) status.stale = true;
  for (LocalPart& part : own) {
    part.status.stale = false;
    fetches_.emplace_back(*this, part);
  }
  state_.pending.add();
}

// ---- Fetching ----------------------------------------------------------------------------------

ShareChunk* ShareMember::fetch_for(LocalPart& part) noexcept {
  CounterFetch& fetch = fetches_[part.index - first_];
  std::uint64_t size = 0;
  {
    const SpinGuard guard(part.lock);
    if (part.fetching || !part.wants_chunk()) return nullptr;
    part.fetching = true;
    ++part.fetches;
    if (one_sided_) size = part.next_size();
  }
  if (size == 0) {
    send(part, ShareMessage::request);
    return nullptr;
  }
  state_.pending.add();
  fetch.count = size;
  fetch.one_side_done.store(false);
  try {
    group_.fetch_add(size, fetch);
    if (!fetch.one_side_done.exchange(true)) return nullptr;
  } catch (...) {
    fetch.outcome = current_exception_outcome(WEIR_STATUS_INTERNAL);
  }
  ShareChunk* const chunk = fetched(fetch);
  state_.pending.remove();
  return chunk;
}

void ShareMember::CounterFetch::completed(std::int64_t found, const Outcome& ended) noexcept {
  old = static_cast<std::uint64_t>(found);
  outcome = failed_outcome(ended.status, ended.message.c_str());
  if (one_side_done.exchange(true)) member.on_fetched_(part, member.fetched(*this));
}

/// Handles a completed fetch.
ShareChunk* ShareMember::fetched(CounterFetch& fetch) noexcept {
  if (!fetch.outcome.ok()) {
    state_.outcome.attempt([&] { state_.outcome.fail(fetch.outcome); });
    return nullptr;
  }
  state_.source.raise_taken(fetch.old + fetch.count);
  if (fetch.old >= state_.source.count()) {
    send(fetch.part, ShareMessage::request);
    return nullptr;
  }
  return accept(fetch.part, {fetch.old, std::min(fetch.count, state_.source.count() - fetch.old)});
}

ShareChunk* ShareMember::accept(LocalPart& part, const ItemRange& range) noexcept {
  if (state_.outcome.has_stopped()) return nullptr;
  ShareChunk* chunk = nullptr;
  {
    const SpinGuard guard(part.lock);
    part.fetching = false;
    if (part.status.lost.load()) {
      part.status.visits.fetch_add(1);
    } else {
      chunk = &part.begin_chunk(range);
    }
  }
  if (chunk != nullptr) {
    send(part, ShareMessage::taken);
  } else {
    send_end(part, range, WEIR_STATUS_DEVICE_ERROR, {});
  }
  return chunk;
}

// ---- Messages to the root ----------------------------------------------------------------------

void ShareMember::send(LocalPart& part, ShareMessage::Kind kind, const ItemRange& range,
                       weir_status status, std::span<const std::byte> rest) noexcept {
  state_.outcome.attempt([&] {
    const PartReport report = part.report(state_.registry.now_ns());
    group_.send(0, kind, {.report = report, .range = range, .part = part.index, .status = status},
                rest);
  });
}

void ShareMember::send_end(LocalPart& part, const ItemRange& range, weir_status status,
                           const FailureRef& failure) noexcept {
  if (status == WEIR_STATUS_OK) {
    send(part, ShareMessage::done, range, status, state_.completed.results_of(range));
  } else if (part.status.lost.load()) {
    send(part, ShareMessage::returned, range, status,
         ShareGroup::as_bytes(failure ? failure->message : std::string_view()));
  }
}

void ShareMember::announce_failure() noexcept {
  if (announced_.load() || announced_.exchange(true)) return;
  const WaitResult why = state_.outcome.failure();
  if (!group_.send_or_drop(0, ShareMessage::failure, {.status = why.status},
                           why.failure ? why.failure->message : "",
                           "could not be notified of a failure")) {  // only if the root is lost
    detach();
  }
}

/// The share is complete, or the root is lost and will not report it. The caller has a count.
void ShareMember::detach() noexcept {
  if (attached_.exchange(false)) state_.pending.remove();
}

// ---- Messages from the root --------------------------------------------------------------------

void ShareMember::take(ShareMessage::Kind kind, const ShareMessage& message,
                       std::span<const std::byte> rest) noexcept {
  if (kind == ShareMessage::status_update) return receive_status(message.range.first, rest);
  announced_.store(true);
  if (message.status == WEIR_STATUS_OK) state_.outcome.succeed();
  if (message.status != WEIR_STATUS_OK) {
    state_.outcome.attempt([&] {  // all ranks return it, even if this rank failed first
      const std::string why(ShareGroup::as_text(rest));
      state_.outcome.fail(message.status, state_.outcome.make_failure(message.status, why), true);
    });
  }
  detach();
}

void ShareMember::receive_status(std::uint64_t taken, std::span<const std::byte> reports) noexcept {
  const std::int64_t now = state_.registry.now_ns();
  for (; reports.size() >= sizeof(PeerReport); reports = reports.subspan(sizeof(PeerReport))) {
    PeerReport peer;
    std::memcpy(&peer, reports.data(), sizeof peer);
    if (peer.part >= state_.statuses.size() || !state_.statuses[peer.part].stale) continue;
    PlaceStatus& status = state_.statuses[peer.part];
    status.visits.store(peer.report.visits);
    if (peer.report.lost != 0) status.lost.store(true);
    peer.report.publish(status, now);
  }
  state_.source.raise_taken(taken);
}

void ShareMember::take_loss(const std::string& why) noexcept {
  state_.outcome.attempt([&] { state_.outcome.fail({WEIR_STATUS_NETWORK_ERROR, why}); });
  announced_.store(true);
  detach();
}

}  // namespace weir::rt
