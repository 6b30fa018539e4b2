// Clusters of points.
#pragma once

#include <memory>

#include "common/workload.hpp"

namespace weir::apps {

/// Lloyd's iteration as Rodinia's kmeans: the first points are the first centres.
std::unique_ptr<Application> make_kmeans();

}  // namespace weir::apps
