#include "runtime/share_crew.hpp"

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

struct ShareCrew::Head {
  PartReport report{};
  ItemRange range{0, 0};
  std::uint32_t part = 0;
  std::uint32_t status = 0;
};

// ---- Meeting ------------------------------------------------------------------------------------

ShareCrew::Meeting::~Meeting() {
  if (fabric_ == nullptr || held_) return;
  try {
    fabric_->collectives().exchange(what_, {}, time_left(deadline_ns_));
  } catch (const std::exception&) {  // this rank fails anyway
  }
}

ShareCrew::ShareCrew(Meeting& meeting, const std::vector<std::string>& names)
    : fabric_(*meeting.fabric_), port_(fabric_.port()), rank_(port_.rank()) {
  meeting.held_ = true;
  meet(meeting, names);
  Window::meet(fabric_.collectives(), time_left(meeting.deadline_ns_),
               [&](std::int64_t deadline) -> Window& {
                 return window_.emplace(port_, nullptr, rank_ == 0 ? sizeof(std::int64_t) : 0,
                                        deadline);
               });
}

void ShareCrew::meet(const Meeting& meeting, const std::vector<std::string>& names) {
  std::string mine;
  for (const std::string& name : names) mine.append(name.c_str(), name.size() + 1);
  const auto all = fabric_.collectives().exchange(meeting.what_, as_bytes(mine),
                                                  time_left(meeting.deadline_ns_));
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

void ShareCrew::leave() noexcept {
  if (listener_ == nullptr) return;
  fabric_.share_hub().leave(number_);
  listener_ = nullptr;
}

void ShareCrew::abandon(const Outcome& why) noexcept {
  if (listener_ == nullptr) {
    number_ = fabric_.share_hub().skip();
  } else {
    leave();
  }
  for (Rank rank = 0; rank < ranks(); ++rank) {
    if (rank == rank_ || (rank_ != 0 && rank != 0)) continue;
    try {
      if (rank_ == 0) {
        say_over(rank, why.status, why.message);
      } else {
        say_failure(why.status, why.message);
        say_left();
      }
    } catch (...) {
      port_.drop(rank, "could not be told that a share has failed");
    }
  }
}

void ShareCrew::listen(Listener& listener) {
  listener_ = &listener;
  fabric_.share_hub().enter(*this, number_);
  for (Rank rank = 0; rank < ranks(); ++rank) {
    if (!port_.alive(rank)) listener.lost_rank(rank, port_.why_gone(rank));
  }
}

void ShareCrew::fetch_add(std::uint64_t count, Completion& done) {
  port_.fetch_add(0, window_->id(0), 0, static_cast<std::int64_t>(count), &done);
}

// ---- Messages -----------------------------------------------------------------------------------

void ShareCrew::say(Rank to, Kind kind, const Head& head, std::span<const std::byte> rest) {
  fabric_.share_hub().send(to, number_, kind, std::as_bytes(std::span(&head, 1)), rest);
}

void ShareCrew::say_took(std::size_t part, const PartReport& report) {
  say(0, took, {.report = report, .part = static_cast<std::uint32_t>(part)}, {});
}

void ShareCrew::say_done(std::size_t part, const PartReport& report, const ItemRange& range,
                         std::span<const std::byte> results) {
  say(0, done, {.report = report, .range = range, .part = static_cast<std::uint32_t>(part)},
      results);
}

void ShareCrew::say_returned(std::size_t part, const PartReport& report, const ItemRange& range,
                             weir_status status, std::string_view why) {
  say(0, returned,
      {.report = report,
       .range = range,
       .part = static_cast<std::uint32_t>(part),
       .status = static_cast<std::uint32_t>(status)},
      as_bytes(why));
}

void ShareCrew::say_ask(std::size_t part, const PartReport& report) {
  say(0, ask, {.report = report, .part = static_cast<std::uint32_t>(part)}, {});
}

void ShareCrew::say_failure(weir_status status, std::string_view why) {
  say(0, failure, {.status = static_cast<std::uint32_t>(status)}, as_bytes(why));
}

void ShareCrew::say_left() { say(0, left, {}, {}); }

void ShareCrew::say_give(std::size_t part, const ItemRange& range) {
  say(places_[part].rank, give, {.range = range, .part = static_cast<std::uint32_t>(part)}, {});
}

void ShareCrew::say_board(Rank to, std::uint64_t taken, std::span<const PeerReport> reports) {
  say(to, board, {.range = {taken, 0}}, std::as_bytes(reports));
}

void ShareCrew::say_over(Rank to, weir_status status, std::string_view why) {
  say(to, over, {.status = static_cast<std::uint32_t>(status)}, as_bytes(why));
}

void ShareCrew::heard(Rank from, GroupHub::Kind kind, std::uint64_t,
                      std::span<const std::byte> body) noexcept {
  Head head;
  if (body.size() < sizeof head) return;
  std::memcpy(&head, body.data(), sizeof head);
  const std::span<const std::byte> rest = body.subspan(sizeof head);
  const auto status = static_cast<weir_status>(head.status);
  if (rank_ == 0) return hear_member(from, kind, head, rest);
  if (from != 0) return;
  switch (kind) {
    case give:
      if (head.part < places_.size() && places_[head.part].rank == rank_) {
        listener_->heard_give(head.part, head.range);
      }
      return;
    case board: return hear_board(head.range.first, rest);
    case over: return listener_->heard_over(status, as_text(rest));
    default: return;
  }
}

void ShareCrew::hear_board(std::uint64_t taken, std::span<const std::byte> reports) noexcept {
  for (; reports.size() >= sizeof(PeerReport); reports = reports.subspan(sizeof(PeerReport))) {
    PeerReport peer;
    std::memcpy(&peer, reports.data(), sizeof peer);
    const bool is_other = peer.part < places_.size() && places_[peer.part].rank != rank_;
    if (is_other) listener_->heard_peer(peer);
  }
  listener_->heard_taken(taken);
}

void ShareCrew::hear_member(Rank from, GroupHub::Kind kind, const Head& head,
                            std::span<const std::byte> rest) noexcept {
  const auto status = static_cast<weir_status>(head.status);
  if (kind == failure) return listener_->heard_failure(from, status, as_text(rest));
  if (kind == left) return listener_->heard_left(from);
  if (head.part >= places_.size() || places_[head.part].rank != from) return;
  switch (kind) {
    case took: return listener_->heard_took(head.part, head.report);
    case done: return listener_->heard_done(head.part, head.report, head.range, rest);
    case returned:
      return listener_->heard_returned(head.part, head.report, head.range, status, as_text(rest));
    case ask: return listener_->heard_ask(head.part, head.report);
    default: return;
  }
}

void ShareCrew::lost(Rank rank, const std::string& why) noexcept {
  listener_->lost_rank(rank, why);
}

}  // namespace weir::rt
