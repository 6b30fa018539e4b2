// hBench, the microbenchmark of Fang et al., "Evaluating Multiple Streams on Heterogeneous
// Platforms", section 5, on any domain. Each experiment gives one JSON object, from which its text
// is made.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "bench/subject.hpp"
#include "terminal.hpp"

namespace CLI {
class App;
}

namespace weir::cli::bench {

/// One of the four experiments. Throws weir::Error, or Interrupted.
class Experiment {
 public:
  virtual ~Experiment() = default;
  virtual const char* name() const = 0;
  virtual const char* summary() const = 0;
  virtual void add_options(CLI::App&) {}
  /// Whether it measures a point as often as --repeat says.
  virtual bool repeats() const { return true; }
  /// Measures a domain.
  virtual Json measure(const Subject& subject, const Kernels& kernels, Progress& progress) = 0;
  /// What measure() returned, for people.
  virtual std::string text(const Json& result) const = 0;
};

/// Blocks to a domain and back in four proportions (figure 4a): are both directions served at once?
std::unique_ptr<Experiment> make_transfers();
/// Transfers against kernels of ever more iterations (figure 4b): how much of the lesser is hidden?
std::unique_ptr<Experiment> make_overlap();
/// Kernels on ever more places (figure 5), without transfers.
std::unique_ptr<Experiment> make_spatial();
/// What the runtime itself takes, on the machine's clock.
std::unique_ptr<Experiment> make_overhead();

}  // namespace weir::cli::bench
