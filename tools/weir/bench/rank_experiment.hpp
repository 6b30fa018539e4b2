// Measurements between ranks, on those of a launcher or on ranks that the command starts.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <vector>

#include <nlohmann/json.hpp>
#include <weir/fabric.hpp>

#include "command.hpp"
#include "terminal.hpp"

namespace CLI {
class App;
}

namespace weir::cli::bench {

/// The ranks that most experiments send between.
constexpr unsigned kFrom = 0, kTo = 1;

/// A column of the table of an experiment: a member of each point.
struct Column {
  const char* title;
  const char* key;
  double scale = 1;
  int digits = 3;  ///< after the point
};

/// A measurement that all ranks take part in, and rank 0 prints. Throws weir::Error, or
/// Interrupted.
class RankExperiment {
 public:
  virtual ~RankExperiment() = default;
  virtual const char* name() const = 0;
  virtual const char* summary() const = 0;
  /// Adds --ranks, --repeat and --json, and those of the experiment.
  void add_options(CLI::App& app);
  ExitCode run();

 protected:
  using Json = nlohmann::ordered_json;

  virtual void add_own_options(CLI::App& app) = 0;
  /// Returns one object for each point. All ranks call it; the result of rank 0 counts.
  virtual Json measure(Fabric& fabric) = 0;
  virtual std::vector<Column> columns() const = 0;

  /// Returns the median of the requested number of runs, after one that does not count.
  template <class Code>
  double median(const Code& seconds_of_run) const {
    std::vector<double> all;
    for (std::size_t i = 0; i <= repeat_; ++i) all.push_back(seconds_of_run());
    std::sort(all.begin() + 1, all.end());
    return all[1 + repeat_ / 2];
  }
  void show_progress(std::size_t done, std::size_t total);

 private:
  std::string text(const Json& results) const;

  std::size_t repeat_ = 5;
  unsigned ranks_ = 0;  ///< to start; 0: those of the launcher
  bool json_ = false;
  bool prints_ = false;
  Progress progress_;
};

/// Returns the seconds of code that all ranks begin together, until this rank has finished.
template <class Code>
double seconds_together(const Fabric& fabric, const Code& code) {
  using Clock = std::chrono::steady_clock;
  fabric.barrier();
  const auto begin = Clock::now();
  code();
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  fabric.barrier();
  return seconds;
}

/// Figure 2 of paper 003: sends data of each size from rank 0 to rank 1 as messages that a handler
/// receives, as puts into a window, and as items of a conveyor, which joins them. Also measures one
/// message there and back, and one put until it is complete.
std::unique_ptr<RankExperiment> make_messages();
/// Figure 3 of paper 003: exchanges the faces of cubes that are cut in z, y or x, so that a face is
/// contiguous, consists of rows, or of single cells.
std::unique_ptr<RankExperiment> make_halos();
/// Section 5.5 of paper 003: sends cache lines from rank 0 to rank 1 through its communication
/// cache, by sets, ways and placement, and through a conveyor with as much memory.
std::unique_ptr<RankExperiment> make_cache();

}  // namespace weir::cli::bench
