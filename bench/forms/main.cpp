// Runs a form and checks its result: pipeline [--blocks B] [--block E], cholesky [--n N] [--tile
// T].
#include "common/program.hpp"
#include "forms/forms.hpp"

namespace weir_bench {
namespace {

double time_pipeline(int blocks, int block) {
  std::vector<double> x(static_cast<std::size_t>(blocks * block));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i % 997 + 1);
  const double seconds = time_of([&] { pipeline(x.data(), blocks, block); });
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double root = std::sqrt(static_cast<double>(i % 997 + 1));
    if (!(std::abs(x[i] - root) < 1e-12 * root)) {
      throw std::runtime_error("wrong result: element " + std::to_string(i) + " is " +
                               std::to_string(x[i]) + " instead of " + std::to_string(root));
    }
  }
  return seconds;
}

double time_cholesky(long n, long tile) {
  TiledMatrix a(n, tile);
  a.fill([n](long row, long column) { return positive_definite(n, row, column); });
  const double seconds = time_of([&] { cholesky(a); });
  check_factor(a);
  return seconds;
}

nlohmann::json measure(const Arguments& arguments) {
  double seconds = 0;
  if (arguments.verb() == "pipeline") {
    seconds = time_pipeline(static_cast<int>(arguments.number("--blocks", 16)),
                            static_cast<int>(arguments.number("--block", 4096)));
  } else if (arguments.verb() == "cholesky") {
    seconds = time_cholesky(arguments.number("--n", 192), arguments.number("--tile", 24));
  } else {
    throw std::invalid_argument("unknown program '" + arguments.verb() +
                                "': choose from pipeline, cholesky");
  }
  return {{"value", seconds}, {"unit", "s"}, {"config", "with setup, copies and teardown"}};
}

}  // namespace
}  // namespace weir_bench

int main(int argc, char** argv) { return weir_bench::run_program(argc, argv, weir_bench::measure); }
