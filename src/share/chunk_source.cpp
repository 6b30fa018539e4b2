#include "share/chunk_source.hpp"

namespace weir::rt {

SharePeer PlaceStatus::estimate(std::int64_t now_ns) const noexcept {
  SharePeer peer{
      .speed = speed.load(), .grain = grain.load(), .visits = visits.load(), .lost = lost.load()};
  if (peer.speed <= 0) return peer;
  const double begun = current.load(), work = std::max(begun, pending.load());
  const auto elapsed = static_cast<double>(std::max<std::int64_t>(1, now_ns - since_ns.load()));
  if (stale) {
    peer.free_ns = std::max(0.0, work / peer.speed - elapsed);
    return peer;
  }
  if (begun > 0)
    peer.speed = std::min(peer.speed, begun / elapsed);  // overdue: the place has become slower
  peer.free_ns = (work - std::min(begun, peer.speed * elapsed)) / peer.speed;
  return peer;
}

double PlaceStatus::unreported_work(std::int64_t now_ns) const noexcept {
  if (!stale || lost.load()) return 0;
  const auto elapsed = static_cast<double>(std::max<std::int64_t>(0, now_ns - since_ns.load()));
  return std::max(0.0, speed.load() * elapsed - pending.load());
}

void ChunkSource::begin(const std::string& policy, std::span<const PlaceStatus> places,
                        std::int64_t* word) {
  policy_ = make_chunk_policy(policy, places.size());
  places_ = places;
  word_ = word;
  const SpinGuard guard(lock_);
  returned_.reserve(2 * kMostChunks * places.size());
}

std::uint64_t ChunkSource::next_size(std::size_t place, std::uint64_t trial,
                                     std::span<SharePeer> peers,
                                     std::int64_t now_ns) const noexcept {
  const std::uint64_t taken = this->taken();
  const ItemRange next = next_range(taken);
  if (next.count == 0) return 0;
  if (trial > 0) return trial;
  double unreported = 0;
  if (policy_->uses_peer_speeds()) {
    for (std::size_t i = 0; i < places_.size(); ++i) {
      peers[i] = places_[i].estimate(now_ns);
      unreported += places_[i].unreported_work(now_ns);
    }
  }
  // Assumes that returned items have as much work each as the next ones.
  const std::uint64_t returned = returned_items_.load();
  const double work_returned = returned == 0 ? 0
                                             : work_of(next) / static_cast<double>(next.count) *
                                                   static_cast<double>(returned);
  const double work = items_.work(taken, count()) + work_returned;
  const std::uint64_t size = policy_->count({.items = items_,
                                             .next = next.first,
                                             .remaining = count() - taken + returned,
                                             .remaining_work = std::max(0.0, work - unreported),
                                             .peers = peers,
                                             .self = place});
  return std::min(size, count());  // so that the counter does not overflow
}

/// Returns the range from which the next chunk will be cut.
ItemRange ChunkSource::next_range(std::uint64_t taken) const noexcept {
  if (has_returned_items()) {
    const SpinGuard guard(lock_);
    if (!returned_.empty()) return returned_.back();
  }
  return {taken, count() - taken};
}

bool ChunkSource::take(std::uint64_t wanted, ItemRange& range) noexcept {
  if (has_returned_items()) {
    const SpinGuard guard(lock_);
    if (!returned_.empty()) {
      ItemRange& some = returned_.back();
      range = {some.first, std::min(wanted, some.count)};
      some = {some.first + range.count, some.count - range.count};
      if (some.count == 0) returned_.pop_back();
      returned_items_.fetch_sub(range.count);
      return true;
    }
  }
  if (counter() >= count()) return false;
  range.first = fetch_add(wanted);
  if (range.first >= count()) return false;
  range.count = std::min(wanted, count() - range.first);
  return true;
}

void ChunkSource::give_back(const ItemRange& range) noexcept {
  const SpinGuard guard(lock_);
  returned_.push_back(range);
  returned_items_.fetch_add(range.count);
}

void ChunkSource::raise_taken(std::uint64_t taken) noexcept {
  const SpinGuard guard(lock_);
  if (taken > counter()) counter_.store(taken);
}

}  // namespace weir::rt
