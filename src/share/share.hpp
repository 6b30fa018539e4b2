// Shares: one index space over many places.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include <weir/share.h>

#include "base/handle.hpp"
#include "base/signal.hpp"
#include "base/threads.hpp"
#include "share/share_group.hpp"
#include "share/share_part.hpp"
#include "stream/place_set.hpp"
#include "stream/waiting.hpp"

namespace weir::rt {

class Registry;
class ShareMember;
class ShareRoot;

/// Hands out chunks until there are none left.
///
/// The thread that completes a chunk fetches the next one for its place; a share has no thread and
/// no lock of its own. Places publish their state in atomics. A place whose policy takes nothing is
/// idle until a chunk completes anywhere. A counter of chunks and active threads detects the end:
/// the thread that brings it to 0 completes the share.
///
/// There are three modes. In one process a share has neither ShareRoot nor ShareMember. With
/// several ranks (ADR 34) each has a share of the same items. Rank 0, the root, takes its chunks
/// like one process and has a ShareRoot, which serves the places of other ranks. Any other rank has
/// a ShareMember, which fetches its chunks from the root and reports them to it.
class Share : private ShareGroup::Listener {
 public:
  /// Enqueues the actions of a chunk. Throws Error.
  using Enqueue = std::function<weir_event(const weir_chunk&)>;

  /// Collective with a fabric.
  Share(Registry& registry, const weir_share_options& options, std::string name, Enqueue enqueue,
        ShareGroup::CollectiveJoin& join);
  Share(const Share&) = delete;
  Share& operator=(const Share&) = delete;
  ~Share() override;
  /// Starts the share after construction: other threads call it from then on. Throws Error.
  void start();
  /// Logs, once each, failures that the program has not seen. Any thread.
  void report_unreported() noexcept;
  /// Waits until the share is complete and no other thread calls it.
  void finish() noexcept;

  /// Returns a description of the options that must be the same on all ranks.
  static std::string describe(const weir_share_options& options);

  Registry& registry() const noexcept { return state_.registry; }
  const std::string& name() const noexcept { return state_.name; }

  // Called by the program. They throw Error.
  WaitResult wait(std::int64_t timeout_ns);
  void cancel();
  /// Waits for the end of the share until the time-out, then cancels the rest.
  void finish_or_cancel(std::int64_t timeout_ns) noexcept;
  void get_info(weir_share_info& info, weir_share_part* parts, std::size_t count);

 private:
  void begin(const weir_share_options& options, ShareGroup::CollectiveJoin& join);
  void on_message(Rank from, ShareMessage::Kind kind, const ShareMessage& message,
                  std::span<const std::byte> rest) noexcept override;
  void on_rank_lost(Rank rank, const std::string& why) noexcept override;

  // On any thread that has a count of `pending`.
  void advance(std::size_t part, bool forced) noexcept;
  void advance(LocalPart& part, bool forced) noexcept;
  ShareChunk* fetch_chunk(LocalPart& part, bool forced) noexcept;
  static void on_fetched(LocalPart& part, ShareChunk* chunk) noexcept;
  /// Enqueues a chunk, whose count ends with it.
  void hand_out(ShareChunk& chunk) noexcept;
  static void on_chunk_end(Waiter& chunk, weir_status status, const FailureRef& failure);
  /// Gives chunks to the places that were idle, after a chunk has completed.
  void wake_idle() noexcept;
  /// Cancels the chunks that have not started on this rank. Throws Error.
  void cancel_chunks();
  /// Releases the caller's count. The thread that releases the last one gives remaining items to a
  /// place, or completes the share.
  void release() noexcept;
  void account(ShareChunk& chunk, weir_status status, const FailureRef& failure) noexcept;
  bool any_place_takes_more() noexcept;
  bool wait_until_over(std::int64_t deadline_ns);

  ShareState state_;
  const std::string chunks_;
  const Enqueue enqueue_;
  const bool one_sided_;
  const PlaceSet places_;
  std::unique_ptr<ShareGroup> group_;    ///< null: one process
  std::size_t first_ = 0;                ///< index of the first place of this rank
  std::deque<LocalPart> own_;            // a deque: elements do not move
  std::unique_ptr<ShareRoot> root_;      ///< on the root
  std::unique_ptr<ShareMember> member_;  ///< on the other ranks
  std::int64_t started_ns_ = 0;
  sys::Atomic<bool> cancelled_{false};  ///< the actions of chunks are cancelled, too
  Signal complete_signal_;
};

}  // namespace weir::rt

/// The public handle.
struct weir_share final : weir::rt::Handle<weir_share>, weir::rt::Share {
  static constexpr const char* kNoun = "share";
  using Share::Share;
  ~weir_share() override { finish(); }
};
