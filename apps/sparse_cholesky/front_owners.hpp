// Assigns fronts to places.
#pragma once

#include <cstddef>
#include <vector>

#include "common/app_streams.hpp"
#include "sparse_cholesky/assembly_tree.hpp"

namespace weir::apps {

/// Returns the place of each front: whole subtrees to places, in proportion to their cores, and
/// each front above them to a place that has one of its children.
std::vector<std::size_t> deal_fronts(const AssemblyTree& tree, const AppStreams& app_streams);

}  // namespace weir::apps
