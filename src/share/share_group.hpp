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
#include "fabric/group_hub.hpp"
#include "fabric/window.hpp"
#include "share/chunk_source.hpp"
#include "share/range_set.hpp"

namespace weir::rt {

class Collectives;

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

  /// Publishes the speed and load of the place, of which this is the newest report.
  void publish(PlaceStatus& status, std::int64_t now_ns) const noexcept;
};

/// A report for ranks other than that of the place.
struct PeerReport {
  PartReport report;
  std::uint64_t part = 0;  ///< index of the place among those of all ranks
};

/// A message between the ranks of a share.
struct ShareMessage {
  enum Kind : GroupHub::Kind {
    // To the root.
    taken,     ///< a place has taken a chunk
    done,      ///< items are complete; their results follow
    returned,  ///< a place was lost with these items; the reason follows
    request,   ///< a place found no items, and waits for an assignment
    failure,   ///< the share has failed; the reason follows
    leave,     ///< the rank takes no more chunks
    // To the other ranks.
    assignment,     ///< items for a place
    status_update,  ///< `range.first` items are taken; reports of places follow (PeerReport)
    complete        ///< the share has ended with the status; the reason follows
  };

  PartReport report{};
  ItemRange range{0, 0};
  std::uint32_t part = 0;  ///< index of the place among those of all ranks
  weir_status status = WEIR_STATUS_OK;
};

/// The membership of a rank in a share (paper 004).
///
/// Chunks are fetched by fetch-and-add on a word in a window of the root. Ranks report each chunk
/// to the root, which holds the results and knows the missing items of a lost rank. It assigns
/// those, and with the scheduler "master" all items, on request. Messages of one rank arrive in
/// order.
class ShareGroup final : private GroupHub::Member {
 public:
  /// The thread that makes progress calls it, one call at a time.
  class Listener {
   public:
    virtual ~Listener() = default;
    /// Receives a message for this rank. `part` is a place of the sender or, on ranks other than
    /// the root, of this rank.
    virtual void on_message(Rank from, ShareMessage::Kind kind, const ShareMessage& message,
                            std::span<const std::byte> rest) noexcept = 0;
    virtual void on_rank_lost(Rank rank, const std::string& why) noexcept = 0;
  };

  /// A place of any rank.
  struct Place {
    Rank rank;
    std::string name;
  };

  /// What a share uses of a fabric.
  struct Services {
    Port& port;
    Collectives& collectives;
    GroupHub& hub;
  };

  /// Collective creation: if this rank fails before it has joined, the destructor reports the
  /// failure to all ranks.
  class CollectiveJoin {
   public:
    /// `what` must be the same on all ranks. Without a fabric there are no other ranks. The timeout
    /// applies to the creation on all ranks; 0, negative: none.
    CollectiveJoin(const std::optional<Services>& fabric, std::string what, std::int64_t timeout_ns)
        : fabric_(fabric),
          what_(std::move(what)),
          deadline_ns_(sys::deadline_after(timeout_ns > 0 ? timeout_ns : -1)) {}
    CollectiveJoin(const CollectiveJoin&) = delete;
    CollectiveJoin& operator=(const CollectiveJoin&) = delete;
    ~CollectiveJoin();

    bool has_others() const noexcept { return fabric_.has_value(); }

   private:
    friend class ShareGroup;
    const std::optional<Services> fabric_;
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
  std::int64_t* word() const noexcept { return static_cast<std::int64_t*>(window_->memory()); }
  /// On the other ranks: adds to the counter. Throws Error.
  void fetch_add(std::uint64_t count, Completion& done);

  /// Sends a message, and what follows it. send() throws Error; send_or_drop() drops a rank that
  /// cannot receive the message, for the reason `why`, and returns false.
  void send(Rank to, ShareMessage::Kind kind, const ShareMessage& message,
            std::span<const std::byte> rest = {});
  bool send_or_drop(Rank to, ShareMessage::Kind kind, const ShareMessage& message,
                    std::string_view reason, const char* why) noexcept;
  /// Return a reason as it follows a message, and back.
  static std::span<const std::byte> as_bytes(std::string_view text) noexcept {
    return std::as_bytes(std::span(text.data(), text.size()));
  }
  static std::string_view as_text(std::span<const std::byte> bytes) noexcept {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

 private:
  void received(Rank from, GroupHub::Kind kind, std::uint64_t step,
                std::span<const std::byte> body) noexcept override;
  void lost(Rank rank, const std::string& why) noexcept override;

  const Services fabric_;
  Port& port_;
  const Rank rank_;
  std::vector<Place> places_;
  std::vector<std::size_t> firsts_;
  std::optional<Window> window_;
  Listener* listener_ = nullptr;
  std::uint32_t number_ = 0;
};

}  // namespace weir::rt
