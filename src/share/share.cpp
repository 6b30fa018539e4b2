#include "share/share.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/thread_role.hpp"
#include "share/ideal_time.hpp"
#include "share/share_ranks.hpp"
#include "stream/registry.hpp"

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

}  // namespace

// ---- Making and ending -------------------------------------------------------------------------

std::string Share::describe(const weir_share_options& options) {
  return fmt::format("share of {} items in chunks '{}' by '{}' with results of {} bytes",
                     options.items, options.chunks != nullptr ? options.chunks : "learned",
                     options.scheduler != nullptr ? options.scheduler : "onesided",
                     options.result_offsets != nullptr ? options.result_offsets[options.items] : 0);
}

Share::Share(Registry& registry, const weir_share_options& options, std::string name,
             Enqueue enqueue, ShareGroup::CollectiveJoin& join)
    : state_{.registry = registry,
             .name = std::move(name),
             .source{options.items, options.work},
             .completed{options.items, options.results, options.result_offsets}},
      chunks_(options.chunks != nullptr ? options.chunks : "learned"),
      enqueue_(std::move(enqueue)),
      one_sided_(is_one_sided(options)),
      places_(registry, fmt::format("share '{}'", state_.name), options.places,
              options.place_count) {
  if (options.fabric != nullptr && registry.virtual_time()) {
    fail(WEIR_STATUS_UNSUPPORTED,
         "a share over ranks needs real time: each has a clock of its own");
  }
  try {
    begin(options, join);
  } catch (...) {
    if (group_ != nullptr) group_->abandon(current_exception_outcome(WEIR_STATUS_INTERNAL));
    throw;
  }
}

