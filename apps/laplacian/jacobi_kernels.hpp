// The kernel of Jacobi's iteration.
#pragma once

#include <cstddef>

#include <weir/weir.hpp>

namespace weir::apps {

/// Floating-point operations for a cell and step.
constexpr double jacobi_operations(unsigned dimensions) { return 2.0 * dimensions + 3; }

/// Registers the kernel for numbers of T. Operands: the cells that are made, and these with a cell
/// around them; scalars: cells in x, elements from row to row and from plane to plane in both, the
/// rate, and whether to write past the cache.
template <class T>
weir::Kernel make_jacobi(const weir::Runtime& runtime, unsigned dimensions);

/// Registers the kernel that makes several steps in one sweep over memory, for host cores.
/// Operands: as above, with so many slices (planes, or lines in two dimensions) before and behind
/// as there are steps, or as there are up to the border; the further scalars: how many steps, how
/// many slices before, and the first slice of the grid and the one behind its last, counted from
/// the first one that is made.
template <class T>
weir::Kernel make_jacobi_steps(const weir::Runtime& runtime, unsigned dimensions);

}  // namespace weir::apps
