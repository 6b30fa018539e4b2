// The parts of asian-option against other sources. The whole is tests/apps/asian_option_test.py's.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <weir/portable.h>

#include "asian_option/book.hpp"
#include "asian_option/option.hpp"
#include "asian_option/paths.wk"
#include "asian_option/valuation.hpp"
#include "common/input_error.hpp"
#include "surroundings.hpp"
#include "thrown.hpp"

#if __has_include(<Random123/philox.h>)
#include <Random123/philox.h>
#define HAS_RANDOM123
#endif

namespace weir::apps {
namespace {

using Block = std::array<std::uint32_t, 4>;

Block philox(const Block& c, std::uint32_t key0, std::uint32_t key1) {
  const Philox block = philox_of(c[0], c[1], c[2], c[3], key0, key1);
  return {block.x0, block.x1, block.x2, block.x3};
}

/// The known answers that come with Random123.
TEST(AsianOptionPhilox, Random123TestVectors_GiveTheKnownAnswers) {
  constexpr std::uint32_t all = 0xffffffff;
  EXPECT_EQ(philox({0, 0, 0, 0}, 0, 0), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({all, all, all, all}, all, all),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0xa4093822, 0x299f31d0),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(AsianOptionPhilox, AgreesWithRandom123) {
#if defined(HAS_RANDOM123)
  std::mt19937 random(7);
  for (int i = 0; i < 10000; ++i) {
    const auto next = [&] { return static_cast<std::uint32_t>(random()); };
    const Block counter = {next(), next(), next(), next()};
    const std::uint32_t key0 = next(), key1 = next();
    const philox4x32_ctr_t given = {{counter[0], counter[1], counter[2], counter[3]}};
    const philox4x32_key_t key = {{key0, key1}};
    const philox4x32_ctr_t expected = philox4x32(given, key);
    EXPECT_EQ(philox(counter, key0, key1),
              (Block{expected[0], expected[1], expected[2], expected[3]}));
  }
#else
  GTEST_SKIP() << "Random123 is not installed: librandom123-dev";
#endif
}

double relative_error(double value, double expected) {
  return std::fabs(value - expected) / std::fabs(expected);
}

TEST(AsianOptionFunctions, ExpLogSinCos_MatchLibmWithinThreeUlps) {
  constexpr double kRounding = 6e-16;  // under three units in the last place
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> wide(-50, 50), narrow(-0.785398, 0.785398);
  for (int i = 0; i < 100000; ++i) {
    const double x = wide(random), r = narrow(random);
    const double u = (static_cast<double>(random() >> 32) + 0.5) / 4294967296.0;
    ASSERT_LT(relative_error(exp_of(x), std::exp(x)), kRounding) << x;
    ASSERT_LT(relative_error(powers_of(x).down, std::exp(-x)), kRounding) << x;
    ASSERT_LT(relative_error(log_of(u), std::log(u)), kRounding) << u;
    ASSERT_LT(relative_error(log_of(std::exp(x)), std::log(std::exp(x))), kRounding) << x;
    ASSERT_LT(relative_error(cos_of(r), std::cos(r)), kRounding) << r;
    ASSERT_LT(std::fabs(sin_of(r) - std::sin(r)), kRounding) << r;
  }
  EXPECT_EQ(exp_of(0), 1);
  EXPECT_EQ(log_of(1), 0);
  EXPECT_EQ(exp_of(1e9), exp_of(700));
}

TEST(AsianOptionNormals, AnglesOfAllQuadrants_MatchTheBoxMullerTransform) {
  std::mt19937 random(5);
  const double two_pi = 2 * std::acos(-1.0);
  const std::uint32_t quarters[] = {0,          0x1fffffff, 0x20000000, 0x40000000, 0x60000000,
                                    0x80000000, 0xa0000000, 0xe0000000, 0xffffffff};
  for (std::uint32_t i = 0; i < 100000; ++i) {
    const auto level = static_cast<std::uint32_t>(random());
    const auto angle = i < std::size(quarters) ? quarters[i] : static_cast<std::uint32_t>(random());
    const double radius = std::sqrt(-2 * std::log((level + 0.5) / 4294967296.0));
    const Normals z = normals_of(level, angle);
    ASSERT_NEAR(z.x, radius * std::cos(two_pi * angle / 4294967296.0), 1e-14) << angle;
    ASSERT_NEAR(z.y, radius * std::sin(two_pi * angle / 4294967296.0), 1e-14) << angle;
  }
}

/// One step makes the average the asset: then the geometric price is that of Black and Scholes.
TEST(AsianOptionClosedForm, OneStep_PriceAndOddsAreThoseOfBlackScholes) {
  Option option{.spot = 42,
                .strike = 40,
                .rate = 0.1,
                .volatility = 0.2,
                .maturity = 0.5,
                .steps = 1,
                .paths = 4};
  EXPECT_NEAR(geometric_price(option), 4.759422, 1e-6);  // Hull, "Options, futures", example 15.6
  EXPECT_NEAR(geometric_odds(option), 0.7349, 1e-4);
  option.call = false;
  EXPECT_NEAR(geometric_price(option), 0.808600, 1e-6);
  EXPECT_NEAR(geometric_odds(option), 0.2651, 1e-4);
}

TEST(AsianOptionClosedForm, FixedAndFloatingStrike_SatisfyPutCallParity) {
  for (const bool floating : {false, true}) {
    Option call{.spot = 100,
                .strike = 90,
                .rate = 0.05,
                .volatility = 0.4,
                .maturity = 2,
                .steps = 24,
                .paths = 4,
                .call = true,
                .floating = floating};
    Option put = call;
    put.call = false;
    const double n = 24, dt = 2 / n, variance = 0.16 * dt * (n + 1) * (2 * n + 1) / (6 * n);
    const double mean = 100 * std::exp((0.05 - 0.08) * dt * (n + 1) / 2 + variance / 2);
    const double gain = floating ? 100 * std::exp(0.1) - mean : mean - 90;
    EXPECT_NEAR(geometric_price(call) - geometric_price(put), std::exp(-0.1) * gain, 1e-10);
  }
}

/// An option on the asset in a year, without a drift: the payoff of a sample is a formula.
Option brief_option(double strike, std::size_t paths) {
  return {.spot = 1,
          .strike = strike,
          .rate = 0,
          .volatility = 0.2,
          .maturity = 1,
          .steps = 1,
          .paths = paths};
}

Valuation sampled(const Option& option, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  PathSums sums{};
  for (std::size_t i = 0; i < PathKernels::samples(option); ++i) {
    const double at = 0.2 * normal(random);
    const auto payoff = [&](double x) { return std::max(0.0, std::exp(x - 0.02) - option.strike); };
    const double mean = (payoff(at) + payoff(-at)) / 2;
    sums.control += mean;
    sums.control_squared += mean * mean;
  }
  return valuate(option, std::span(&sums, 1), false);
}

struct Sample {
  std::vector<Option> options;
  std::vector<Valuation> values;
  Deviations deviations() const { return geometric_deviations(options, values); }
};

Sample sampled_book(double strike, std::size_t paths, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Sample book{std::vector<Option>(100, brief_option(strike, paths)), {}};
  for (const Option& option : book.options) book.values.push_back(sampled(option, random));
  return book;
}

/// In the money, at it, and where about a hundred, fifty, five and hardly one of the samples pay.
TEST(AsianOptionDeviations, CorrectEstimates_DeviateWithinTheLimit) {
  constexpr std::pair<double, std::size_t> kBooks[] = {
      {0.7, 400}, {1, 400}, {1.4, 4400}, {1.4, 2600}, {1.4, 240}, {1.4, 20}, {1.9, 200}, {0.7, 4}};
  for (const auto& [strike, paths] : kBooks) {
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      const Deviations found = sampled_book(strike, paths, seed).deviations();
      EXPECT_LE(found.worst, worst_of(100)) << strike << ' ' << paths << ' ' << seed;
      EXPECT_LE(found.seldom, worst_of(1)) << strike << ' ' << paths << ' ' << seed;
    }
  }
}

TEST(AsianOptionDeviations, DoubledZeroOrNanEstimates_FailTheLimit) {
  for (const std::size_t paths : {100000U, 240U, 60U}) {
    const double strike = 1.4;
    Sample book = sampled_book(strike, paths, 1);
    const auto passes = [&] {
      const Deviations found = book.deviations();
      return found.worst <= worst_of(100) && found.seldom <= worst_of(1);
    };
    EXPECT_TRUE(passes()) << paths;
    std::vector<Valuation> right = book.values;
    for (Valuation& value : book.values) value.geometric *= 2;
    EXPECT_FALSE(passes()) << paths;
    for (Valuation& value : book.values) value.geometric = value.geometric_error = 0;
    EXPECT_FALSE(passes()) << paths;
    book.values = std::move(right);
    book.values.front().geometric = std::numeric_limits<double>::quiet_NaN();
    EXPECT_FALSE(passes()) << paths;
  }
}

std::string refusal(const std::string& text) {
  const TemporaryFolder folder;
  const std::string path = folder.path("book.csv");
  std::ofstream(path) << text;
  return thrown_by<InputError>([&] { read_book(path); });
}

TEST(AsianOptionBook, MissingRowsOrWrongColumns_AreRefusedWithTheReason) {
  const std::string names = "spot,strike,rate,volatility,maturity,steps,paths";
  EXPECT_NE(refusal("").find("no option"), std::string::npos);
  EXPECT_NE(refusal(names + "\n").find("no option"), std::string::npos);
  EXPECT_NE(refusal("spot,strike\n1,2\n").find("no column rate"), std::string::npos);
  EXPECT_NE(refusal(names + ",colour\n").find("'colour'"), std::string::npos);
  EXPECT_NE(refusal(names + ",spot\n").find("two columns are called spot"), std::string::npos);
  EXPECT_NE(refusal(names + "\n1,2,3\n").find(":2: found 3 fields, expected 7"), std::string::npos);
  EXPECT_EQ(refusal(names + "\n1,2,.1,.1,1,1,4\n"), "");
}

}  // namespace
}  // namespace weir::apps
