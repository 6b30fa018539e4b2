#include "fabric/collective_schedule.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>
#include <utility>

namespace weir::rt {

namespace {

using Area = CollectiveSchedule::Area;
using Part = CollectiveSchedule::Part;
using Step = CollectiveSchedule::Step;

/// Parts in which a broadcast forwards data.
constexpr std::size_t kBroadcastChunk = 256u << 10;

Step send_to(unsigned peer, std::uint32_t slot, Part part) { return {true, peer, slot, part}; }
Step receive_from(unsigned peer, std::uint32_t slot, Part part) {
  return {false, peer, slot, part};
}

/// Calls use(peer) for all other ranks, each rank in another order.
template <class Use>
void for_each_peer(GroupPosition at, const Use& use) {
  for (unsigned step = 1; step < at.size; ++step) use((at.rank + step) % at.size);
}

}  // namespace

/// By a binomial tree, in chunks: a rank forwards one while it receives the next.
CollectiveSchedule schedule_broadcast(GroupPosition at, std::uint32_t root, std::size_t bytes) {
  const unsigned place = (at.rank + at.size - root) % at.size;  // in the tree, whose root is 0
  const unsigned subtree = place == 0 ? std::bit_ceil(at.size) : place & (0u - place);
  const auto rank_at = [&](unsigned of) { return (of + root) % at.size; };
  const std::size_t chunks =
      std::max<std::size_t>(1, (bytes + kBroadcastChunk - 1) / kBroadcastChunk);
  CollectiveSchedule schedule;
  schedule.call = {.what = Collective::broadcast, .root = root, .count = bytes};
  schedule.rounds.resize(chunks + 1);
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
    const std::size_t begin = chunk * kBroadcastChunk;
    const Part part{Area::own, begin, std::min(kBroadcastChunk, bytes - begin)};
    const auto slot = static_cast<std::uint32_t>(chunk);
    if (place != 0) {
      schedule.rounds[chunk].push_back(receive_from(rank_at(place - subtree), slot, part));
    }
    for (unsigned step = subtree / 2; step > 0; step /= 2) {
      if (place + step >= at.size) continue;
      schedule.rounds[chunk + 1].push_back(send_to(rank_at(place + step), slot, part));
    }
  }
  return schedule;
}

CollectiveSchedule schedule_gather(GroupPosition at, std::uint32_t root, std::size_t bytes) {
  CollectiveSchedule schedule;
  schedule.call = {.what = Collective::gather, .root = root, .count = bytes};
  auto& steps = schedule.rounds.emplace_back();
  const bool is_to_all = root == CollectiveCall::kAllRanks;
  const Part own{Area::own, 0, bytes};
  if (is_to_all || root == at.rank) {
    schedule.copies.push_back({own, {Area::all, at.rank * bytes, bytes}});
    for_each_peer(at, [&](unsigned peer) {
      steps.push_back(receive_from(peer, 0, {Area::all, peer * bytes, bytes}));
    });
  }
  for_each_peer(at, [&](unsigned peer) {
    if (is_to_all || peer == root) steps.push_back(send_to(peer, 0, own));
  });
  return schedule;
}

CollectiveSchedule schedule_scatter(GroupPosition at, std::uint32_t root, std::size_t bytes) {
  CollectiveSchedule schedule;
  schedule.call = {.what = Collective::scatter, .root = root, .count = bytes};
  auto& steps = schedule.rounds.emplace_back();
  const Part own{Area::own, 0, bytes};
  if (root != at.rank) {
    steps.push_back(receive_from(root, 0, own));
    return schedule;
  }
  schedule.copies.push_back({{Area::all, root * bytes, bytes}, own});
  for_each_peer(at, [&](unsigned peer) {
    steps.push_back(send_to(peer, 0, {Area::all, peer * bytes, bytes}));
  });
  return schedule;
}

CollectiveSchedule schedule_all_to_all(GroupPosition at, std::size_t bytes) {
  const std::size_t part = bytes / at.size;
  CollectiveSchedule schedule;
  schedule.call = {.what = Collective::all_to_all, .count = bytes};
  auto& steps = schedule.rounds.emplace_back();
  schedule.copies.push_back({{Area::own, at.rank * part, part}, {Area::all, at.rank * part, part}});
  for_each_peer(at, [&](unsigned peer) {
    steps.push_back(receive_from(peer, 0, {Area::all, peer * part, part}));
    steps.push_back(send_to(peer, 0, {Area::own, peer * part, part}));
  });
  return schedule;
}

