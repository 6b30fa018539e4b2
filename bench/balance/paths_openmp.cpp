// Paths of Asian options without weir: loops of C++ over blocks of samples, which the compiler
// turns into vector instructions with the vector functions of libm, on threads of OpenMP.
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <omp.h>

#include "common/program.hpp"

namespace weir_bench {
namespace {

constexpr int kBlock = 64;  ///< samples that are computed together, as in weir's kernel

/// Four uniform numbers of each sample, as Philox4x32-10 with the key (1, 0) gives them.
void fill_uniform(std::uint32_t block, std::uint32_t first, double (&u)[4][kBlock]) {
#pragma omp simd
  for (int i = 0; i < kBlock; ++i) {
    std::uint32_t a = block, b = first + static_cast<std::uint32_t>(i), c = 0, d = 0;
    std::uint32_t key = 1, other = 0;
#pragma GCC unroll 10
    for (int round = 0; round < 10; ++round) {
      const std::uint64_t p = std::uint64_t{0xD2511F53} * a, q = std::uint64_t{0xCD9E8D57} * c;
      a = static_cast<std::uint32_t>(q >> 32) ^ b ^ key;
      b = static_cast<std::uint32_t>(q);
      c = static_cast<std::uint32_t>(p >> 32) ^ d ^ other;
      d = static_cast<std::uint32_t>(p);
      key += 0x9E3779B9u;
      other += 0xBB67AE85u;
    }
    u[0][i] = (a + 0.5) / 4294967296;
    u[1][i] = b / 4294967296.0;
    u[2][i] = (c + 0.5) / 4294967296;
    u[3][i] = d / 4294967296.0;
  }
}

/// Makes four normal numbers of each sample of them.
void make_normal(double (&u)[4][kBlock]) {
  constexpr double kTwoPi = 6.283185307179586;
  for (int pair = 0; pair < 4; pair += 2) {
#pragma omp simd
    for (int i = 0; i < kBlock; ++i) {
      const double radius = std::sqrt(-2 * std::log(u[pair][i])), angle = kTwoPi * u[pair + 1][i];
      u[pair][i] = radius * std::cos(angle);
      u[pair + 1][i] = radius * std::cos(angle - kTwoPi / 4);  // GCC has no vectors for sincos()
    }
  }
}

/// Sums of payoff, control and their products, and of three derivatives, of a block of samples.
struct Sums {
  double payoff = 0, squared = 0, control = 0, control_squared = 0, product = 0, by_spot = 0,
         by_volatility = 0, by_rate = 0;
};

/// A call with fixed strike: spot 100, strike 95, rate 9 %, volatility 30 %, a year.
Sums price_block(std::uint32_t first, int steps) {
  const double dt = 1.0 / steps, v = 0.3, growth = (0.09 - v * v / 2) * dt, root = std::sqrt(dt);
  const double swing = v * root, strike = 0.95;
  alignas(64) double at[kBlock] = {}, sum[2][kBlock] = {}, sum_at[2][kBlock] = {},
                     sum_time[2][kBlock] = {}, sum_of_at[kBlock] = {}, z[4][kBlock];
  for (int block = 0; 4 * block < steps; ++block) {
    fill_uniform(static_cast<std::uint32_t>(block), first, z);
    make_normal(z);
    for (int k = 0; k < 4 && 4 * block + k < steps; ++k) {
      const double t = 4 * block + k + 1;
#pragma omp simd
      for (int i = 0; i < kBlock; ++i) {
        at[i] += z[k][i];
        const double up = std::exp(growth * t + swing * at[i]);
        const double down = std::exp(growth * t - swing * at[i]);
        sum[0][i] += up;
        sum[1][i] += down;
        sum_at[0][i] += up * at[i];
        sum_at[1][i] -= down * at[i];
        sum_time[0][i] += up * t;
        sum_time[1][i] += down * t;
        sum_of_at[i] += at[i];
      }
    }
  }
  Sums sums;
  for (int i = 0; i < kBlock; ++i) {
    double payoff = 0, control = 0;
    for (int side = 0; side < 2; ++side) {
      const double mean = sum[side][i] / steps, sign = side == 0 ? 1 : -1;
      const double geometric =
          std::exp(growth * (steps + 1) / 2 + sign * swing * sum_of_at[i] / steps);
      payoff += std::max(mean - strike, 0.0) / 2;
      control += std::max(geometric - strike, 0.0) / 2;
      if (mean <= strike) continue;
      sums.by_spot += mean / 2;
      sums.by_volatility += (root * sum_at[side][i] - v * dt * sum_time[side][i]) / steps / 2;
      sums.by_rate += dt * sum_time[side][i] / steps / 2;
    }
    sums.payoff += payoff;
    sums.squared += payoff * payoff;
    sums.control += control;
    sums.control_squared += control * control;
    sums.product += payoff * control;
  }
  return sums;
}

nlohmann::json measure(const Arguments& arguments) {
  const int steps = static_cast<int>(arguments.number("--steps", 252));
  const int blocks = static_cast<int>(arguments.number("--paths", 65536)) / 2 / kBlock;
  const int options = static_cast<int>(arguments.number("--options", 4));
  omp_set_num_threads(static_cast<int>(arguments.number("--threads", 1)));
  const auto once = [&] {
    std::vector<Sums> sums(static_cast<std::size_t>(blocks));
    const double seconds = time_of([&] {
      for (int option = 0; option < options; ++option) {
#pragma omp parallel for schedule(dynamic, 8)
        for (int block = 0; block < blocks; ++block) {
          sums[static_cast<std::size_t>(block)] =
              price_block(static_cast<std::uint32_t>(block * kBlock), steps);
        }
      }
    });
    double price = 0;
    for (const Sums& each : sums) price += each.payoff;
    price *= 100 * std::exp(-0.09) / (static_cast<double>(blocks) * kBlock);
    if (std::fabs(price - 11.70) > 0.3) {
      throw std::runtime_error("wrong price " + std::to_string(price));
    }
    return 2.0 * options * blocks * kBlock * steps / seconds;
  };
  return {{"value", median(repeat(1, 3, once))},
          {"config", std::to_string(omp_get_max_threads()) + " thread(s)"}};
}

}  // namespace
}  // namespace weir_bench

int main(int count, char** values) {
  return weir_bench::run_program(count, values, weir_bench::measure);
}
