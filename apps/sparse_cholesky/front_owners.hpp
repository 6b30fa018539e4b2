// Which place works on which front.
#pragma once

#include <cstddef>
#include <vector>

#include "common/lanes.hpp"
#include "sparse_cholesky/assembly_tree.hpp"

namespace weir::apps {

/// Returns the place of each front: whole subtrees to places, in proportion to their cores, and
/// each front above them to a place that has one of its children.
std::vector<std::size_t> deal_fronts(const AssemblyTree& tree, const Lanes& lanes);

}  // namespace weir::apps
