#include "share/share_group.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "fabric/collectives.hpp"

namespace weir::rt {

namespace {

constexpr std::size_t kMostPlaces = 1024;

}  // namespace

void PartReport::publish(PlaceStatus& status, std::int64_t now_ns) const noexcept {
  status.speed.store(speed);
  status.pending.store(pending);
  status.current.store(current);
  status.since_ns.store(now_ns - age_ns);
  status.grain.store(grain);
}

// ---- Meeting ------------------------------------------------------------------------------------

ShareGroup::CollectiveJoin::~CollectiveJoin() {
  if (!fabric_ || held_) return;
  try {
    fabric_->collectives.exchange(what_, {}, time_left(deadline_ns_));
  } catch (const std::exception&) {  // this rank reports its failure anyway
  }
}

ShareGroup::ShareGroup(CollectiveJoin& join, const std::vector<std::string>& names)
    : fabric_(*join.fabric_), port_(fabric_.port), rank_(port_.rank()) {
  join.held_ = true;
  std::string mine;
  for (const std::string& name : names) mine.append(name.c_str(), name.size() + 1);
  const auto all =
      fabric_.collectives.exchange(join.what_, as_bytes(mine), time_left(join.deadline_ns_));
  for (Rank rank = 0; rank < port_.ranks(); ++rank) {
    firsts_.push_back(places_.size());
    if (all[rank].empty()) {
      fail(WEIR_STATUS_NETWORK_ERROR, "rank {} could not start its part of the share", rank);
    }
    for (std::string_view text = as_text(all[rank]); !text.empty();) {
      const std::size_t end = std::min(text.find('\0'), text.size() - 1);
      places_.push_back({rank, std::string(text.substr(0, end))});
      text.remove_prefix(end + 1);
    }
  }
  firsts_.push_back(places_.size());
  if (places_.size() > kMostPlaces) {
    fail(WEIR_STATUS_UNSUPPORTED, "a share of {} places: choose up to {} over all ranks",
         places_.size(), kMostPlaces);
  }
  Window::create_on_all_ranks(
      fabric_.collectives, time_left(join.deadline_ns_), [&](std::int64_t deadline) -> Window& {
        return window_.emplace(port_, nullptr, rank_ == 0 ? sizeof(std::int64_t) : 0, deadline);
      });
}

void ShareGroup::leave() noexcept {
  if (listener_ == nullptr) return;
  fabric_.hub.leave(number_);
  listener_ = nullptr;
}

void ShareGroup::abandon(const Outcome& why) noexcept {
  if (listener_ == nullptr) {
    number_ = fabric_.hub.skip();
  } else {
    leave();
  }
  for (Rank rank = 0; rank < ranks(); ++rank) {
    if (rank == rank_ || (rank_ != 0 && rank != 0)) continue;
    constexpr const char* kWhy = "could not be notified that a share has failed";
    const auto kind = rank_ == 0 ? ShareMessage::complete : ShareMessage::failure;
    if (send_or_drop(rank, kind, {.status = why.status}, why.message, kWhy) && rank_ != 0) {
      send_or_drop(0, ShareMessage::leave, {}, "", kWhy);
    }
  }
}

void ShareGroup::listen(Listener& listener) {
  listener_ = &listener;
  fabric_.hub.enter(*this, number_);
  for (Rank rank = 0; rank < ranks(); ++rank) {
    if (!port_.alive(rank)) listener.on_rank_lost(rank, port_.why_lost(rank));
  }
}

void ShareGroup::fetch_add(std::uint64_t count, Completion& done) {
  port_.fetch_add(0, window_->id(0), 0, static_cast<std::int64_t>(count), &done);
}

// ---- Messages -----------------------------------------------------------------------------------

void ShareGroup::send(Rank to, ShareMessage::Kind kind, const ShareMessage& message,
                      std::span<const std::byte> rest) {
  fabric_.hub.send(to, number_, kind, 0, std::as_bytes(std::span(&message, 1)), rest);
}

bool ShareGroup::send_or_drop(Rank to, ShareMessage::Kind kind, const ShareMessage& message,
                              std::string_view reason, const char* why) noexcept {
  try {
    send(to, kind, message, as_bytes(reason));
    return true;
  } catch (...) {
    port_.drop(to, why);
    return false;
  }
}

void ShareGroup::received(Rank from, GroupHub::Kind kind, std::uint64_t,
                          std::span<const std::byte> body) noexcept {
  ShareMessage message;
  if (body.size() < sizeof message || kind > ShareMessage::complete) return;
  std::memcpy(&message, body.data(), sizeof message);
  const bool to_root = kind <= ShareMessage::leave;
  if (to_root != (rank_ == 0) || (!to_root && from != 0)) return;
  const bool of_part = kind <= ShareMessage::request || kind == ShareMessage::assignment;
  const Rank owner = to_root ? from : rank_;
  if (of_part && (message.part >= places_.size() || places_[message.part].rank != owner)) return;
  listener_->on_message(from, static_cast<ShareMessage::Kind>(kind), message,
                        body.subspan(sizeof message));
}

void ShareGroup::lost(Rank rank, const std::string& why) noexcept {
  listener_->on_rank_lost(rank, why);
}

}  // namespace weir::rt
