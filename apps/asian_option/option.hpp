// Options on the average of an asset.
#pragma once

#include <cstddef>

namespace weir::apps {

/// An Asian option on an asset that follows dS = r S dt + v S dW. The average is that of `steps`
/// equal steps of time, the last at maturity; today's spot is not in it.
struct Option {
  double spot, strike;  ///< a floating strike is the asset at maturity, whatever `strike` is
  double rate;          ///< r, a year, compounded continuously
  double volatility;    ///< v, for a year
  double maturity;      ///< in years
  std::size_t steps, paths;
  bool call =
      true;  ///< pays when the asset's average, or with a floating strike the asset, is high
  bool floating = false;

  double work() const noexcept { return static_cast<double>(steps) * static_cast<double>(paths); }
};

/// An estimate of the value of an option today.
struct Valuation {
  double price = 0, standard_error = 0;
  double delta = 0, vega = 0, rho = 0;  ///< by spot, volatility and rate
  /// Of the same option on the geometric average, without a control, which has a closed form.
  double geometric = 0, geometric_error = 0;
};

/// The option on the geometric average instead: Kemna and Vorst, "A pricing method for options
/// based on average asset values" (1990), for steps; with a floating strike as an option to
/// exchange one asset for the other (Margrabe 1978).
double geometric_price(const Option& option);

/// Returns the approximate probability that the option pays; 1 where it is certain.
double geometric_odds(const Option& option);

}  // namespace weir::apps
