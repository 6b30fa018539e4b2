#include "backends/rank/rank_client.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace weir::rt {

namespace {

constexpr std::int64_t kPatienceNs = 60'000'000'000;  ///< minimum timeout for an answer
constexpr int kClockSamples = 8;

}  // namespace

struct RankClient::PendingRequest {
  Rank rank = 0;
  bool complete = false;
  Outcome outcome;
  std::vector<std::byte> answer;
};

std::shared_ptr<RankClient> RankClient::of(Port& port) {
  struct Shared {
    std::unique_ptr<RankClient> client;
    std::size_t users = 0;
  };
  static sys::Mutex mutex;
  // Never destroyed: runtimes may outlive static objects that were constructed later.
  static std::map<Port*, Shared>& clients = *new std::map<Port*, Shared>;
  // The last client is destroyed under the lock, before a new one exists: both would set themselves
  // as listener of the port.
  const auto drop = [&port](RankClient*) noexcept {
    const sys::Lock lock(mutex);
    const auto found = clients.find(&port);
    if (--found->second.users == 0) clients.erase(found);
  };
  sys::Lock lock(mutex);
  Shared& shared = clients[&port];
  try {
    if (shared.client == nullptr) shared.client = std::make_unique<RankClient>(port);
  } catch (...) {
    clients.erase(&port);
    throw;
  }
  ++shared.users;
  RankClient* const client = shared.client.get();
  lock.unlock();  // the constructor of shared_ptr calls drop() if it cannot allocate
  return std::shared_ptr<RankClient>(client, drop);
}

RankClient::RankClient(Port& port) : port_(port), lost_(port.ranks()) {
  port_.listen(Channel::rank, this);
  port_.set_progress_hook(this);
}

RankClient::~RankClient() {
  port_.set_progress_hook(nullptr);
  port_.listen(Channel::rank, nullptr);
}

/// Throws Error if a rank is lost. The caller holds the mutex.
void RankClient::check_alive(Rank rank) const {
  if (!lost_[rank].ok()) throw Error(lost_[rank].status, lost_[rank].message);
}

// ---- Requests ----------------------------------------------------------------------------------

void RankClient::post(Rank rank, const WireWriter& message) {
  port_.post(rank, Channel::rank, message.bytes());
}

void RankClient::ask(Rank rank, RankMessageKind word, const std::function<void(WireWriter&)>& fill,
                     const std::function<void(WireReader&)>& read) {
  PendingRequest question{.rank = rank, .complete = false, .outcome = {}, .answer = {}};
  std::uint64_t number = 0;
  {
    const sys::Lock lock(mutex_);
    check_alive(rank);
    number = ++asked_;
    requests_[number] = &question;
  }
  try {
    WireWriter message(word, number);
    fill(message);
    post(rank, message);
    const auto complete = [&] {
      const sys::Lock lock(mutex_);
      return question.complete;
    };
    const std::string what = fmt::format("rank {} to answer", rank);
    const std::int64_t patience = std::max(kPatienceNs, port_.info().lost_after_ns);
    if (!port_.wait_until(complete, patience, what.c_str())) throw_timeout(rank, patience);
  } catch (...) {
    forget(number);
    throw;
  }
  forget(number);
  if (!question.outcome.ok()) throw Error(question.outcome.status, question.outcome.message);
  WireReader reader(question.answer);
  read(reader);
}

/// Throws the reason why a live rank does not answer.
void RankClient::throw_timeout(Rank rank, std::int64_t waited_ns) const {
  constexpr std::int64_t kSecond = 1'000'000'000;
  {
    const sys::Lock lock(mutex_);
    if (!clocks_.contains(rank)) {
      fail(WEIR_STATUS_TIMEOUT,
           "rank {} does not serve: it is to call weir_rank_serve(), as rank 0 does", rank);
    }
  }
  fail(WEIR_STATUS_TIMEOUT,
       "rank {} serves, but has not answered within {} s: WEIR_LOST_AFTER_MS sets more", rank,
       waited_ns / kSecond);
}

void RankClient::forget(std::uint64_t question) noexcept {
  const sys::Lock lock(mutex_);
  requests_.erase(question);
}

void RankClient::connect(Rank rank) {
  const sys::Lock greeting(connect_mutex_);
  {
    const sys::Lock lock(mutex_);
    if (clocks_.contains(rank)) return;
  }
  const std::int64_t ahead = measure_clock(rank);
  const sys::Lock lock(mutex_);
  clocks_[rank] = ahead;
}

