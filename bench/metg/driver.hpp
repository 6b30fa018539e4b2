// A runtime under test, and the sweep over the size of tasks that is the same for all.
#pragma once

#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <sstream>

#include "common/program.hpp"
#include "metg/gauge.hpp"
#include "metg/problem.hpp"

namespace weir_bench::metg {

/// Runs problems on a runtime.
class Driver {
 public:
  virtual ~Driver() = default;

  /// Makes what a program has before it starts: memory, handles. The problem outlives its runs.
  virtual void prepare(const Problem& problem) = 0;
  /// Runs the problem from the first submission until all tasks are complete, and returns the
  /// seconds. Clears the outputs before, and verifies those of the last step afterwards.
  virtual double run() = 0;
  /// Ends what prepare() made.
  virtual void finish() = 0;
  /// The configuration in words, for the report.
  virtual std::string config() const = 0;

  /// Of processes that run together: the largest value of all. Decisions follow from such values.
  virtual double largest(double value) const { return value; }
  virtual std::size_t cores() const { return allowed_cores().size(); }
};

/// How a sweep is measured.
struct Sampling {
  double seconds;     ///< wanted for a sample
  long repeats;       ///< accepted samples for each size
  long max_steps;     ///< of a sample
  double stop_below;  ///< the sweep ends when two rates are below this part of the best one
  bool gauged;        ///< refuse samples when a core was away

