#include "runtime/share_group.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/fabric.hpp"

namespace weir::rt {

namespace {

constexpr std::size_t kMostPlaces = 1024;

std::span<const std::byte> as_bytes(std::string_view text) noexcept {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string_view as_text(std::span<const std::byte> bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

struct ShareGroup::Head {
  PartReport report{};
  ItemRange range{0, 0};
  std::uint32_t part = 0;
  std::uint32_t status = 0;
};

// ---- Meeting ------------------------------------------------------------------------------------

ShareGroup::CollectiveJoin::~CollectiveJoin() {
  if (fabric_ == nullptr || held_) return;
  try {
    fabric_->collectives().exchange(what_, {}, time_left(deadline_ns_));
  } catch (const std::exception&) {  // this rank reports its failure anyway
  }
}

ShareGroup::ShareGroup(CollectiveJoin& join, const std::vector<std::string>& names)
    : fabric_(*join.fabric_), port_(fabric_.port()), rank_(port_.rank()) {
  join.held_ = true;
  join_group(join, names);
  Window::meet(
      fabric_.collectives(), time_left(join.deadline_ns_), [&](std::int64_t deadline) -> Window& {
        return window_.emplace(port_, nullptr, rank_ == 0 ? sizeof(std::int64_t) : 0, deadline);
      });
}

void ShareGroup::join_group(const CollectiveJoin& join, const std::vector<std::string>& names) {
  std::string mine;
  for (const std::string& name : names) mine.append(name.c_str(), name.size() + 1);
  const auto all =
      fabric_.collectives().exchange(join.what_, as_bytes(mine), time_left(join.deadline_ns_));
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
}

void ShareGroup::leave() noexcept {
  if (listener_ == nullptr) return;
  fabric_.share_hub().leave(number_);
  listener_ = nullptr;
}

void ShareGroup::abandon(const Outcome& why) noexcept {
  if (listener_ == nullptr) {
    number_ = fabric_.share_hub().skip();
  } else {
    leave();
  }
  for (Rank rank = 0; rank < ranks(); ++rank) {
    if (rank == rank_ || (rank_ != 0 && rank != 0)) continue;
    try {
      if (rank_ == 0) {
        send_complete(rank, why.status, why.message);
      } else {
        send_failure(why.status, why.message);
        send_left();
      }
    } catch (...) {
      port_.drop(rank, "could not be told that a share has failed");
    }
  }
}

void ShareGroup::listen(Listener& listener) {
  listener_ = &listener;
  fabric_.share_hub().enter(*this, number_);
  for (Rank rank = 0; rank < ranks(); ++rank) {
    if (!port_.alive(rank)) listener.on_rank_lost(rank, port_.why_lost(rank));
  }
}

void ShareGroup::fetch_add(std::uint64_t count, Completion& done) {
  port_.fetch_add(0, window_->id(0), 0, static_cast<std::int64_t>(count), &done);
}

// ---- Messages -----------------------------------------------------------------------------------

void ShareGroup::send(Rank to, Kind kind, const Head& head, std::span<const std::byte> rest) {
  fabric_.share_hub().send(to, number_, kind, std::as_bytes(std::span(&head, 1)), rest);
}

void ShareGroup::send_taken(std::size_t part, const PartReport& report) {
  send(0, taken, {.report = report, .part = static_cast<std::uint32_t>(part)}, {});
}

void ShareGroup::send_done(std::size_t part, const PartReport& report, const ItemRange& range,
                           std::span<const std::byte> results) {
  send(0, done, {.report = report, .range = range, .part = static_cast<std::uint32_t>(part)},
       results);
}

void ShareGroup::send_returned(std::size_t part, const PartReport& report, const ItemRange& range,
                               weir_status status, std::string_view why) {
  send(0, returned,
       {.report = report,
        .range = range,
        .part = static_cast<std::uint32_t>(part),
        .status = static_cast<std::uint32_t>(status)},
       as_bytes(why));
}

void ShareGroup::send_request(std::size_t part, const PartReport& report) {
  send(0, request, {.report = report, .part = static_cast<std::uint32_t>(part)}, {});
}

void ShareGroup::send_failure(weir_status status, std::string_view why) {
  send(0, failure, {.status = static_cast<std::uint32_t>(status)}, as_bytes(why));
}

void ShareGroup::send_left() { send(0, left, {}, {}); }

void ShareGroup::send_assignment(std::size_t part, const ItemRange& range) {
  send(places_[part].rank, assignment, {.range = range, .part = static_cast<std::uint32_t>(part)},
       {});
}

void ShareGroup::send_status(Rank to, std::uint64_t taken, std::span<const PeerReport> reports) {
  send(to, status_update, {.range = {taken, 0}}, std::as_bytes(reports));
}

void ShareGroup::send_complete(Rank to, weir_status status, std::string_view why) {
  send(to, complete, {.status = static_cast<std::uint32_t>(status)}, as_bytes(why));
}

void ShareGroup::received(Rank from, GroupHub::Kind kind, std::uint64_t,
                          std::span<const std::byte> body) noexcept {
  Head head;
  if (body.size() < sizeof head) return;
  std::memcpy(&head, body.data(), sizeof head);
  const std::span<const std::byte> rest = body.subspan(sizeof head);
  const auto status = static_cast<weir_status>(head.status);
  if (rank_ == 0) return receive_from_member(from, kind, head, rest);
  if (from != 0) return;
  switch (kind) {
    case assignment:
      if (head.part < places_.size() && places_[head.part].rank == rank_) {
        listener_->on_assigned(head.part, head.range);
      }
      return;
    case status_update: return hear_board(head.range.first, rest);
    case complete: return listener_->on_complete(status, as_text(rest));
    default: return;
  }
}

void ShareGroup::hear_board(std::uint64_t taken, std::span<const std::byte> reports) noexcept {
  for (; reports.size() >= sizeof(PeerReport); reports = reports.subspan(sizeof(PeerReport))) {
    PeerReport peer;
    std::memcpy(&peer, reports.data(), sizeof peer);
    const bool is_other = peer.part < places_.size() && places_[peer.part].rank != rank_;
    if (is_other) listener_->on_peer_report(peer);
  }
  listener_->on_counter(taken);
}

void ShareGroup::receive_from_member(Rank from, GroupHub::Kind kind, const Head& head,
                                     std::span<const std::byte> rest) noexcept {
  const auto status = static_cast<weir_status>(head.status);
  if (kind == failure) return listener_->on_failure(from, status, as_text(rest));
  if (kind == left) return listener_->on_left(from);
  if (head.part >= places_.size() || places_[head.part].rank != from) return;
  switch (kind) {
    case taken: return listener_->on_taken(head.part, head.report);
    case done: return listener_->on_done(head.part, head.report, head.range, rest);
    case returned:
      return listener_->on_returned(head.part, head.report, head.range, status, as_text(rest));
    case request: return listener_->on_request(head.part, head.report);
    default: return;
  }
}

void ShareGroup::lost(Rank rank, const std::string& why) noexcept {
  listener_->on_rank_lost(rank, why);
}

}  // namespace weir::rt