/// Returns how far the clock of a rank is ahead, from the request with the shortest round trip.
std::int64_t RankClient::measure_clock(Rank rank) {
  std::int64_t ahead = 0, quickest = INT64_MAX;
  for (int sample = 0; sample < kClockSamples; ++sample) {
    const std::int64_t before = sys::now_ns();
    std::int64_t there = 0;
    ask(
        rank, RankMessageKind::hello, [](WireWriter&) {},
        [&](WireReader& answer) { answer.get(there); });
    const std::int64_t taken = sys::now_ns() - before;
    if (taken >= quickest) continue;
    quickest = taken;
    ahead = there - (before + taken / 2);
  }
  return ahead;
}

std::int64_t RankClient::clock_ahead_ns(Rank rank) const {
  const sys::Lock lock(mutex_);
  return clocks_.at(rank);
}

// ---- Places ------------------------------------------------------------------------------------

void RankClient::add_place(std::uint32_t number, Rank rank, RankPlaceSink& place) {
  const sys::Lock lock(mutex_);
  check_alive(rank);
  places_[number] = {rank, &place};
}

void RankClient::remove_place(std::uint32_t number) noexcept {
  RankPlaceSink* place = nullptr;
  {
    const sys::Lock lock(mutex_);
    const auto found = places_.find(number);
    if (found == places_.end()) return;
    place = found->second.sink;
    places_.erase(found);
  }
  place->wait_for_pins();
}

/// Pins and returns the place with the next higher number, and sets `number` to it; null if there
/// is none.
RankPlaceSink* RankClient::pin_behind(std::uint32_t& number) noexcept {
  const sys::Lock lock(mutex_);
  const auto next = places_.upper_bound(number);
  if (next == places_.end()) return nullptr;
  number = next->first;
  next->second.sink->pin();
  return next->second.sink;
}

/// Returns completed jobs on this thread, which spares the threads of the places a wake-up.
void RankClient::on_progress() noexcept {
  if (!std::exchange(done_, false)) return;
  std::uint32_t number = 0;
  while (RankPlaceSink* const place = pin_behind(number)) {
    place->on_progress();
    place->unpin();
  }
}

// ---- Copies ------------------------------------------------------------------------------------

void RankClient::copy(std::unique_ptr<Copy> copy) noexcept {
  std::uint64_t number = 0;
  try {
    {
      const sys::Lock lock(mutex_);
      number = ++copies_made_;
    }
    const bool lends = copy->lent != nullptr;  // first a window from the owner of the far end
    const Rank to = lends ? copy->owner : copy->rank;
    const WireWriter message =
        lends ? WireWriter(RankMessageKind::lend, copy->lent->device, number, *copy->lent)
              : WireWriter(RankMessageKind::copy, copy->device, number, copy->source, copy->target);
    {
      const sys::Lock lock(mutex_);
      check_alive(to);
      copies_[number] = std::move(copy);
    }
    post(to, message);
  } catch (...) {
    Outcome outcome = current_exception_outcome(WEIR_STATUS_INTERNAL);
    if (copy == nullptr) copy = take_copy(number);
    if (copy != nullptr) end(std::move(copy), std::move(outcome), 0, 0);
  }
}

/// Reports the outcome of a copy to its sink, and withdraws windows that were lent for it.
void RankClient::end(std::unique_ptr<Copy> copy, Outcome outcome, std::int64_t started_ns,
                     std::int64_t ended_ns) noexcept {
  for (const RankCopyEnd* end : {&copy->source, &copy->target}) {
    if (!end->remote || end == copy->lent) continue;
    if (end->rank == port_.rank()) {
      port_.withdraw(end->window);
      continue;
    }
    withdraw(end->rank, end->window);
  }
  const std::int64_t now = sys::now_ns();
  copy->sink->copied(copy->token, std::move(outcome), started_ns == 0 ? now : started_ns,
                     ended_ns == 0 ? now : ended_ns);
}

void RankClient::withdraw(Rank owner, WindowId window) noexcept {
  try {
    post(owner, WireWriter(RankMessageKind::take_back, window));
  } catch (...) {  // a lost rank has no windows
  }
}

/// Removes and returns a copy; null if it has ended already because a rank was lost.
std::unique_ptr<RankClient::Copy> RankClient::take_copy(std::uint64_t number) noexcept {
  const sys::Lock lock(mutex_);
  const auto found = copies_.find(number);
  if (found == copies_.end()) return nullptr;
  auto taken = std::move(found->second);
  copies_.erase(found);
  return taken;
}

