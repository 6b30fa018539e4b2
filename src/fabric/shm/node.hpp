// The ranks of a fabric that share memory with this one, found over another link.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "fabric/link.hpp"
#include "fabric/shm/shm_link.hpp"
#include "fabric/wire_up.hpp"

namespace weir::rt {

/// The ranks of a node: those that have opened one segment.
struct Node {
  std::unique_ptr<ShmLink> link;           ///< to the other ranks of the node; null: there are none
  std::vector<std::optional<Rank>> local;  ///< by rank: its number in `link`, if it is in the node
  EarlyPackets early;                      ///< to be received before those that `link` receives

  /// Returns whether all ranks of the fabric are in the node.
  bool has_all() const noexcept;
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
