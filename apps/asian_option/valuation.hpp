// Computes the value of an option from sums over paths.
#pragma once

#include <cstddef>
#include <span>

#include "asian_option/option.hpp"
#include "asian_option/path_kernels.hpp"

namespace weir::apps {

/// Adds up the groups of an option in their order, and makes estimates of the sums. With `control`
/// the price is corrected by the error of the geometric average's, which has a closed form (Kemna
/// and Vorst 1990), times the factor that leaves the least variance.
Valuation valuate(const Option& option, std::span<const PathSums> groups, bool control);

/// How far estimates are from known values, in standard errors; NaN where an estimate is NaN.
struct Deviations {
  double worst = 0;   ///< of the options that enough samples pay
  double seldom = 0;  ///< of the others together, as one alone is not significant
};

/// Compares the options on the geometric average with their closed form, one `Valuation` each.
Deviations geometric_deviations(std::span<const Option> options, std::span<const Valuation> values);

/// Returns the limit that the worst of a number of correct estimates exceeds as rarely as a single
/// one exceeds 5.
double worst_of(std::size_t estimates);

/// A deviation in standard errors; 0 for one that rounding explains at this scale.
double in_errors(double deviation, double error, double scale);

}  // namespace weir::apps
