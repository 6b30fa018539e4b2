// How many items a place takes at a visit to the counter.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "sched/items.hpp"

namespace weir::rt {

/// What all places know of one of them.
struct SharePeer {
  double speed = 0;         ///< work in a nanosecond, 0: not known yet
  double free_ns = 0;       ///< until it is done with the chunks it has
  std::uint64_t grain = 1;  ///< fewest items at which it has this speed
  std::uint64_t visits = 0;
  bool lost = false;
};

/// What a place knows when it asks for a chunk.
struct ShareView {
  const Items& items;
  std::uint64_t next;       ///< an item that nobody has
  std::uint64_t remaining;  ///< how many there are
  double remaining_work;    ///< theirs
  std::span<const SharePeer> peers;
  std::size_t self;
};

/// Decides how large chunks are. Without a state of its own: any thread, several at once.
class ChunkPolicy {
 public:
  virtual ~ChunkPolicy() = default;
  /// Returns how many of the items that are left, which is not 0, place `view.self` takes; 0: none,
  /// the others will have done them sooner.
  virtual std::uint64_t count(const ShareView& view) const noexcept = 0;
  /// Whether the policy uses measured speeds, so that alternative ways to run a chunk are tried.
  virtual bool uses_measured_speeds() const noexcept { return false; }
  /// Whether chunks are so short that a place fetches the next one before it has ended the last.
  virtual bool fetches_ahead() const noexcept { return false; }
  /// Whether it looks at the peers, and not only at how many there are.
  virtual bool uses_peer_speeds() const noexcept { return false; }
};

/// A policy as the program names it.
struct ChunkPolicyEntry {
  const char* name;  ///< with its arguments
  const char* summary;
};
std::span<const ChunkPolicyEntry> chunk_policies() noexcept;

/// Makes the policy that a text like "fixed:16" names. Throws Error{not_found} with the nearest
/// name, or Error{invalid_argument} for wrong arguments.
std::unique_ptr<ChunkPolicy> make_chunk_policy(const std::string& text, std::size_t places);

}  // namespace weir::rt
