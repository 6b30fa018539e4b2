// Where sequences of genes look alike.
#pragma once

#include <memory>

#include "common/workload.hpp"

namespace weir::apps {

/// Aligns queries with targets by a pipeline that keeps their order.
std::unique_ptr<Application> make_gene_alignment();

}  // namespace weir::apps
