// The ranks that work on one share.
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

/// What a rank says of one of its places.
struct PartReport {
  double speed = 0;                 ///< work in a nanosecond, 0: not known yet
  double pending = 0, current = 0;  ///< work of its chunks, and of the one it is at
  std::int64_t age_ns = 0;          ///< since that began
  std::uint64_t grain = 1, visits = 0;
  std::uint64_t calls = 0;  ///< for chunks: one that is under way will be a visit
  std::uint64_t trial = 0;  ///< items of the next chunk while ways are tried, else 0
  std::uint64_t done = 0;
  double work_done = 0;
  std::int64_t busy_ns = 0;
  std::uint32_t way = 0, lost = 0;
};

/// A report for other ranks than that of the place.
struct PeerReport {
  PartReport report;
  std::uint64_t part = 0;  ///< number of the place among those of all ranks
};

/// A rank's membership in a share (paper 004).
///
/// Chunks are fetched by fetch-and-add on a word in a window of the root. Ranks report each chunk
/// to the root, which holds the results and knows the missing items of a lost rank. It assigns
/// those, and with the scheduler "master" all items, on request. Messages of one rank arrive in
/// order.
class ShareGroup final : private GroupHub::Member {
 public:
  /// The share. Calls come from the thread that makes progress, one at a time. `part` is the number
  /// of a place among those of all ranks.
  class Listener {
   public:
    // At rank 0.
    virtual void on_taken(std::size_t part, const PartReport& report) noexcept = 0;
    virtual void on_done(std::size_t part, const PartReport& report, const ItemRange& range,
                         std::span<const std::byte> results) noexcept = 0;
    virtual void on_returned(std::size_t part, const PartReport& report, const ItemRange& range,
                             weir_status status, std::string_view why) noexcept = 0;
    virtual void on_request(std::size_t part, const PartReport& report) noexcept = 0;
    virtual void on_failure(Rank rank, weir_status status, std::string_view why) noexcept = 0;
    virtual void on_left(Rank rank) noexcept = 0;
    // At the others.
    virtual void on_assigned(std::size_t part, const ItemRange& range) noexcept = 0;
    /// How many items are taken, after on_peer_report() for each report that came with it.
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
    /// `what` has to be the same on all ranks. fabric null: there are no others. The timeout is of
    /// all that they do together until they have joined; 0, negative: none.
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

  /// Begins to hear, also what was said before.
  void listen(Listener& listener);
  /// When it returns the listener hears nothing any more.
  void leave() noexcept;
  /// Leaves, also before listen(), because this rank cannot begin. The share fails on all.
  void abandon(const Outcome& why) noexcept;

  Port& port() const noexcept { return port_; }
  Rank rank() const noexcept { return rank_; }
  Rank ranks() const noexcept { return static_cast<Rank>(firsts_.size() - 1); }
  /// Those of all ranks, in their order.
  const std::vector<Place>& places() const noexcept { return places_; }
  /// The number of a rank's first place; also behind the last rank.
  std::size_t first(Rank rank) const noexcept { return firsts_[rank]; }

  /// At rank 0: the counter.
  std::int64_t& word() const noexcept { return *static_cast<std::int64_t*>(window_->memory()); }
  /// At the others: adds to it. Throws Error.
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

/// The counter where it lives, which other ranks add to as well.
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
