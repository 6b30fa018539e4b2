// Guesses the word that the user meant to type.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weir::cli {

/// Returns " (did you mean 'x'?)" for the candidate nearest to `wrong`, "" when none is near.
std::string did_you_mean(std::string_view wrong, const std::vector<std::string>& candidates);

}  // namespace weir::cli
