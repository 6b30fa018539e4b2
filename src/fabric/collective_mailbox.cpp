#include "fabric/collective_mailbox.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "base/text.hpp"
#include "fabric/wire.hpp"

namespace weir::rt {

namespace {

enum CollectiveMessage : GroupHub::Kind {
  kData,
  kDataAndAsk,  ///< requests an ack
  kFailure,
  kAck = GroupHub::kNotKept,
  kProbe,
  kVote,
};

/// In the `step` of data: the operation, and the round of it.
constexpr unsigned kRoundBits = 24;
constexpr std::uint64_t kRoundMask = (std::uint64_t{1} << kRoundBits) - 1;

constexpr std::int64_t kProbePeriodNs = 100'000'000;
/// Bytes that a rank has sent to another one and that are not consumed: more wait.
constexpr std::uint64_t kMostAhead = 16u << 20;
/// Memory of an early message that is kept for the next one.
constexpr std::size_t kMostKept = 64u << 10;
/// Bytes after which a rank requests an ack.
constexpr std::uint64_t kAskEvery = 4u << 20;

}  // namespace

void CollectiveHub::on_stray(Rank from, const Head& head, std::span<const std::byte>) noexcept {
  if (head.kind != kProbe || !has_left(head.number)) return;
  try {
    const std::string text =
        fmt::format("rank {} has destroyed the communicator, or could not make it", port().rank());
    post(from, head.number, kFailure, head.step, encode({WEIR_STATUS_NETWORK_ERROR, text}));
  } catch (...) {  // the next probe is answered
  }
}

CollectiveMailbox::CollectiveMailbox(CollectiveHub& hub, std::uint32_t number,
                                     std::vector<Rank> ranks)
    : hub_(hub),
      number_(number),
      ranks_(std::move(ranks)),
      history_(kHistory),
      traffic_(ranks_.size()) {
  const auto own = number_of(port().rank());
  assert(own);
  rank_ = *own;
  hub_.enter_as(*this, number_);
}

CollectiveMailbox::~CollectiveMailbox() { hub_.leave(number_); }

std::optional<unsigned> CollectiveMailbox::number_of(Rank rank) const noexcept {
  const auto found = std::find(ranks_.begin(), ranks_.end(), rank);
  if (found == ranks_.end()) return std::nullopt;
  return static_cast<unsigned>(found - ranks_.begin());
}

// ---- Operations ---------------------------------------------------------------------------------

void CollectiveMailbox::begin(const CollectiveCall& call, std::int64_t timeout_ns) {
  if (port().inside_listener()) {
    fail(WEIR_STATUS_BUSY, "a handler of messages must not wait for a {}", text_of(call));
  }
  if (is_in_use_.exchange(true)) {
    fail(WEIR_STATUS_BUSY,
         "another thread of this rank is in a collective operation of the communicator");
  }
  try {
    throw_if_failed();
    text_ = text_of(call);
    call_ = call;
    deadline_ns_ = sys::deadline_after(timeout_ns);
    check_early();
  } catch (...) {
    const Outcome why = current_exception_outcome(WEIR_STATUS_INTERNAL);
    give_up(operation_, why);
    is_in_use_.store(false);
    fail(why.status, "{} failed: {}", text_of(call), why.message);
  }
}

/// Throws Error if a message for this operation has arrived that belongs to another call.
void CollectiveMailbox::check_early() {
  std::string wrong;
  {
    const sys::Lock lock(mutex_);
    history_[operation_ % kHistory] = {operation_, call_};
    for (const Message& early : messages_) {
      if (early.operation != operation_ || early.call == call_) continue;
      wrong = difference(early.from, operation_, early.call);
    }
  }
  if (!wrong.empty()) fail(WEIR_STATUS_INVALID_ARGUMENT, "{}", wrong);
}

void CollectiveMailbox::end() noexcept {
  {
    const sys::Lock lock(mutex_);
    for (auto each = messages_.begin(); each != messages_.end();) {
      const auto next = std::next(each);
      if (each->operation <= operation_) {
        if (each->early.capacity() > kMostKept) std::vector<std::byte>().swap(each->early);
        free_.splice(free_.begin(), messages_, each);
      }
      each = next;
    }
    ++operation_;
  }
  is_in_use_.store(false);
}

void CollectiveMailbox::give_up(std::uint64_t operation, const Outcome& why) noexcept {
  // Only what a rank has called is of interest to the others.
  const bool is_wrong = why.status == WEIR_STATUS_INVALID_ARGUMENT;
  const weir_status status = is_wrong ? why.status : WEIR_STATUS_NETWORK_ERROR;
  if (!mark_failed(operation, {status, why.message})) return;
  for (unsigned rank = 0; rank < size(); ++rank) {
    if (rank == rank_) continue;
    try {
      const std::string text = fmt::format("rank {} has given up: {}", ranks_[rank_], why.message);
      post_failure(rank, operation, {status, is_wrong ? why.message : text});
    } catch (...) {  // the rank learns of it by its next probe, or when this rank leaves
    }
  }
}

/// Returns whether this is the first failure.
bool CollectiveMailbox::mark_failed(std::uint64_t operation, const Outcome& why) noexcept {
  const sys::Lock lock(mutex_);
  const bool is_first = failure_.ok();
  if (operation >= failed_at_.load()) return is_first;
  failure_ = failed_outcome(why.status, why.message.c_str());
  failed_at_.store(operation);
  return is_first;
}

void CollectiveMailbox::post_failure(unsigned to, std::uint64_t operation, const Outcome& why) {
  post(to, kFailure, operation, encode(why));
}

void CollectiveMailbox::throw_if_failed() {
  if (operation_ < failed_at_.load()) return;
  const sys::Lock lock(mutex_);
  const bool is_earlier = failed_at_.load() < operation_;
  fail(failure_.status, "{}{}",
       is_earlier ? "an earlier operation of the communicator failed: " : "", failure_.message);
}

// ---- Sending and receiving ----------------------------------------------------------------------

void CollectiveMailbox::send(unsigned to, std::uint32_t round, std::span<const std::byte> data) {
  assert(to != rank_ && round <= kRoundMask);
  Traffic& traffic = traffic_[to];
  const std::uint64_t after = traffic.sent + data.size();
  if (after > kMostAhead) wait(to, nullptr, std::min(after - kMostAhead, traffic.asked));
  const bool asks = after - traffic.asked >= kAskEvery;
  try {
    hub_.send(ranks_[to], number_, asks ? kDataAndAsk : kData, operation_ << kRoundBits | round,
              bytes_of(call_), data);
  } catch (...) {
    if (port().alive(ranks_[to])) throw;
    fail_lost(to);
  }
  traffic.sent = after;
  if (asks) traffic.asked = after;
}

CollectiveMailbox::Message& CollectiveMailbox::expect(unsigned from, std::uint32_t round,
                                                      std::span<std::byte> into) {
  std::uint64_t ack = 0;
  Message* message = nullptr;
  {
    const sys::Lock lock(mutex_);
    message = find(operation_, round, from);
    if (message == nullptr) message = &add(operation_, round, from);
    message->into = into;
    if (message->has_arrived.load()) ack = consume(*message, message->early);
  }
  if (ack > 0) acknowledge(from, ack);
  return *message;
}

void CollectiveMailbox::await(Message& message) {
  wait(message.from, &message.has_arrived, 0);
  if (message.bytes != message.into.size()) {
    fail(WEIR_STATUS_INVALID_ARGUMENT, "rank {} has sent {} bytes to rank {}, which expects {}",
         ranks_[message.from], message.bytes, ranks_[rank_], message.into.size());
  }
}

/// Waits until a message of a rank has arrived, or, if `arrived` is null, until the rank has
/// consumed that many bytes of this rank. Probes the rank meanwhile.
void CollectiveMailbox::wait(unsigned other, const sys::Atomic<bool>* arrived,
                             std::uint64_t acknowledged) {
  const auto is_there = [&] {
    return arrived != nullptr ? arrived->load()
                              : traffic_[other].acknowledged.load() >= acknowledged;
  };
  // A rank that is lost has no more messages on the way. One that has done its part may leave.
  const auto is_lost = [&] { return !port().alive(ranks_[other]); };
  const auto done = [&] {
    const bool ends = failed_at_.load() <= operation_ || is_lost();
    return is_there() || ends;
  };
  const bool probes = !port().info().sees_stalls;  // a transport that does says more
  while (!done()) {
    const std::int64_t remaining_ns = time_left(deadline_ns_);
    const bool last = remaining_ns >= 0 && (!probes || remaining_ns <= kProbePeriodNs);
    if (port().wait_until(done, last || !probes ? remaining_ns : kProbePeriodNs, text_.c_str()))
      break;
    if (last) fail(WEIR_STATUS_TIMEOUT, "not all ranks have called it in time");
    post(other, kProbe, operation_, bytes_of(call_));
  }
  const bool lost = is_lost();
  if (is_there()) return;
  if (lost) fail_lost(other);
  throw_if_failed();
}

/// Throws Error for a rank that is lost. One that has told why it gave up has done so before.
void CollectiveMailbox::fail_lost(unsigned other) {
  throw_if_failed();
  fail(WEIR_STATUS_NETWORK_ERROR, "{}", port().why_lost(ranks_[other]));
}

CollectiveMailbox::Message* CollectiveMailbox::find(std::uint64_t operation, std::uint32_t round,
                                                    unsigned from) {
  for (Message& each : messages_) {
    if (each.operation == operation && each.round == round && each.from == from) return &each;
  }
  return nullptr;
}

CollectiveMailbox::Message& CollectiveMailbox::add(std::uint64_t operation, std::uint32_t round,
                                                   unsigned from) {
  if (free_.empty()) free_.emplace_back();
  Message& message = free_.front();
  message.operation = operation;
  message.round = round;
  message.from = from;
  message.bytes = 0;
  message.has_arrived.store(false);
  messages_.splice(messages_.end(), free_, free_.begin());
  return message;
}

/// Copies a message to where it goes, unless its size is wrong. Returns the consumed bytes of its
/// sender if they are to be acknowledged, otherwise 0.
std::uint64_t CollectiveMailbox::consume(const Message& message, std::span<const std::byte> body) {
  if (body.size() == message.into.size() && !body.empty()) {
    std::memcpy(message.into.data(), body.data(), body.size());
  }
  Traffic& traffic = traffic_[message.from];
  traffic.consumed += body.size();
  return traffic.consumed >= traffic.owed && std::exchange(traffic.owed, 0) > 0 ? traffic.consumed
                                                                                : 0;
}

// ---- Called on the thread that makes progress ---------------------------------------------------

void CollectiveMailbox::received(Rank rank, GroupHub::Kind kind, std::uint64_t step,
                                 std::span<const std::byte> body) noexcept {
  const auto from = number_of(rank);
  if (!from) return port().drop(rank, "sends a message to a group that it is not in");
  try {
    switch (kind) {
      case kData:
      case kDataAndAsk: take(*from, step, body, kind == kDataAndAsk); break;
      case kAck: traffic_[*from].acknowledged.store(step); break;
      case kProbe: answer_probe(*from, step, cut_off<CollectiveCall>(body)); break;
      case kVote: take_vote(*from, body); break;
      case kFailure: mark_failed(step, decode_outcome(body)); break;
      default: port().drop(rank, "sends a message of a group that this version does not know");
    }
  } catch (...) {
    give_up(0, current_exception_outcome(WEIR_STATUS_INTERNAL));
  }
}

void CollectiveMailbox::take(unsigned from, std::uint64_t step, std::span<const std::byte> body,
                             bool asks) {
  const std::uint64_t operation = step >> kRoundBits;
  const auto round = static_cast<std::uint32_t>(step & kRoundMask);
  const auto call = cut_off<CollectiveCall>(body);
  std::string wrong;
  std::uint64_t ack = 0;
  {
    const sys::Lock lock(mutex_);
    wrong = difference(from, operation, call);
    if (wrong.empty()) {
      Traffic& traffic = traffic_[from];
      traffic.received += body.size();
      if (asks) traffic.owed = traffic.received;
      Message* message = find(operation, round, from);
      if (message == nullptr) {
        message = &add(operation, round, from);
        message->call = call;
        message->early.assign(body.begin(), body.end());
      } else {
        ack = consume(*message, body);
      }
      message->bytes = body.size();
      message->has_arrived.store(true);
    }
  }
  if (!wrong.empty()) give_up(operation, {WEIR_STATUS_INVALID_ARGUMENT, wrong});
  if (ack > 0) acknowledge(from, ack);
}

/// Returns how the call of another rank differs from that of this rank with the same number; "" if
/// it does not, or if this rank has not called it yet or long ago.
std::string CollectiveMailbox::difference(unsigned from, std::uint64_t operation,
                                          const CollectiveCall& theirs) const {
  const Began& own = history_[operation % kHistory];
  if (own.operation != operation || own.call == theirs) return {};
  return fmt::format("rank {} calls {} where rank {} calls {}: all ranks must call the same",
                     ranks_[rank_], text_of(own.call), ranks_[from], text_of(theirs));
}

void CollectiveMailbox::answer_probe(unsigned from, std::uint64_t operation,
                                     const CollectiveCall& theirs) {
  std::string wrong;
  Outcome failure;
  std::uint64_t failed_at = 0;
  {
    const sys::Lock lock(mutex_);
    failure = failure_;
    failed_at = failed_at_.load();
    wrong = difference(from, operation, theirs);
  }
  if (!failure.ok()) {
    post_failure(from, failed_at, failure);
  } else if (!wrong.empty()) {
    give_up(operation, {WEIR_STATUS_INVALID_ARGUMENT, wrong});
  }
}

void CollectiveMailbox::acknowledge(unsigned to, std::uint64_t consumed) noexcept {
  try {
    post(to, kAck, consumed, {});
  } catch (...) {
    give_up(0, current_exception_outcome(WEIR_STATUS_INTERNAL));
  }
}

/// Posts a message that a lost rank does not need.
void CollectiveMailbox::post(unsigned to, GroupHub::Kind kind, std::uint64_t step,
                             std::span<const std::byte> body) {
  try {
    hub_.post(ranks_[to], number_, kind, step, body);
  } catch (...) {
    if (port().alive(ranks_[to])) throw;
  }
}

// ---- Survivors ----------------------------------------------------------------------------------

/// In front of a vote; the members follow, a byte each.
struct CollectiveMailbox::VoteHead {
  std::uint32_t agreement;  ///< its number: how often the group has agreed before
  std::uint32_t round;
  std::uint32_t number;  ///< for the new group, if the voter is its first rank
  std::uint32_t is_decided;
};

void CollectiveMailbox::take_vote(unsigned from, std::span<const std::byte> body) {
  const auto head = cut_off<VoteHead>(body);
  if (body.size() != size()) fail(WEIR_STATUS_NETWORK_ERROR, "a vote about {} ranks", body.size());
  const sys::Lock lock(mutex_);
  votes_.push_back({head.agreement,
                    head.round,
                    from,
                    head.number,
                    head.is_decided != 0,
                    {body.begin(), body.end()}});
}

/// In each round a rank tells all members which ranks it regards as alive, and waits for their
/// votes. It decides when all of them equal its own, and says so in the next round; a member that
/// learns of a decision takes it over. A rank that is lost between two of its votes may have told
/// only some members: those that have decided tell the others.
CollectiveMailbox::Survivors CollectiveMailbox::agree(std::uint32_t number,
                                                      std::int64_t timeout_ns) {
  if (port().inside_listener()) {
    fail(WEIR_STATUS_BUSY, "a handler of messages must not wait for other ranks");
  }
  mark_failed(operation_, {WEIR_STATUS_NETWORK_ERROR, "a rank has shrunk the communicator"});
  const std::int64_t deadline_ns = sys::deadline_after(timeout_ns);
  if (!agreement_) {
    Agreement begun{.number = number, .numbers = std::vector<std::uint32_t>(size(), number)};
    for (const Rank rank : ranks_) begun.members.push_back(std::byte{port().alive(rank)});
    vote(agreements_, 0, number, begun.members, false);
    agreement_ = std::move(begun);
  }
  std::uint32_t& round = agreement_->round;
  std::vector<std::byte>& members = agreement_->members;
  std::vector<std::uint32_t>& numbers = agreement_->numbers;
  for (;; vote(agreements_, ++round, agreement_->number, members, false)) {
    std::vector<Vote> votes;
    const auto complete = [&] { return has_votes(agreements_, round, members, votes); };
    if (!port().wait_until(complete, time_left(deadline_ns), "the survivors of a group")) {
      fail(WEIR_STATUS_TIMEOUT, "not all ranks that are left have called shrink in time");
    }
    std::vector<std::byte> next = members;
    for (unsigned i = 0; i < size(); ++i) {
      const bool has_voted =
          std::any_of(votes.begin(), votes.end(), [&](const Vote& each) { return each.from == i; });
      if (i != rank_ && !has_voted) next[i] = std::byte{0};
    }
    const auto decided =
        std::find_if(votes.begin(), votes.end(), [](const Vote& each) { return each.is_decided; });
    bool all_equal = next == members;
    for (const Vote& each : votes) {
      numbers[each.from] = each.number;
      all_equal = all_equal && each.members == members;
      for (unsigned i = 0; i < size(); ++i) next[i] &= each.members[i];
    }
    if (decided != votes.end()) next = decided->members;
    if (next[rank_] == std::byte{0}) {
      fail(WEIR_STATUS_NETWORK_ERROR, "the other ranks regard rank {} as lost", ranks_[rank_]);
    }
    members = next;
    if (decided == votes.end() && !all_equal) continue;
    Survivors survivors;
    for (unsigned i = 0; i < size(); ++i) {
      if (members[i] == std::byte{0}) continue;
      if (survivors.ranks.empty())
        survivors.number = decided != votes.end() ? decided->number : numbers[i];
      survivors.ranks.push_back(ranks_[i]);
    }
    vote(agreements_, round + 1, survivors.number, members, true);
    agreement_.reset();
    ++agreements_;
    const sys::Lock lock(mutex_);
    std::erase_if(votes_, [&](const Vote& each) { return each.agreement < agreements_; });
    return survivors;
  }
}

void CollectiveMailbox::vote(std::uint32_t agreement, std::uint32_t round, std::uint32_t number,
                             std::span<const std::byte> members, bool is_decided) {
  const VoteHead head{agreement, round, number, is_decided};
  std::vector<std::byte> body(sizeof head + members.size());
  std::memcpy(body.data(), &head, sizeof head);
  std::memcpy(body.data() + sizeof head, members.data(), members.size());
  for (unsigned i = 0; i < size(); ++i) {
    if (i != rank_ && members[i] != std::byte{0}) post(i, kVote, 0, body);
  }
}

/// Returns whether each member has voted in a round or is lost, or one of them has decided. Then
/// `votes` has the votes.
bool CollectiveMailbox::has_votes(std::uint32_t agreement, std::uint32_t round,
                                  std::span<const std::byte> members, std::vector<Vote>& votes) {
  std::vector<bool> is_lost(size());
  for (unsigned i = 0; i < size(); ++i) is_lost[i] = !port().alive(ranks_[i]);
  votes.clear();
  const sys::Lock lock(mutex_);
  bool decided = false;
  for (const Vote& each : votes_) {
    if (each.agreement != agreement || members[each.from] == std::byte{0}) continue;
    if (each.round != round && !each.is_decided) continue;
    decided = decided || each.is_decided;
    votes.push_back(each);
  }
  for (unsigned i = 0; !decided && i < size(); ++i) {
    const bool has_voted =
        std::any_of(votes.begin(), votes.end(), [&](const Vote& each) { return each.from == i; });
    if (i != rank_ && members[i] != std::byte{0} && !has_voted && !is_lost[i]) return false;
  }
  return true;
}

}  // namespace weir::rt
