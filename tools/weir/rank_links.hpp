// What connects the ranks that a launcher has started.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace weir::cli {

/// Joins the ranks and returns a list with {rank, process, links} of each, where `links` has what
/// connects it to each rank; null on all ranks except 0. Throws weir::Error.
nlohmann::ordered_json links_of_ranks();

/// Returns the list as text: a line for each rank.
std::string page_of_links(const nlohmann::ordered_json& ranks);

}  // namespace weir::cli
