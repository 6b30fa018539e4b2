#include "asian_option/option.hpp"

#include <algorithm>
#include <cmath>

namespace weir::apps {

namespace {

double normal_below(double x) { return std::erfc(-x / std::sqrt(2.0)) / 2; }

/// Expected value of max(a - b, 0) for lognormal a and b of these means, with `deviation` that of
/// ln a - ln b.
double exchange(double a, double b, double deviation) {
  if (!(deviation > 0) || b <= 0) return std::max(a - b, 0.0);
  const double d = std::log(a / b) / deviation + deviation / 2;
  return a * normal_below(d) - b * normal_below(d - deviation);
}

/// The option on the geometric average as one to exchange `low` for `high`, or a put the other way
/// round: both are lognormal or fixed, of these means, and `deviation` is that of their logarithms.
struct Terms {
  double high, low, deviation;
};

Terms terms_of(const Option& o) {
  const double n = static_cast<double>(o.steps), dt = o.maturity / n,
               v2 = o.volatility * o.volatility;
  const double variance =
      v2 * dt * (n + 1) * (2 * n + 1) / (6 * n);  // of the logarithm of the mean
  const double mean = o.spot * std::exp((o.rate - v2 / 2) * dt * (n + 1) / 2 + variance / 2);
  const double last = o.spot * std::exp(o.rate * o.maturity);
  const double covariance = v2 * dt * (n + 1) / 2;
  const double difference = std::max(0.0, v2 * o.maturity + variance - 2 * covariance);
  return {o.floating ? last : mean, o.floating ? mean : o.strike,
          std::sqrt(o.floating ? difference : variance)};
}

}  // namespace

double geometric_price(const Option& o) {
  const auto [high, low, deviation] = terms_of(o);
  return std::exp(-o.rate * o.maturity) *
         (o.call ? exchange(high, low, deviation) : exchange(low, high, deviation));
}

double geometric_odds(const Option& o) {
  const auto [high, low, deviation] = terms_of(o);
  if (!(deviation > 0)) return 1;
  const double above = std::log(high / low) / deviation - deviation / 2;
  return normal_below(o.call ? above : -above);
}

}  // namespace weir::apps
