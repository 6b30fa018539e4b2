#include "asian_option/valuation.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/workload.hpp"

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

double in_errors(double deviation, double error, double scale) {
  if (std::fabs(deviation) <= 1e-9 * scale) return 0;
  return error > 0 ? std::fabs(deviation) / error : std::numeric_limits<double>::infinity();
}

double worst_of(std::size_t estimates) {
  constexpr double kOfOne = 5;
  return std::sqrt(kOfOne * kOfOne +
                   2 * std::log(static_cast<double>(std::max<std::size_t>(1, estimates))));
}

/// The error of the samples is too small when by chance few of them pay: then the error is that of
/// a count of payments whose sizes vary about as much as they are large. Rare payments are summed
/// up in units of one payment, so that their variance is their count.
Deviations geometric_deviations(std::span<const Option> options,
                                std::span<const Valuation> values) {
  constexpr double kEnough = 50;
  Deviations found;
  double payments = 0, missed = 0, variance = 0;
  for (std::size_t i = 0; i < options.size(); ++i) {
    const auto samples = static_cast<double>(PathKernels::samples(options[i]));
    if (samples < 2) continue;  // has no error
    const double expected = geometric_price(options[i]), odds = geometric_odds(options[i]);
    const double error = values[i].geometric_error, paid = odds * samples;
    const double deviation = values[i].geometric - expected;
    if (paid >= kEnough) {
      const double least = expected * (1 - odds) / std::sqrt(paid);
      found.worst =
          worse(found.worst, in_errors(deviation, std::max(error, least), options[i].spot));
      continue;
    }
    payments += paid;
    if (in_errors(deviation, error, options[i].spot) == 0) continue;
    const double unit = paid / expected;
    missed += unit * deviation;
    variance += unit * error * unit * error;
  }
  if (missed != 0) found.seldom = std::fabs(missed) / std::sqrt(std::max(payments, variance));
  return found;
}

}  // namespace weir::apps
