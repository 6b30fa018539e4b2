// Chunk policies: how many items a place takes at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "share/items.hpp"

namespace weir::rt {

/// The state of one place of a share, as all places see it.
struct SharePeer {
  double speed = 0;         ///< work per nanosecond; 0: unknown
  double free_ns = 0;       ///< time until it has completed its chunks
  std::uint64_t grain = 1;  ///< fewest items per chunk at which it reaches this speed
  std::uint64_t visits = 0;
  bool lost = false;
};

/// The input of a policy: what a place knows when it asks for a chunk.
struct ShareView {
  const Items& items;
  std::uint64_t next;       ///< first item that no place has taken
  std::uint64_t remaining;  ///< number of items that no place has taken
  double remaining_work;    ///< work of these items
  std::span<const SharePeer> peers;
  std::size_t self;
};

/// Decides the size of chunks. Stateless: any thread, several at once.
class ChunkPolicy {
 public:
  virtual ~ChunkPolicy() = default;
  /// Returns how many of the remaining items, of which there is at least one, place `view.self`
  /// takes; 0: none, because the others will complete them sooner.
  virtual std::uint64_t count(const ShareView& view) const noexcept = 0;
  /// Whether the policy uses measured speeds, so that the share tries alternative ways to run a
  /// chunk.
  virtual bool uses_measured_speeds() const noexcept { return false; }
  /// Whether chunks are so short that a place fetches the next one before it completes the last.
  virtual bool fetches_ahead() const noexcept { return false; }
  /// Whether the policy reads the peers, and not only their number, or the remaining work.
  virtual bool uses_peer_speeds() const noexcept { return false; }
};

/// A policy as the program names it.
struct ChunkPolicyEntry {
  const char* name;  ///< name and arguments
  const char* summary;
};
std::span<const ChunkPolicyEntry> chunk_policies() noexcept;

/// Makes the policy that a text such as "fixed:16" names. Throws Error{not_found} with the nearest
/// name, or Error{invalid_argument} for invalid arguments.
std::unique_ptr<ChunkPolicy> make_chunk_policy(const std::string& text, std::size_t places);

}  // namespace weir::rt
