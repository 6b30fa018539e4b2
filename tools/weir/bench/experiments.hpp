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
  /// Whether it repeats each point as --repeat says.
  virtual bool repeats() const { return true; }
  /// Measures a domain.
  virtual Json measure(const Subject& subject, const Kernels& kernels, Progress& progress) = 0;
  /// Returns the result of measure() as text.
  virtual std::string text(const Json& result) const = 0;
};

/// Copies blocks to a domain and back in four proportions (figure 4a), to find out whether the link
/// serves both directions at once.
std::unique_ptr<Experiment> make_transfers();
/// Overlaps transfers with kernels of more and more iterations (figure 4b), to measure how much of
/// the shorter one is hidden.
std::unique_ptr<Experiment> make_overlap();
/// Runs kernels on more and more places (figure 5), without transfers.
std::unique_ptr<Experiment> make_spatial();
/// Measures the overhead of the runtime, on the machine's clock.
std::unique_ptr<Experiment> make_overhead();

}  // namespace weir::cli::bench