void Share::begin(const weir_share_options& options, ShareGroup::CollectiveJoin& join) {
  const std::vector<weir_place*>& places = places_.all();
  std::vector<std::string> names;
  for (const weir_place* const place : places) names.push_back(place->name());
  if (join.has_others()) group_ = std::make_unique<ShareGroup>(join, names);
  const bool is_root = group_ != nullptr && group_->rank() == 0;
  if (group_ != nullptr) first_ = group_->first(group_->rank());
  state_.statuses = std::vector<PlaceStatus>(group_ ? group_->places().size() : places.size());
  state_.source.begin(chunks_, state_.statuses, is_root ? group_->word() : nullptr);
  constexpr std::size_t kWorthwhile = 8;  // chunks of each way on each core
  std::size_t cores = 0;
  for (const weir_place* const place : places) cores += place->width();
  if (group_ != nullptr) cores *= group_->ranks();
  const bool tries_ways = options.ways > 1 && state_.source.policy().uses_measured_speeds() &&
                          state_.source.count() >= kWorthwhile * options.ways * cores;
  for (weir_place* const place : places) {
    const auto index = static_cast<std::uint32_t>(first_ + own_.size());
    LocalPart& part = own_.emplace_back(*this, state_, index, *place, on_chunk_end);
    const SpinGuard guard(part.lock);
    if (tries_ways) part.trial.begin(options.ways, place->width());
  }
  started_ns_ = state_.registry.now_ns();
  if (is_root) {
    root_ = std::make_unique<ShareRoot>(state_, *group_, own_, one_sided_);
  } else if (group_ != nullptr) {
    member_ = std::make_unique<ShareMember>(state_, *group_, own_, one_sided_, on_fetched);
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
  for (LocalPart& part : own_) advance(part, false);
  release();
}

void Share::finish() noexcept {
  try {
    wait_until_over(sys::kNever);
  } catch (...) {
    while (complete_signal_.count() == 0) registry().pass_time();
  }
  if (group_ != nullptr) group_->leave();
}

Share::~Share() {
  for (const LocalPart& part : own_) {
    try {
      registry().await_end({part.stream}, WEIR_FOREVER);
    } catch (...) {  // the destructor waits
    }
  }
  report_unreported();
}

void Share::report_unreported() noexcept {
  Unreported& unreported = state_.outcome.collect_unreported();
  for (const LocalPart& part : own_) unreported.take(part.stream->unreported());
  unreported.report("share", name());
}

// ---- Handing out -------------------------------------------------------------------------------

void Share::advance(std::size_t part, bool forced) noexcept {
  if (part - first_ < own_.size()) return advance(own_[part - first_], forced);
  assert(root_ != nullptr);
  root_->assign(part, forced);
}

/// Gives a place as many chunks as it should have, at least one item if `forced`.
void Share::advance(LocalPart& part, bool forced) noexcept {
  while (ShareChunk* const chunk = fetch_chunk(part, std::exchange(forced, false))) {
    hand_out(*chunk);
  }
}

ShareChunk* Share::fetch_chunk(LocalPart& part, bool forced) noexcept {
  if (member_ != nullptr) return member_->fetch_for(part);
  const SpinGuard guard(part.lock);
  if (!part.wants_chunk()) return nullptr;
  const std::uint64_t size = std::max<std::uint64_t>(part.next_size(), forced ? 1 : 0);
  ItemRange range{0, 0};
  if (size == 0 || !state_.source.take(size, range)) {
    part.status.idle.store(true);
    return nullptr;
  }
  return &part.begin_chunk(range);
}

void Share::on_fetched(LocalPart& part, ShareChunk* chunk) noexcept {
  Share& share = part.share;
  if (chunk != nullptr) share.hand_out(*chunk);
  share.advance(part, false);
  share.release();
}

void Share::hand_out(ShareChunk& chunk) noexcept {
  const weir_chunk given = {chunk.range.first, chunk.range.count, chunk.part->stream,
                            chunk.part->index - first_, chunk.way};
  weir_status status = WEIR_STATUS_OK;
  FailureRef failure;
  try {
    const NoWaitScope no_wait;
    const weir_event event = enqueue_(given);
    registry().check_event(event);
    const std::uint64_t id = event.opaque[1];
    chunk.cut = id != 0 && cancelled_.load();
    if (id != 0 && registry().slot_of(event).watch(id, chunk)) return;
    FailureLog::Entry entry = id != 0 ? registry().failures().find(id) : FailureLog::Entry{};
    status = entry.status;
    failure = std::move(entry.failure);
  } catch (...) {
    Outcome outcome = current_exception_outcome(WEIR_STATUS_INTERNAL);
    status = outcome.status;
    failure = state_.outcome.make_failure(status, std::move(outcome.message));
  }
  account(chunk, status, failure);
  state_.pending.remove();  // complete already; the caller has a count, too
}

// ---- Ends --------------------------------------------------------------------------------------

void Share::on_chunk_end(Waiter& waiter, weir_status status, const FailureRef& failure) {
  LocalPart& part = *static_cast<ShareChunk&>(waiter).part;
  Share& share = part.share;
  share.account(static_cast<ShareChunk&>(waiter), status, failure);
  share.advance(part, false);
  share.wake_idle();
  share.release();
}

void Share::account(ShareChunk& chunk, weir_status status, const FailureRef& failure) noexcept {
  LocalPart& part = *chunk.part;
  const ItemRange range = chunk.range;
  if (failure) status = failure->status;  // the root failure, if the last action was poisoned
  {
    const SpinGuard guard(part.lock);
    const std::int64_t now = registry().now_ns();
    if (status == WEIR_STATUS_OK && chunk.cut) status = WEIR_STATUS_CANCELLED;
    if (status == WEIR_STATUS_OK) {
      if (member_ == nullptr) {
        state_.outcome.attempt([&] { state_.completed.add(range, {}, now); });
      }
    } else if (is_of_device(status)) {
      part.status.lost.store(true);
      if (member_ == nullptr) state_.source.give_back(range);
      state_.outcome.add_loss(failure);
    } else {
      state_.outcome.fail(status, failure);
    }
    part.end_chunk(chunk, status == WEIR_STATUS_OK, now);
  }
  if (member_ != nullptr) member_->send_end(part, range, status, failure);
}

void Share::wake_idle() noexcept {
  for (std::size_t part = 0; part < state_.statuses.size(); ++part) {
    sys::Atomic<bool>& idle = state_.statuses[part].idle;
    if (idle.load() && idle.exchange(false)) advance(part, false);
  }
}

void Share::release() noexcept {
  if (state_.outcome.has_failed()) {
    if (root_ != nullptr) root_->dismiss();
    if (member_ != nullptr) member_->announce_failure();
  }
  while (state_.pending.release()) {
    if (any_place_takes_more()) continue;
    state_.completed.end(registry().now_ns());
    if (root_ != nullptr && root_->dismiss()) continue;
    if (member_ != nullptr) {
      group_->send_or_drop(0, ShareMessage::leave, {}, "", "could not be notified of the end");
    }
    if (group_ == nullptr && state_.completed.are_all()) state_.outcome.succeed();
    complete_signal_.deliver();
    return;
  }
}

/// Called when nothing is in flight. Gives remaining items to a place; returns false if there are
/// none or no place is left.
bool Share::any_place_takes_more() noexcept {
  if (state_.outcome.has_stopped() || state_.completed.are_all()) return false;
  assert(member_ == nullptr);  // it has a count until it has stopped
  if (root_ != nullptr) root_->find_missing();
  wake_idle();
  if (state_.pending.has_others()) return true;
  const PlaceStatus* best = nullptr;
  for (const PlaceStatus& status : state_.statuses) {
    if (status.lost.load()) continue;
    if (best == nullptr || status.speed.load() > best->speed.load()) best = &status;
  }
  if (best == nullptr) {
    const FailureRef loss = state_.outcome.last_loss();
    state_.outcome.fail(loss ? loss->status : WEIR_STATUS_NETWORK_ERROR, loss);
    return false;
  }
  advance(static_cast<std::size_t>(best - state_.statuses.data()), true);
  return true;
}

// ---- Other ranks -------------------------------------------------------------------------------

void Share::on_message(Rank from, ShareMessage::Kind kind, const ShareMessage& message,
                       std::span<const std::byte> rest) noexcept {
  state_.pending.enter();
  if (kind == ShareMessage::assignment) {
    const bool sound = state_.source.contains(message.range) && message.range.count > 0;
    LocalPart& part = own_[message.part - first_];
    return on_fetched(part, sound ? member_->accept(part, message.range) : nullptr);
  }
  root_ != nullptr ? root_->take(from, kind, message, rest) : member_->take(kind, message, rest);
  const bool ends = kind == ShareMessage::failure || kind == ShareMessage::complete;
  if (ends && message.status == WEIR_STATUS_CANCELLED) {
    state_.outcome.attempt([this] { cancel_chunks(); });
  }
  const bool frees = kind == ShareMessage::done || kind == ShareMessage::returned;
  if (frees || kind == ShareMessage::leave) wake_idle();
  release();
}

void Share::on_rank_lost(Rank rank, const std::string& why) noexcept {
  if (root_ == nullptr && rank != 0) return;
  state_.pending.enter();
  if (root_ != nullptr) {
    root_->take_loss(rank, why);
    wake_idle();
  } else {
    member_->take_loss(why);
  }
  release();
}

// ---- The program -------------------------------------------------------------------------------

/// Waits for the end of the share, and makes progress on the fabric if the caller has to.
bool Share::wait_until_over(std::int64_t deadline_ns) {
  if (group_ == nullptr || group_->port().progress_by() != ProgressBy::caller) {
    return wait_for_signal(registry(), complete_signal_, 1, deadline_ns);
  }
  constexpr std::int64_t kSlice =
      1'000'000;  // completions of chunks do not wake threads that wait for the fabric
  const auto complete = [this] { return complete_signal_.count() > 0; };
  for (;;) {
    const std::int64_t remaining =
        deadline_ns == sys::kNever ? kSlice : deadline_ns - sys::now_ns();
    if (group_->port().wait_until(complete, std::clamp<std::int64_t>(remaining, 0, kSlice),
                                  "a share")) {
      return true;
    }
    if (remaining <= 0) return false;
  }
}

WaitResult Share::wait(std::int64_t timeout_ns) {
  if (NoWaitScope::active()) {
    fail(WEIR_STATUS_BUSY, "a kernel or callback must not wait for share '{}'", name());
  }
  const std::int64_t deadline = sys::deadline_after(timeout_ns);
  if (!wait_until_over(deadline)) return {WEIR_STATUS_TIMEOUT, {}, 0};
  for (const LocalPart& part : own_) {
    WaitResult drained = registry().synchronize(*part.stream, time_until(deadline));
    if (drained.status == WEIR_STATUS_TIMEOUT) return drained;
    if (drained.status == WEIR_STATUS_OK || part.status.lost.load()) continue;
    state_.outcome.keep(std::move(drained));
  }
  return state_.outcome.take_result();
}

void Share::cancel() {
  if (complete_signal_.count() > 0) return;
  state_.pending.enter();
  state_.outcome.fail({WEIR_STATUS_CANCELLED, "the share was cancelled"});
  try {
    cancel_chunks();
  } catch (...) {  // without memory a stream may fail to cancel
    release();
    throw;
  }
  release();
}

void Share::cancel_chunks() {
  cancelled_.store(true);
  for (const LocalPart& part : own_) part.stream->cancel();
}

void Share::finish_or_cancel(std::int64_t timeout_ns) noexcept {
  try {
    if (!wait_until_over(sys::deadline_after(timeout_ns))) cancel();
  } catch (...) {  // no memory to wait or to cancel
    state_.pending.enter();
    state_.outcome.fail({WEIR_STATUS_OUT_OF_MEMORY, "out of memory"});
    release();  // notifies other ranks
  }
}

void Share::get_info(weir_share_info& info, weir_share_part* parts, std::size_t count) {
  const std::int64_t ended = state_.completed.ended_ns();
  const std::int64_t now = ended >= 0 ? ended : registry().now_ns();
  info.name = name().c_str();
  info.chunks = chunks_.c_str();
  info.items = state_.source.count();
  info.done = state_.completed.count();
  info.makespan_ns = now - started_ns_;
  std::vector<PlaceWork> places;
  places.reserve(state_.statuses.size());
  const auto add = [&](auto& part, const char* place, Rank rank) {
    const PartReport report = part.report(now);
    if (parts != nullptr && places.size() < count) {
      parts[places.size()] = {
          .place = place,
          .items = report.done,
          .visits = report.visits,
          .work = report.work_done,
          .busy_ns = report.busy_ns,
          .idle_ns = std::max<std::int64_t>(0, info.makespan_ns - report.busy_ns),
          .way = report.way,
          .lost = report.lost != 0,
          .rank = rank};
    }
    places.push_back({report.work_done, static_cast<double>(report.busy_ns), report.lost != 0});
  };
  for (LocalPart& part : own_) {
    add(part, part.place.name().c_str(), group_ != nullptr ? group_->rank() : 0);
  }
  if (root_ != nullptr) {
    for (RemotePart& part : root_->parts()) {
      add(part, group_->places()[part.index].name.c_str(), part.rank);
    }
  }
  info.place_count = places.size();
  info.ideal_ns = ideal_ns(places);
}

}  // namespace weir::rt
