// The policies of task queues on modelled machines, in virtual time: a table in GFLOP/s on standard
// error, and the worst ratio of "finish" to the best other policy.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "common/program.hpp"
#include "modelled_machines.hpp"

namespace weir_bench {
namespace {

using weir_study::Machine;
using weir_study::Problem;
using weir_study::Study;

constexpr const char* kPolicies[] = {"finish", "steal", "locality", "static", "round-robin"};

/// What a policy reaches in its first run, and in the third.
struct Speeds {
  double first, learned;
};

Speeds speeds_of(const Machine& machine, const Problem& problem, const char* policy) {
  const Study study(machine.domains(), policy);
  const auto speed = [&] { return problem.flops() / study.run(problem) / 1e9; };
  const double first = speed();
  speed();
  return {first, speed()};
}

/// Returns finish beside the best of the others.
double print_row(const Machine& machine, const Problem& problem) {
  std::fprintf(stderr, "%-17s %-18s", machine.name.c_str(), problem.name().c_str());
  double finish = 0, best = 0;
  for (const char* policy : kPolicies) {
    const Speeds speeds = speeds_of(machine, problem, policy);
    std::fprintf(stderr, " %6.0f %6.0f", speeds.first, speeds.learned);
    if (policy == kPolicies[0]) {
      finish = speeds.learned;
    } else {
      best = std::max(best, speeds.learned);
    }
  }
  std::fprintf(stderr, "  %6.0f  %.3f\n", machine.rate(), finish / best);
  return finish / best;
}

nlohmann::json measure(const Arguments& arguments) {
  const std::vector<long> orders = arguments.numbers("--n", "4096,8192");
  const std::vector<long> tiles = arguments.numbers("--tile", "128,256,512");
  std::fprintf(stderr, "%-17s %-18s", "machine", "problem");
  for (const char* policy : kPolicies) std::fprintf(stderr, " %13s", policy);
  std::fprintf(stderr, "     sum  finish / best other\n");
  double least = 1e9;
  std::size_t rows = 0;
  for (const Machine& machine : weir_study::machines()) {
    for (const bool cholesky : {false, true}) {
      for (const long n : orders) {
        for (const long tile : tiles) {
          const Problem problem{cholesky, static_cast<std::size_t>(n),
                                static_cast<std::size_t>(tile)};
          least = std::min(least, print_row(machine, problem));
          ++rows;
        }
      }
    }
  }
  return {{"rows", rows}, {"least_ratio", least}};
}

}  // namespace
}  // namespace weir_bench

int main(int argc, char** argv) { return weir_bench::run_program(argc, argv, weir_bench::measure); }
