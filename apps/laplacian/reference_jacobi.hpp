// Jacobi's iteration done plainly, to compare with.
#pragma once

#include <vector>

#include "laplacian/problem.hpp"

namespace weir::apps {

/// Returns the cells, x fastest, after all iterations on the calling thread, in the arithmetic of
/// T.
template <class T>
std::vector<T> reference_jacobi(const JacobiProblem& problem);

extern template std::vector<float> reference_jacobi(const JacobiProblem& problem);
extern template std::vector<double> reference_jacobi(const JacobiProblem& problem);

}  // namespace weir::apps
