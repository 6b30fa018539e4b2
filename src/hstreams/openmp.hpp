// OpenMP of the program, if it has one.
#pragma once

namespace weir::hs {

/// The threads that OpenMP takes for a region on the calling thread; 0 without OpenMP.
int openmp_threads();
void set_openmp_threads(int count);

}  // namespace weir::hs