/// Each rank combines a segment, and then sends it to those that get the result. A rank sends
/// 2 (n - 1) / n of the numbers.
CollectiveSchedule schedule_reduction(GroupPosition at, std::uint32_t root, std::size_t bytes,
                                      const Numbers& numbers) {
  const std::size_t count = bytes / numbers.size;
  const auto begin_of = [&](unsigned rank) { return count * rank / at.size * numbers.size; };
  const auto segment = [&](unsigned rank) {
    return Part{Area::own, begin_of(rank), begin_of(rank + 1) - begin_of(rank)};
  };
  const Part own = segment(at.rank);
  const auto slot_of = [&](unsigned rank) {
    return Part{Area::scratch, rank * own.bytes, own.bytes};
  };
  CollectiveSchedule schedule;
  schedule.call = {.what = Collective::reduce,
                   .type = numbers.type,
                   .operation = numbers.operation,
                   .root = root,
                   .count = count};
  schedule.scratch_bytes = at.size * own.bytes;
  schedule.copies.push_back({own, slot_of(at.rank)});
  schedule.rounds.resize(2);
  for_each_peer(at, [&](unsigned peer) {
    schedule.rounds[0].push_back(receive_from(peer, 0, slot_of(peer)));
    schedule.rounds[0].push_back(send_to(peer, 0, segment(peer)));
  });
  schedule.combine = [own, ranks = at.size, size = numbers.size,
                      combine = numbers.combine](const CollectiveSchedule::Addresses& memory) {
    if (own.bytes == 0) return;
    std::byte* const into = memory[static_cast<std::size_t>(Area::own)] + own.offset;
    const std::byte* const slots = memory[static_cast<std::size_t>(Area::scratch)];
    std::memcpy(into, slots, own.bytes);
    for (unsigned rank = 1; rank < ranks; ++rank) {
      combine(into, slots + rank * own.bytes, own.bytes / size);
    }
  };
  const bool is_to_all = root == CollectiveCall::kAllRanks;
  for_each_peer(at, [&](unsigned peer) {
    if (is_to_all || root == at.rank) {
      schedule.rounds[1].push_back(receive_from(peer, 1, segment(peer)));
    }
    if (is_to_all || root == peer) schedule.rounds[1].push_back(send_to(peer, 1, own));
  });
  return schedule;
}

// ---- In progress --------------------------------------------------------------------------------

ScheduledCollective::ScheduledCollective(std::shared_ptr<TaggedMessages> messages,
                                         CollectiveSchedule schedule, std::uint32_t number)
    : messages_(std::move(messages)), schedule_(std::move(schedule)), number_(number) {
  std::size_t most = 0;
  for (const auto& steps : schedule_.rounds) most = std::max(most, steps.size());
  in_progress_ = std::vector<Message>(most);
}

TaggedMessages::Key ScheduledCollective::key(const CollectiveSchedule::Step& step) const noexcept {
  return {number_, TaggedMessages::kOfCollective | step.slot};
}

std::byte* ScheduledCollective::address(const CollectiveSchedule::Part& part) const noexcept {
  std::byte* const area = memory_[static_cast<std::size_t>(part.area)];
  assert(area != nullptr || part.bytes == 0);
  return area == nullptr ? nullptr : area + part.offset;
}

void ScheduledCollective::start(const CollectiveSchedule::Addresses& memory) noexcept {
  memory_ = memory;
  for (const auto& [from, to] : schedule_.copies) {
    if (from.bytes > 0) std::memmove(address(to), address(from), from.bytes);
  }
  run_rounds();
}

/// Begins rounds until one is incomplete when it has been begun: its last message continues.
void ScheduledCollective::run_rounds() noexcept {
  while (round_ < schedule_.rounds.size()) {
    const auto& steps = schedule_.rounds[round_];
    incomplete_.store(steps.size() + 1);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const CollectiveSchedule::Step& step = steps[i];
      Message& message = in_progress_[i];
      message.owner = this;
      message.peer = step.peer;
      message.key = key(step);
      message.call = &schedule_.call;
      message.memory = {.first = address(step.part), .row_bytes = step.part.bytes};
      step.is_send ? messages_->send(message) : messages_->receive(message);
    }
    if (incomplete_.fetch_sub(1) > 1) return;
    end_round();
  }
  Outcome outcome;
  {
    const sys::Lock lock(mutex_);
    outcome = std::move(failure_);
  }
  done(outcome);
}

void ScheduledCollective::take(const Outcome& outcome) noexcept {
  if (!outcome.ok()) note(outcome);
  if (incomplete_.fetch_sub(1) > 1) return;
  end_round();
  run_rounds();
}

/// Keeps the first failure, or one that says what the program does wrong.
void ScheduledCollective::note(const Outcome& failure) noexcept {
  const bool is_wrong = failure.status == WEIR_STATUS_INVALID_ARGUMENT;
  {
    const sys::Lock lock(mutex_);
    if (failure_.ok() || (is_wrong && failure_.status != failure.status)) {
      failure_ = failed_outcome(failure.status, failure.message.c_str());
    }
  }
  if (is_wrong) messages_->give_up(failure);
}

/// Combines, or after a failure tells the other ranks that the later messages do not come.
void ScheduledCollective::end_round() noexcept {
  Outcome why;
  {
    const sys::Lock lock(mutex_);
    why = failed_outcome(failure_.status, failure_.message.c_str());
  }
  if (why.ok() && round_ == 0 && schedule_.combine) {
    try {
      schedule_.combine(memory_);
    } catch (...) {
      why = current_exception_outcome(WEIR_STATUS_KERNEL_ERROR);
      note(why);
    }
  }
  if (!why.ok()) refuse_from(round_ + 1, why.message.c_str());
  round_ = why.ok() ? round_ + 1 : schedule_.rounds.size();
}

void ScheduledCollective::refuse_from(std::size_t round, const char* why) noexcept {
  for (; round < schedule_.rounds.size(); ++round) {
    for (const CollectiveSchedule::Step& step : schedule_.rounds[round]) {
      step.is_send ? messages_->refuse_send(step.peer, key(step), why)
                   : messages_->refuse_receive(step.peer, key(step), why);
    }
  }
}

}  // namespace weir::rt
