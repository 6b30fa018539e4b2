// The ranks of one share and the messages between them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <weir/status.h>

#include "base/error.hpp"
#include "net/group_hub.hpp"
#include "net/window.hpp"
#include "sched/range_set.hpp"
#include "sched/share_counter.hpp"

namespace weir::rt {

class Fabric;

/// What a rank reports of one of its places.
struct PartReport {
  double speed = 0;                 ///< work per nanosecond; 0: unknown
  double pending = 0, current = 0;  ///< work of its chunks, and of the current chunk
  std::int64_t age_ns = 0;          ///< time since the current chunk began
  std::uint64_t grain = 1, visits = 0;
  std::uint64_t calls = 0;  ///< number of fetches; one in flight is not yet a visit
  std::uint64_t trial = 0;  ///< items of the next chunk while ways are tried, else 0
  std::uint64_t done = 0;
  double work_done = 0;
  std::int64_t busy_ns = 0;
  std::uint32_t way = 0, lost = 0;
};

/// A report for ranks other than that of the place.
struct PeerReport {
  PartReport report;
  std::uint64_t part = 0;  ///< index of the place among those of all ranks
};

/// The membership of a rank in a share (paper 004).
///
/// Chunks are fetched by fetch-and-add on a word in a window of the root. Ranks report each chunk
/// to the root, which holds the results and knows the missing items of a lost rank. It assigns
/// those, and with the scheduler "master" all items, on request. Messages of one rank arrive in
/// order.
class ShareGroup final : private GroupHub::Member {
 public:
  /// Implemented by the share. The thread that makes progress calls it, one call at a time. `part`
  /// is the index of a place among those of all ranks.
  class Listener {
   public:
    // On the root.
    virtual void on_taken(std::size_t part, const PartReport& report) noexcept = 0;
    virtual void on_done(std::size_t part, const PartReport& report, const ItemRange& range,
                         std::span<const std::byte> results) noexcept = 0;
    virtual void on_returned(std::size_t part, const PartReport& report, const ItemRange& range,
                             weir_status status, std::string_view why) noexcept = 0;
    virtual void on_request(std::size_t part, const PartReport& report) noexcept = 0;
    virtual void on_failure(Rank rank, weir_status status, std::string_view why) noexcept = 0;
    virtual void on_left(Rank rank) noexcept = 0;
    // On the other ranks.
    virtual void on_assigned(std::size_t part, const ItemRange& range) noexcept = 0;
    /// The number of taken items. Called after on_peer_report() for each report in the same
    /// message.
    virtual void on_counter(std::uint64_t taken) noexcept = 0;
    virtual void on_peer_report(const PeerReport& peer) noexcept = 0;
    virtual void on_complete(weir_status status, std::string_view why) noexcept = 0;
    virtual void on_rank_lost(Rank rank, const std::string& why) noexcept = 0;

   protected:
    ~Listener() = default;
  };

  /// A place of any rank.
  struct Place {
    Rank rank;
    std::string name;
  };

  /// Collective creation: if this rank fails before it has joined, the destructor reports the
  /// failure to all ranks.
  class CollectiveJoin {
   public:
    /// `what` must be the same on all ranks. Without a fabric there are no other ranks. The timeout
    /// applies to the creation on all ranks; 0, negative: none.
    CollectiveJoin(Fabric* fabric, std::string what, std::int64_t timeout_ns)
        : fabric_(fabric),
          what_(std::move(what)),
          deadline_ns_(sys::deadline_after(timeout_ns > 0 ? timeout_ns : -1)) {}
    CollectiveJoin(const CollectiveJoin&) = delete;
    CollectiveJoin& operator=(const CollectiveJoin&) = delete;
    ~CollectiveJoin();

    bool has_others() const noexcept { return fabric_ != nullptr; }

   private:
    friend class ShareGroup;
    Fabric* const fabric_;
    const std::string what_;
    const std::int64_t deadline_ns_;
    bool held_ = false;
  };

  /// Collective. `names` are those of this rank's places. Throws Error.
  ShareGroup(CollectiveJoin& join, const std::vector<std::string>& names);
  ShareGroup(const ShareGroup&) = delete;
  ShareGroup& operator=(const ShareGroup&) = delete;
  ~ShareGroup() { leave(); }

  /// Sets the listener. It first receives the messages that have arrived already.
  void listen(Listener& listener);
  /// Leaves the group. The listener is not called after this returns.
  void leave() noexcept;
  /// Leaves, also before listen(), because this rank cannot start. The share fails on all ranks.
  void abandon(const Outcome& why) noexcept;

  Port& port() const noexcept { return port_; }
  Rank rank() const noexcept { return rank_; }
  Rank ranks() const noexcept { return static_cast<Rank>(firsts_.size() - 1); }
  /// Returns the places of all ranks, in the order of ranks.
  const std::vector<Place>& places() const noexcept { return places_; }
  /// Returns the index of a rank's first place; for rank == ranks() the number of places.
  std::size_t first(Rank rank) const noexcept { return firsts_[rank]; }

  /// On the root: returns the counter.
  std::int64_t& word() const noexcept { return *static_cast<std::int64_t*>(window_->memory()); }
  /// On the other ranks: adds to the counter. Throws Error.
  void fetch_add(std::uint64_t count, Completion& done);

  // They throw Error.
  void send_taken(std::size_t part, const PartReport& report);
  void send_done(std::size_t part, const PartReport& report, const ItemRange& range,
                 std::span<const std::byte> results);
  void send_returned(std::size_t part, const PartReport& report, const ItemRange& range,
                     weir_status status, std::string_view why);
  void send_request(std::size_t part, const PartReport& report);
  void send_failure(weir_status status, std::string_view why);
  void send_left();
  void send_assignment(std::size_t part, const ItemRange& range);
  void send_status(Rank to, std::uint64_t taken, std::span<const PeerReport> reports);
  void send_complete(Rank to, weir_status status, std::string_view why);

 private:
  enum Kind : GroupHub::Kind {
    taken,
    done,
    returned,
    request,
    failure,
    left,
    assignment,
    status_update,
    complete
  };
  struct Head;

  void received(Rank from, GroupHub::Kind kind, std::uint64_t step,
                std::span<const std::byte> body) noexcept override;
  void hear_board(std::uint64_t taken, std::span<const std::byte> reports) noexcept;
  void receive_from_member(Rank from, GroupHub::Kind kind, const Head& head,
                           std::span<const std::byte> rest) noexcept;
  void lost(Rank rank, const std::string& why) noexcept override;
  void send(Rank to, Kind kind, const Head& head, std::span<const std::byte> rest);
  void join_group(const CollectiveJoin& join, const std::vector<std::string>& names);

  Fabric& fabric_;
  Port& port_;
  const Rank rank_;
  std::vector<Place> places_;
  std::vector<std::size_t> firsts_;
  std::optional<Window> window_;
  Listener* listener_ = nullptr;
  std::uint32_t number_ = 0;
};

/// The counter on the root, to which other ranks add as well.
class WindowCounter final : public ShareCounter {
 public:
  explicit WindowCounter(std::int64_t& word) : word_(word) {}
  std::uint64_t fetch_add(std::uint64_t count) noexcept override {
    return static_cast<std::uint64_t>(word_.fetch_add(static_cast<std::int64_t>(count)));
  }
  std::uint64_t read() const noexcept override { return static_cast<std::uint64_t>(word_.load()); }

 private:
  std::atomic_ref<std::int64_t> word_;
};

}  // namespace weir::rt
