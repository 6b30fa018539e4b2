#include "fabric/group_hub.hpp"

#include <cassert>
#include <cstring>
#include <functional>
#include <utility>

#include "fabric/wire.hpp"

namespace weir::rt {

void NumberSet::insert(std::uint32_t number) {
  auto after = ends_.lower_bound(number);
  const bool follows = after != ends_.begin() && std::prev(after)->second == number;
  const bool precedes = after != ends_.end() && after->first == number + 1;
  const std::uint32_t end = precedes ? after->second : number + 1;
  if (follows) {
    std::prev(after)->second = end;
  } else {
    ends_.emplace_hint(after, number, end);
  }
  if (precedes) ends_.erase(after);
}

namespace {

std::vector<std::byte> joined_head(const GroupHub::Head& head, std::span<const std::byte> first) {
  std::vector<std::byte> bytes(sizeof head + first.size());
  std::memcpy(bytes.data(), &head, sizeof head);
  std::memcpy(bytes.data() + sizeof head, first.data(), first.size());
  return bytes;
}

}  // namespace

GroupHub::GroupHub(Port& port, Channel channel, Numbering numbering, Derived)
    : port_(port), channel_(channel), numbering_(numbering), early_bytes_(port.ranks()) {}

GroupHub::~GroupHub() {
  assert(members_.empty());
  stop_listening();
}

void GroupHub::wait_for_delivery(sys::Lock& lock) {
  while (receiving_ != nullptr) delivered_.wait(lock);
}

template <class Use>
void GroupHub::deliver(Member& member, const Use& use) {
  receiving_ = &member;
  mutex_.unlock();
  use(member);
  mutex_.lock();
  receiving_ = nullptr;
  delivered_.notify_all();
}

void GroupHub::enter(Member& member, std::uint32_t& number) {
  // The scope makes a member that tries to wait here fail: it would block progress, on which what
  // it waits for depends.
  const Port::ListenerScope scope(port_);
  sys::Lock lock(mutex_);
  wait_for_delivery(lock);
  number = next_++;
  enter_inside(member, number);
}

void GroupHub::enter_as(Member& member, std::uint32_t number) {
  const Port::ListenerScope scope(port_);
  sys::Lock lock(mutex_);
  wait_for_delivery(lock);
  enter_inside(member, number);
}

void GroupHub::enter_inside(Member& member, std::uint32_t number) {
  members_.emplace(number, &member);
  // The replay stays in order: other threads get the lock only while this member is receiving.
  for (auto first = early_.find(number); first != early_.end(); first = early_.find(number)) {
    const Early early = take_early(first);
    deliver(member, [&](Member& hearer) {
      hearer.received(early.from, early.kind, early.step, early.body);
    });
  }
}

std::uint32_t GroupHub::skip() noexcept {
  sys::Lock lock(mutex_);
  for (auto first = early_.find(next_); first != early_.end(); first = early_.find(next_)) {
    take_early(first);
  }
  return next_++;
}

GroupHub::Early GroupHub::take_early(std::multimap<std::uint32_t, Early>::iterator early) noexcept {
  Early taken = std::move(early->second);
  early_.erase(early);
  early_bytes_[taken.from] -= taken.body.size() + sizeof(Head);
  return taken;
}

/// Keeps a message until its member enters. Returns false if there is no room.
bool GroupHub::keep(Rank from, const Head& head, std::span<const std::byte> body) noexcept {
  const std::size_t bytes = body.size() + sizeof head;
  if (early_bytes_[from] > 0 && early_bytes_[from] + bytes > kMostEarly) return false;
  try {
    early_.emplace(head.number, Early{from, head.kind, head.step, {body.begin(), body.end()}});
  } catch (const std::bad_alloc&) {
    return false;
  }
  early_bytes_[from] += bytes;
  return true;
}

void GroupHub::note_end(std::uint32_t number) noexcept {
  try {
    ended_.insert(number);
  } catch (const std::bad_alloc&) {  // late messages then count as early ones
  }
}

void GroupHub::refuse(std::uint32_t number) noexcept {
  const sys::Lock lock(mutex_);
  note_end(number);
  for (auto first = early_.find(number); first != early_.end(); first = early_.find(number)) {
    take_early(first);
  }
}

void GroupHub::leave(std::uint32_t number) noexcept {
  sys::Lock lock(mutex_);
  if (numbering_ == Numbering::given) note_end(number);
  const auto found = members_.find(number);
  if (found == members_.end()) return;
  const Member* const member = found->second;
  members_.erase(found);
  while (receiving_ == member) delivered_.wait(lock);
}

void GroupHub::send(Rank to, std::uint32_t number, Kind kind, std::uint64_t step,
                    std::span<const std::byte> body) {
  port_.send(to, channel_, bytes_of(head(number, kind, step)), body);
}

void GroupHub::send(Rank to, std::uint32_t number, Kind kind, std::uint64_t step,
                    std::span<const std::byte> first, std::span<const std::byte> rest) {
  port_.send(to, channel_, joined_head(head(number, kind, step), first), rest);
}

void GroupHub::post(Rank to, std::uint32_t number, Kind kind, std::uint64_t step,
                    std::span<const std::byte> body) {
  port_.post(to, channel_, bytes_of(head(number, kind, step)), body);
}

void GroupHub::post(Rank to, std::uint32_t number, Kind kind, std::uint64_t step,
                    std::span<const std::byte> first, std::span<const std::byte> rest) {
  if (first.empty()) return post(to, number, kind, step, rest);
  port_.post(to, channel_, joined_head(head(number, kind, step), first), rest);
}

void GroupHub::send_reserved(Rank to, std::uint32_t number, Kind kind, std::uint64_t step,
                             std::span<std::byte> body) {
  port_.send_reserved(to, channel_, bytes_of(head(number, kind, step)), body);
}

/// Returns whether a message is for a member that has not entered yet.
bool GroupHub::is_early(const Head& head) const {
  if (numbering_ == Numbering::in_order) return head.number >= next_;
  return (head.kind & kNotKept) == 0 && !members_.contains(head.number) &&
         !ended_.contains(head.number);
}

void GroupHub::on_message(Rank from, std::span<const std::byte> message) noexcept {
  Head head{};
  if (message.size() >= sizeof head) std::memcpy(&head, message.data(), sizeof head);
  if (head.magic != kMagic) {  // its receiver would wait forever for the message
    return port_.drop(from, "sends a message that is not one of a grid, share or conveyor");
  }
  const std::span<const std::byte> body = message.subspan(sizeof head);
  sys::Lock lock(mutex_);
  wait_for_delivery(lock);
  if (is_early(head)) {
    if (keep(from, head, body)) return;
    lock.unlock();
    return port_.drop(from,
                      "sends more for grids and shares that this rank has not made "
                      "than it keeps");
  }
  const auto found = members_.find(head.number);
  if (found == members_.end()) {
    lock.unlock();
    return on_stray(from, head, body);
  }
  deliver(*found->second,
          [&](Member& member) { member.received(from, head.kind, head.step, body); });
}

void GroupHub::on_rank_lost(Rank rank, const std::string& why) noexcept {
  sys::Lock lock(mutex_);
  wait_for_delivery(lock);
  // A member may leave during a delivery: continue after the last number.
  for (auto each = members_.begin(); each != members_.end();) {
    const std::uint32_t number = each->first;
    deliver(*each->second, [&](Member& member) { member.lost(rank, why); });
    wait_for_delivery(lock);
    each = members_.upper_bound(number);
  }
}

}  // namespace weir::rt
