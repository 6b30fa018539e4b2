// A tree whose nodes go through a tunnel of a device: the code of a thread, on the host and in
// CUDA.
#pragma once

#include <weir/device_tunnel.hpp>

namespace tree {

using weir::device::Count;

struct Node {
  unsigned depth, path;
};

constexpr unsigned kDeepest = 30;

/// What the threads share.
template <class Memory>
struct Walk {
  weir::device::Tunnel<Node, Memory> nodes;
  weir::device::Ends<Memory> ends;
  unsigned depth;                  ///< of the leaves
  typename Memory::Word* arrived;  ///< for each leaf, how often
};

/// Puts the root, as a source.
template <class Memory, class Group>
WEIR_DEVICE_CODE void plant(const Walk<Memory>& walk, const Group& group, unsigned site,
                            bool first) {
  if (first) walk.ends.tally(site).create(1);
  bool left = first;
  while (group.gather(left).count > 0) left = !walk.nodes.put(group, Node{0, 0}, left) && left;
  if (first) walk.ends.close();
}

/// Works until the end on nodes of the tunnel, and on those that found no room there.
template <class Memory, class Group>
WEIR_DEVICE_CODE void climb(const Walk<Memory>& walk, const Group& group, unsigned site) {
  weir::device::Tally<Memory>& tally = walk.ends.tally(site);
  Node kept[kDeepest + 2];
  unsigned count = 0;
  for (;;) {
    Node node = {0, 0};
    bool has = count > 0;
    if (has) node = kept[--count];
    has = walk.nodes.get(group, node, !has) || has;
    if (group.gather(has).count == 0) {
      if (group.gather(!walk.ends.complete()).count == 0) return;
      continue;
    }
    const bool parent = has && node.depth < walk.depth;
    if (has && !parent) Memory::add(walk.arrived[node.path], 1);
    if (parent) tally.create(2);
    for (unsigned side = 0; side < 2; ++side) {
      const Node child = {node.depth + 1, 2 * node.path + side};
      if (!walk.nodes.put(group, child, parent) && parent) kept[count++] = child;
    }
    if (has) tally.finish(1);
  }
}

}  // namespace tree