  explicit Sampling(const Arguments& arguments)
      : seconds(static_cast<double>(arguments.number("--sample-us", 20'000)) * 1e-6),
        repeats(arguments.number("--repeats", 2)),
        max_steps(arguments.number("--steps", 1000)),
        stop_below(static_cast<double>(arguments.number("--stop-below", 10)) / 100),
        gauged(arguments.text("--gauge", "on") == "on") {}
};

class Sweep {
 public:
  Sweep(Driver& driver, const Arguments& arguments)
      : driver_(driver), sampling_(arguments), gauge_(allowed_cores()) {
    settings_.work = parse_work(arguments.text("--kernel", "compute"));
    settings_.graphs = static_cast<std::uint32_t>(arguments.number("--graphs", 1));
    settings_.fields = static_cast<std::uint32_t>(arguments.number("--fields", 2));
    settings_.output_bytes = static_cast<std::size_t>(arguments.number("--output-bytes", 16));
    settings_.imbalance = static_cast<double>(arguments.number("--imbalance", 100)) / 100;
    sizes_ = arguments.numbers("--iterations", default_sizes());
    std::sort(sizes_.rbegin(), sizes_.rend());  // slow runtimes need not reach the smallest tasks
    if (sizes_.back() < 0 || sampling_.repeats < 1 || sampling_.seconds <= 0) {
      throw std::invalid_argument(
          "--iterations must not be negative, --repeats and --sample-us at least 1");
    }
  }

  /// Sweeps over the sizes of tasks for patterns of the form NAME[:WIDTH[:RADIX]], with commas.
  nlohmann::json measure(const std::string& patterns) {
    nlohmann::json found;
    std::istringstream words(patterns);
    for (std::string word; std::getline(words, word, ',');) found[word] = sweep(word);
    return found;
  }

 private:
  static std::string default_sizes() {
    return "4,8,16,32,64,128,256,512,1024,2048,4096,8192,16384,32768";
  }

  nlohmann::json sweep(const std::string& pattern) {
    settings_.shape = Shape{};
    std::istringstream words(pattern);
    std::string name, number;
    std::getline(words, name, ':');
    settings_.shape.pattern = parse_pattern(name);
    if (std::getline(words, number, ':')) {
      settings_.shape.width = static_cast<std::uint32_t>(std::stoul(number));
    }
    if (std::getline(words, number, ':')) {
      settings_.shape.radix = static_cast<std::uint32_t>(std::stoul(number));
    }
    nlohmann::json points = nlohmann::json::array();
    retries_ = retries_for_pattern;
    double best = 0;
    int slow = 0;
    for (long size : sizes_) {
      settings_.iterations = static_cast<std::uint64_t>(size);
      points.push_back(measure_size());
      best = std::max(best, last_rate_);
      slow = last_rate_ < sampling_.stop_below * best ? slow + 1 : 0;
      if (slow == 2) break;  // a single one may be bad luck
    }
    return points;
  }

  /// The graph has as many steps as fill the time of a sample.
  std::uint32_t choose_steps() {
    const std::uint32_t least = std::max<std::uint32_t>(16, 2 * settings_.shape.width);
    settings_.shape.steps = least;
    const Problem trial(settings_);
    driver_.prepare(trial);
    driver_.run();
    const double seconds = driver_.largest(driver_.run());
    driver_.finish();
    const double steps = least * sampling_.seconds / seconds;
    const double most = std::max(static_cast<double>(sampling_.max_steps), 1.0 * least);
    return static_cast<std::uint32_t>(std::clamp(steps, 1.0 * least, most));
  }

  nlohmann::json measure_size() {
    settings_.shape.steps = choose_steps();
    const Problem problem(settings_);
    driver_.prepare(problem);
    driver_.run();
    std::vector<double> seconds;
    long refused = 0;
    double last = 0;
    bool was_away = core_is_away();
    const auto wanted = static_cast<std::size_t>(sampling_.repeats);
    for (std::size_t attempt = 0; seconds.size() < wanted; ++attempt) {
      if (attempt >= wanted && retries_-- <= 0) break;
      const double sample = last = driver_.largest(driver_.run());
      const bool is_away = core_is_away();
      if (was_away || is_away) {
        ++refused;
      } else {
        seconds.push_back(sample);
      }
      was_away = is_away;
    }
    driver_.finish();
    last_rate_ = problem.work() / last;
    return describe(problem, seconds, refused);
  }

  nlohmann::json describe(const Problem& problem, const std::vector<double>& seconds,
                          long refused) const {
    const double tasks = static_cast<double>(problem.tasks()), work = problem.work();
    nlohmann::json point = {{"iterations", settings_.iterations},
                            {"steps", settings_.shape.steps},
                            {"tasks", problem.tasks()},
                            {"work", work},
                            {"samples", seconds.size()},
                            {"refused", refused},
                            {"wall", nullptr},
                            {"task_us", nullptr},
                            {"rate", nullptr}};
    if (seconds.empty()) return point;
    const double wall = median(seconds);
    point["wall"] = wall;
    point["task_us"] = wall * static_cast<double>(driver_.cores()) / tasks * 1e6;
    point["rate"] = work / wall / 1e9;
    return point;
  }

  bool core_is_away() {
    return sampling_.gauged && driver_.largest(gauge_.lost_part()) > largest_loss;
  }

  static constexpr long retries_for_pattern = 8;  // a busy machine refuses nearly all samples

  Driver& driver_;
  Sampling sampling_;
  Gauge gauge_;
  Settings settings_;
  std::vector<long> sizes_;
  long retries_ = 0;      ///< of refused samples, for the rest of a pattern
  double last_rate_ = 0;  ///< of the last sample, refused or not
};

/// Measures a driver: the JSON object that its program prints. The first argument has the patterns.
inline nlohmann::json measure_driver(Driver& driver, const Arguments& arguments) {
  const bool memory = arguments.text("--kernel", "compute") == "memory";
  const nlohmann::json patterns = Sweep(driver, arguments).measure(arguments.verb());
  return {{"value", patterns.begin().value().back()["task_us"]},
          {"unit", "us/task"},
          {"rate_unit", memory ? "GB/s" : "GFLOP/s"},
          {"threads", driver.cores()},
          {"config", driver.config()},
          {"patterns", patterns}};
}

/// The usual main function: the driver is made from the arguments.
template <class Made>
int driver_main(int count, char** values) {
  return run_program(count, values, [](const Arguments& arguments) {
    Made driver(arguments);
    return measure_driver(driver, arguments);
  });
}

/// A driver whose outputs are in plain memory.
class PlainDriver : public Driver {
 public:
  void prepare(const Problem& problem) override {
    problem_ = &problem;
    outputs_.emplace(problem);
  }
  double run() override {
    outputs_->clear();
    const double seconds = time_of([&] { run_tasks(); });
    problem_->verify_end([&](std::size_t number) { return outputs_->at(number); });
    return seconds;
  }
  void finish() override { outputs_.reset(); }

 protected:
  /// Submits all tasks and returns when they are complete.
  virtual void run_tasks() = 0;

  const Problem& problem() const { return *problem_; }
  const Outputs& outputs() const { return *outputs_; }
  void execute(const TaskId& id) const { outputs_->execute(*problem_, id); }

 private:
  const Problem* problem_ = nullptr;
  std::optional<Outputs> outputs_;
};

}  // namespace weir_bench::metg