/// Throws Error if the copy exists and was requested from another rank.
void RankClient::check_copy(std::uint64_t number, Rank from) const {
  const sys::Lock lock(mutex_);
  const auto found = copies_.find(number);
  if (found == copies_.end()) return;
  const Copy& copy = *found->second;
  const Rank asked = copy.lent != nullptr ? copy.owner : copy.rank;
  if (from != asked) WireReader::refuse("it speaks of a copy of another rank");
}

void RankClient::take_lent(Rank from, WireReader& message) {
  const auto number = message.get<std::uint64_t>();
  check_copy(number, from);
  Outcome outcome = message.outcome();
  const auto window = message.get<WindowId>();
  std::unique_ptr<Copy> copy = take_copy(number);
  if (copy == nullptr) {  // the rank that was to make the copy is lost
    if (outcome.ok()) withdraw(from, window);
    return;
  }
  if (copy->lent == nullptr) {
    outcome =
        failed_outcome(WEIR_STATUS_NETWORK_ERROR, "a rank lends memory that no copy has requested");
  }
  if (!outcome.ok()) return end(std::move(copy), std::move(outcome), 0, 0);
  RankCopyEnd& lent = *std::exchange(copy->lent, nullptr);
  lent.remote = true;
  lent.rank = from;
  lent.window = window;
  lent.region.offset = 0;
  this->copy(std::move(copy));
}

void RankClient::take_copied(Rank from, WireReader& message) {
  const auto number = message.get<std::uint64_t>();
  check_copy(number, from);
  Outcome outcome = message.outcome();
  const auto started = message.get<std::int64_t>(), ended = message.get<std::int64_t>();
  const std::int64_t ahead = clock_ahead_ns(from);
  std::unique_ptr<Copy> copy = take_copy(number);
  if (copy == nullptr) return;
  end(std::move(copy), std::move(outcome), started - ahead, ended - ahead);
}

// ---- Incoming messages --------------------------------------------------------------------------

void RankClient::on_message(Rank from, std::span<const std::byte> message) noexcept {
  try {
    WireReader reader(message);
    read(from, reader);
  } catch (...) {
    const Outcome outcome = current_exception_outcome(WEIR_STATUS_INTERNAL);
    port_.drop(from, "sends what is of no use: ", outcome.message.c_str());
  }
}

void RankClient::read(Rank from, WireReader& message) {
  switch (message.get<RankMessageKind>()) {
    case RankMessageKind::answer: return take_answer(from, message);
    case RankMessageKind::lent: return take_lent(from, message);
    case RankMessageKind::copied: return take_copied(from, message);
    case RankMessageKind::broken:
      return port_.drop(from, "serves no more: ", message.text().c_str());
    case RankMessageKind::done: {
      if (port_.on_own_thread()) done_ = true;
      const auto place = message.get<std::uint32_t>();
      const sys::Lock lock(mutex_);
      const auto found = places_.find(place);
      if (found != places_.end() && found->second.rank == from) found->second.sink->done(message);
      return;
    }
    default: WireReader::refuse("it says nothing that a serving rank says");
  }
}

void RankClient::take_answer(Rank from, WireReader& message) {
  const auto number = message.get<std::uint64_t>();
  Outcome outcome = message.outcome();
  const auto answer = message.rest();
  const sys::Lock lock(mutex_);
  const auto found = requests_.find(number);
  if (found == requests_.end() || found->second->rank != from) return;
  PendingRequest& question = *found->second;
  question.answer.assign(answer.begin(), answer.end());
  question.outcome = std::move(outcome);
  question.complete = true;
}

void RankClient::on_rank_lost(Rank rank, const std::string& why) noexcept {
  Copies failed;
  const auto outcome = [&] { return failed_outcome(WEIR_STATUS_NETWORK_ERROR, why.c_str()); };
  {
    const sys::Lock lock(mutex_);
    if (!lost_[rank].ok()) return;
    lost_[rank] = outcome();
    for (const auto& [number, question] : requests_) {
      if (question->rank != rank || question->complete) continue;
      question->outcome = outcome();
      question->complete = true;
    }
    for (const auto& [number, place] : places_) {
      if (place.rank == rank) place.sink->on_rank_lost(lost_[rank]);
    }
    for (auto at = copies_.begin(); at != copies_.end();) {
      const Copy& copy = *at->second;
      const bool concerned = copy.rank == rank || (copy.lent != nullptr && copy.owner == rank);
      const auto here = at++;
      if (concerned) failed.insert(copies_.extract(here));
    }
  }
  for (auto& [number, copy] : failed) end(std::move(copy), outcome(), 0, 0);
}

}  // namespace weir::rt
