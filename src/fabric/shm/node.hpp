// The ranks of a fabric that share memory with this one, found over another link.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "fabric/link.hpp"
#include "fabric/shm/shm_link.hpp"

namespace weir::rt {

/// The ranks of a node: those that have opened one segment.
struct Node {
  /// A packet that arrived while the node was being found.
  using Packet = std::pair<Rank, std::vector<std::byte>>;

  std::unique_ptr<ShmLink> link;           ///< to the other ranks of the node; null: there are none
  std::vector<std::optional<Rank>> local;  ///< by rank: its number in `link`, if it is in the node
  std::deque<Packet> early;                ///< to be received before those that `link` receives
};

/// Finds the node of this rank and opens its segment. All ranks call it, before the first packet.
///
/// Ranks are candidates for one node if they run on one system, in one table of processes, as one
/// user. The lowest candidate creates the segment, and the others open the file of its descriptor
/// in /proc. A candidate that cannot open it is not in the node. Candidates with the same `most`
/// form nodes of at most that many ranks, in the order of their numbers.
///
/// Throws Error if a rank has died, or has not answered within a time.
Node find_node(Link& link, Rank most, std::int64_t within_ns);

}  // namespace weir::rt
