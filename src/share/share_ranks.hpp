// A share over ranks: what rank 0, the root, does for the other ranks, and they do for it.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "fabric/port.hpp"
#include "share/share_part.hpp"

namespace weir::rt {

/// A place of another rank, as the root sees it.
struct RemotePart {
  RemotePart(ShareState& state, std::uint32_t at, Rank of_rank)
      : index(at), rank(of_rank), status(state.statuses[at]), peers(state.statuses.size()) {}

  PartReport report(std::int64_t now_ns) noexcept WEIR_EXCLUDES(lock);

  const std::uint32_t index;  ///< among the places of all ranks
  const Rank rank;
  PlaceStatus& status;

  SpinLock lock;
  PartReport last WEIR_GUARDED_BY(lock);  ///< except `visits` and `lost`, which only rise
  /// The place has sent a request; it has a count in PendingCount.
  bool asked WEIR_GUARDED_BY(lock) = false, counted WEIR_GUARDED_BY(lock) = true;
  std::uint64_t changed WEIR_GUARDED_BY(lock) = 0;     ///< number of the last change of its report
  std::vector<SharePeer> peers WEIR_GUARDED_BY(lock);  ///< for next_size()
  // Of the thread that receives messages.
  std::uint64_t round = 0;  ///< of its rank, in which it last took a chunk
  std::uint64_t ended = 0;  ///< completed chunks that it has reported
};

/// Assigns items to places of other ranks that have sent a request, records what they complete, and
/// ends the share on all ranks. Each of these places has a count until it has sent a request and
/// all results.
class ShareRoot {
 public:
  /// Takes the counts. `own` are the places of this rank. With `one_sided` it sends status
  /// broadcasts if the policy uses them.
  ShareRoot(ShareState& state, ShareGroup& group, std::deque<LocalPart>& own, bool one_sided);

  std::deque<RemotePart>& parts() noexcept { return parts_; }
  /// Assigns items to a place of another rank if it has sent a request and there are any, at least
  /// one item if `forced`. Any thread that has a count.
  void assign(std::size_t part, bool forced) noexcept { assign(remote(part), forced); }
  /// Called when nothing is pending: items that are not complete belonged to lost ranks, and are
  /// returned.
  void find_missing() noexcept;
  /// Reports the end to the other ranks, and takes a count for each until it has left. Returns
  /// whether this was the first call. Any thread that has a count.
  bool dismiss() noexcept;

  // By the thread that receives messages, which has a count.
  void take(Rank from, ShareMessage::Kind kind, const ShareMessage& message,
            std::span<const std::byte> rest) noexcept;
  /// Removes a lost rank, whose items idle places may take.
  void take_loss(Rank rank, const std::string& why) noexcept;

 private:
  struct Peer {
    bool departed = false, awaited = false;
  };
  /// What a rank knows of other places. A round starts when a place takes its second chunk in the
  /// last one; then the rank is sent a status broadcast.
  struct Round {
    std::uint64_t number = 0;
    std::uint64_t reported_change = 0;  ///< the last change in a broadcast to the rank
  };

  RemotePart& remote(std::size_t part) noexcept { return parts_[part - own_.size()]; }
  void assign(RemotePart& part, bool forced) noexcept;
  void update(RemotePart& part, const PartReport& report, bool asks) noexcept;
  void settle(RemotePart& part) noexcept;
  void remove_peer(Rank rank, bool lost) noexcept;
  void send_status(RemotePart& taker) noexcept;
  void note_change(RemotePart& part) noexcept WEIR_REQUIRES(part.lock);
  void end_chunk(RemotePart& part, bool complete, const ShareMessage& message,
                 std::span<const std::byte> rest) noexcept;

  ShareState& state_;
  ShareGroup& group_;
  std::deque<LocalPart>& own_;
  std::deque<RemotePart> parts_;  // a deque: elements do not move
  const bool sends_status_;
  sys::Atomic<std::uint64_t> changes_{0};  ///< number of changes of reports
  sys::Atomic<bool> dismissed_{false};
  std::vector<Round> rounds_;  ///< by rank; of the thread that receives messages
  SpinLock peers_lock_;
  std::vector<Peer> peers_ WEIR_GUARDED_BY(peers_lock_);  ///< by rank
};

/// Fetches chunks from the counter of the root, and reports each completed chunk to it. A place for
/// which the counter has no items sends a request, and waits for an assignment.
class ShareMember {
 public:
  /// Called when the fetch of a place has ended, with its chunk, or null. The callee returns the
  /// count of the fetch.
  using OnFetched = void (*)(LocalPart& part, ShareChunk* chunk) noexcept;

  /// Takes a count until the root reports the end, or is lost. `own` are the places of this rank.
  ShareMember(ShareState& state, ShareGroup& group, std::deque<LocalPart>& own, bool one_sided,
              OnFetched on_fetched);

  /// Fetches a chunk if the place should have one. Returns null if it should not, if there are no
  /// items, and if the fetch ends later, by on_fetched(). Any thread that has a count.
  ShareChunk* fetch_for(LocalPart& part) noexcept;
  /// Makes items that the place has fetched, or that the root has assigned, a chunk. Returns null
  /// if the place cannot run it. Any thread that has a count.
  ShareChunk* accept(LocalPart& part, const ItemRange& range) noexcept;
  /// Reports a completed chunk, or one that the place returns.
  void send_end(LocalPart& part, const ItemRange& range, weir_status status,
                const FailureRef& failure) noexcept;
  /// Reports that the share has failed here, once. Any thread that has a count.
  void announce_failure() noexcept;

  // By the thread that receives messages, which has a count.
  /// Processes a message that assigns nothing.
  void take(ShareMessage::Kind kind, const ShareMessage& message,
            std::span<const std::byte> rest) noexcept;
  /// The root is lost.
  void take_loss(const std::string& why) noexcept;

 private:
  /// A fetch-and-add on the counter of the root. If it completes before start() has returned, the
  /// starting thread handles the result.
  struct CounterFetch final : Completion {
    CounterFetch(ShareMember& of, LocalPart& of_part) : member(of), part(of_part) {}
    void completed(std::int64_t found, const Outcome& ended) noexcept override;

    ShareMember& member;
    LocalPart& part;
    std::uint64_t count = 0, old = 0;
    Outcome outcome;
    sys::Atomic<bool> one_side_done{false};  ///< start or completion has happened
  };

  ShareChunk* fetched(CounterFetch& fetch) noexcept;
  void send(LocalPart& part, ShareMessage::Kind kind, const ItemRange& range = {0, 0},
            weir_status status = WEIR_STATUS_OK, std::span<const std::byte> rest = {}) noexcept;
  void detach() noexcept;
  void receive_status(std::uint64_t taken, std::span<const std::byte> reports) noexcept;

  ShareState& state_;
  ShareGroup& group_;
  const bool one_sided_;
  const OnFetched on_fetched_;
  const std::size_t first_;           ///< index of the first place of this rank
  std::deque<CounterFetch> fetches_;  ///< by place of this rank
  sys::Atomic<bool> attached_{true}, announced_{false};
};

}  // namespace weir::rt
