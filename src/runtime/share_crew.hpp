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
/// Chunks are fetched by adding to a word in a window of rank 0, which is also told of all of them:
/// it has the results, and knows which items are missing when a rank is lost. It gives out those,
/// and with the scheduler "master" all, to who asks. What a rank says arrives in that order.
class ShareCrew final : private GroupHub::Member {
 public:
  /// The share. Calls come from the thread that makes progress, one at a time. `part` is the number
  /// of a place among those of all ranks.
  class Listener {
   public:
    // At rank 0.
    virtual void heard_took(std::size_t part, const PartReport& report) noexcept = 0;
    virtual void heard_done(std::size_t part, const PartReport& report, const ItemRange& range,
                            std::span<const std::byte> results) noexcept = 0;
    virtual void heard_returned(std::size_t part, const PartReport& report, const ItemRange& range,
                                weir_status status, std::string_view why) noexcept = 0;
    virtual void heard_ask(std::size_t part, const PartReport& report) noexcept = 0;
    virtual void heard_failure(Rank rank, weir_status status, std::string_view why) noexcept = 0;
    virtual void heard_left(Rank rank) noexcept = 0;
    // At the others.
    virtual void heard_give(std::size_t part, const ItemRange& range) noexcept = 0;
    /// How many items are taken, after heard_peer() for each report that came with it.
    virtual void heard_taken(std::uint64_t taken) noexcept = 0;
    virtual void heard_peer(const PeerReport& peer) noexcept = 0;
    virtual void heard_over(weir_status status, std::string_view why) noexcept = 0;
    virtual void lost_rank(Rank rank, const std::string& why) noexcept = 0;

   protected:
    ~Listener() = default;
  };

  /// A place of any rank.
  struct Place {
    Rank rank;
    std::string name;
  };

  /// How a rank meets the others: whatever happens to it before it has joined, they are told.
  class Meeting {
   public:
    /// `what` has to be the same on all ranks. fabric null: there are no others. The timeout is of
    /// all that they do together until they have joined; 0, negative: none.
    Meeting(Fabric* fabric, std::string what, std::int64_t timeout_ns)
        : fabric_(fabric),
          what_(std::move(what)),
          deadline_ns_(sys::deadline_after(timeout_ns > 0 ? timeout_ns : -1)) {}
    Meeting(const Meeting&) = delete;
    Meeting& operator=(const Meeting&) = delete;
    ~Meeting();

    bool has_others() const noexcept { return fabric_ != nullptr; }

   private:
    friend class ShareCrew;
    Fabric* const fabric_;
    const std::string what_;
    const std::int64_t deadline_ns_;
    bool held_ = false;
  };

  /// Collective. `names` are those of this rank's places. Throws Error.
  ShareCrew(Meeting& meeting, const std::vector<std::string>& names);
  ShareCrew(const ShareCrew&) = delete;
  ShareCrew& operator=(const ShareCrew&) = delete;
  ~ShareCrew() { leave(); }

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
  void say_took(std::size_t part, const PartReport& report);
  void say_done(std::size_t part, const PartReport& report, const ItemRange& range,
                std::span<const std::byte> results);
  void say_returned(std::size_t part, const PartReport& report, const ItemRange& range,
                    weir_status status, std::string_view why);
  void say_ask(std::size_t part, const PartReport& report);
  void say_failure(weir_status status, std::string_view why);
  void say_left();
  void say_give(std::size_t part, const ItemRange& range);
  void say_board(Rank to, std::uint64_t taken, std::span<const PeerReport> reports);
  void say_over(Rank to, weir_status status, std::string_view why);

 private:
  enum Kind : GroupHub::Kind { took, done, returned, ask, failure, left, give, board, over };
  struct Head;

  void heard(Rank from, GroupHub::Kind kind, std::uint64_t step,
             std::span<const std::byte> body) noexcept override;
  void hear_board(std::uint64_t taken, std::span<const std::byte> reports) noexcept;
  void hear_member(Rank from, GroupHub::Kind kind, const Head& head,
                   std::span<const std::byte> rest) noexcept;
  void lost(Rank rank, const std::string& why) noexcept override;
  void say(Rank to, Kind kind, const Head& head, std::span<const std::byte> rest);
  void meet(const Meeting& meeting, const std::vector<std::string>& names);

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
