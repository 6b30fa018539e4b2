#include "asian_option/valuation.hpp"

#include <algorithm>
#include <cmath>

namespace weir::apps {

namespace {

PathSums total(std::span<const PathSums> groups) {
  PathSums sum{};
  for (const PathSums& group : groups) {
    sum.payoff += group.payoff;
    sum.payoff_squared += group.payoff_squared;
    sum.control += group.control;
    sum.control_squared += group.control_squared;
    sum.payoff_control += group.payoff_control;
    sum.by_spot += group.by_spot;
    sum.by_volatility += group.by_volatility;
    sum.by_rate += group.by_rate;
  }
  return sum;
}

}  // namespace

Valuation valuate(const Option& option, std::span<const PathSums> groups, bool control) {
  const PathSums sum = total(groups);
  const double n = static_cast<double>(PathKernels::samples(option));
  const double discount = std::exp(-option.rate * option.maturity), unit = discount * option.spot;
  const double payoff = sum.payoff / n, geometric = sum.control / n;
  const auto moment = [n](double products, double a, double b) {
    return (products - n * a * b) / (n - 1);
  };
  const double variance = std::max(0.0, moment(sum.payoff_squared, payoff, payoff));
  const double control_variance = std::max(0.0, moment(sum.control_squared, geometric, geometric));
  const double covariance = moment(sum.payoff_control, payoff, geometric);
  const double factor = control && control_variance > 0 ? covariance / control_variance : 0;
  Valuation value;
  value.geometric = unit * geometric;
  value.geometric_error = unit * std::sqrt(control_variance / n);
  value.price = unit * payoff - factor * (value.geometric - geometric_price(option));
  value.standard_error = unit * std::sqrt(std::max(0.0, variance - factor * covariance) / n);
  value.delta = discount * sum.by_spot / n;
  value.vega = unit * sum.by_volatility / n;
  value.rho = unit * sum.by_rate / n - option.maturity * unit * payoff;
  return value;
}

}  // namespace weir::apps
