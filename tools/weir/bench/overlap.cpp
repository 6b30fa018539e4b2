// hBench: how well transfers and kernels overlap.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "bench/experiments.hpp"

namespace weir::cli::bench {

namespace {

constexpr int kMostIterations = 1 << 20;  ///< results stay exact
constexpr double kSweep[] = {0.25, 0.5, 0.75, 0.9, 1, 1.1, 1.25, 1.5, 2, 3};

/// The arrays on the streams of a place.
class OverlapRun {
 public:
  OverlapRun(const Subject& subject, const Kernels& kernels, std::size_t bytes, std::size_t blocks,
             std::size_t streams)
      : subject_(subject),
        arrays_(subject.runtime(), kernels, blocks, bytes / blocks),
        rig_(subject, 1, streams) {}

  double data() const {
    return subject_.seconds([&] {
      for_blocks([&](const weir::Stream& stream, std::size_t block) {
        arrays_.upload(stream, block);
        arrays_.download(stream, block);
      });
    });
  }

  double kernel(int iterations) const {
    return subject_.seconds([&] {
      for_blocks([&](const weir::Stream& stream, std::size_t block) {
        arrays_.add(stream, iterations, block);
      });
    });
  }

  double measured(int iterations) const {
    return subject_.seconds([&] {
      for_blocks([&](const weir::Stream& stream, std::size_t block) {
        arrays_.upload(stream, block);
        arrays_.add(stream, iterations, block);
        arrays_.download(stream, block);
      });
    });
  }

  std::size_t wrong(int iterations) const { return arrays_.wrong(iterations); }

  /// Estimates the number of iterations for which kernels take as long as transfers, by a line
  /// through two measured times; 0 when there are no transfers or no number of iterations fits.
  int guess_crossing(double data_s) const {
    if (data_s <= 0) return 0;
    int few = 1, many = 2;
    const double least = kernel(few);
    double most = kernel(many);
    while (most < data_s && many < kMostIterations) most = kernel(many *= 4);
    const double slope = (most - least) / (many - few);
    if (!(slope > 0)) return 0;
    const double found = few + (data_s - least) / slope;
    return found <= kMostIterations ? static_cast<int>(std::lround(std::max(found, 1.0))) : 0;
  }

 private:
  template <class Work>
  void for_blocks(Work&& work) const {
    for (std::size_t block = 0; block < arrays_.blocks(); ++block) work(rig_[block], block);
  }

  const Subject& subject_;
  const Arrays arrays_;
  const Rig rig_;
};

class Overlap final : public Experiment {
 public:
  const char* name() const override { return "overlap"; }
  const char* summary() const override {
    return "Overlap of transfers and kernels, compared with the longer of the two";
  }
  void add_options(CLI::App& app) override {
    app.add_option("--size", bytes_, "Size of each of the two arrays [16MiB]")
        ->transform(CLI::AsSizeValue(false))
        ->check(CLI::Range(std::size_t{1} << 12, std::size_t{1} << 36));
    app.add_option("--blocks", blocks_, "Number of blocks of each array [64]")
        ->check(CLI::Range(1, 1024));
    app.add_option("--streams", streams_, "Streams that share the blocks [2]")
        ->check(CLI::Range(1, 64));
    app.add_option("--iterations", iterations_,
                   "Iterations of the kernel, such as 10,20,40 [around the number at which "
                   "transfers and kernels take equally long]")
        ->delimiter(',')
        ->check(CLI::Range(1, kMostIterations));
    app.add_flag("--verify", verify_, "Check the results; exit status 5 when they are wrong");
  }

  Json measure(const Subject& subject, const Kernels& kernels, Progress& progress) override {
    progress.update(0, 0, "looking for the crossing");
    const OverlapRun run(subject, kernels, bytes_, blocks_, streams_);
    Json result = subject.facts();
    result["array_bytes"] = bytes_ / blocks_ / sizeof(float) * sizeof(float) * blocks_;
    result["blocks"] = blocks_;
    result["streams"] = streams_;
    result["shares_memory"] = subject.info().aliases_host;
    const double data_s = run.data();
    const int guess = subject.info().aliases_host ? 0 : run.guess_crossing(data_s);
    result["crossing"] = nullptr;
    Json& curves = result["curves"];
    std::size_t wrong = 0, done = 0;
    double worst = 0;
    const std::vector<int> sweep = iterations(guess);
    for (const int iterations : sweep) {
      progress.update(done++, sweep.size(), "overlapping");
      const double kernel_s = run.kernel(iterations), measured_s = run.measured(iterations);
      const double ideal_s = std::max(data_s, kernel_s);
      result["iterations"].push_back(iterations);
      curves["data"].push_back(data_s);
      curves["kernel"].push_back(kernel_s);
      curves["ideal"].push_back(ideal_s);
      curves["measured"].push_back(measured_s);
      result["ratio"].push_back(measured_s / ideal_s);
      worst = std::max(worst, measured_s / ideal_s);
      if (verify_) wrong += run.wrong(iterations);
    }
    const double crossing = subject.info().aliases_host ? 0 : crossing_of(result);
    if (crossing > 0) result["crossing"] = crossing;
    result["worst_ratio"] = worst;
    result["verified"] = verify_ ? Json(wrong == 0) : Json(nullptr);
    return result;
  }

  std::string text(const Json& result) const override {
    Table table;
    table.add({"iterations", "data", "kernel", "ideal", "measured", "measured / ideal", ""});
    const Json& curves = result.at("curves");
    const auto time = [&](const char* curve, std::size_t i) {
      return format_seconds(curves.at(curve)[i].get<double>());
    };
    for (std::size_t i = 0; i < result.at("iterations").size(); ++i) {
      const bool transfers = curves.at("data")[i] > curves.at("kernel")[i];
      table.add({fmt::format("{}", result.at("iterations")[i].get<int>()), time("data", i),
                 time("kernel", i), time("ideal", i), time("measured", i),
                 fmt::format("{:.3f}", result.at("ratio")[i].get<double>()),
                 paint(transfers ? "transfers dominate" : "kernels dominate", Tone::faint)});
    }
    return table.text(2, {0, 1, 2, 3, 4, 5}) + fmt::format("  {}\n", verdict(result));
  }

 private:
  std::vector<int> iterations(int crossing) const {
    if (!iterations_.empty()) return iterations_;
    if (crossing == 0) return {1, 10, 100};
    std::vector<int> sweep;
    for (const double share : kSweep) {
      const int count = std::max(1, static_cast<int>(std::lround(share * crossing)));
      if (sweep.empty() || sweep.back() != count) sweep.push_back(count);
    }
    return sweep;
  }

  /// Returns where the curves cross, by linear interpolation between two rows; 0: nowhere.
  static double crossing_of(const Json& result) {
    const auto rows = kernel_rows(result);
    const double data_s = result.at("curves").at("data")[0].get<double>();
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto& [many, most] = rows[i];
      if (most == data_s) return many;
      if (i == 0 || most < data_s || rows[i - 1].second > data_s) continue;
      const auto& [few, least] = rows[i - 1];
      return few + (many - few) * (data_s - least) / (most - least);
    }
    return 0;
  }

  /// Iterations and time of the kernels of each row, in the order of the iterations.
  static std::vector<std::pair<int, double>> kernel_rows(const Json& result) {
    std::vector<std::pair<int, double>> rows;
    for (std::size_t i = 0; i < result.at("iterations").size(); ++i) {
      rows.emplace_back(result.at("iterations")[i].get<int>(),
                        result.at("curves").at("kernel")[i].get<double>());
    }
    std::sort(rows.begin(), rows.end());
    return rows;
  }

  /// "1 iteration", "1.9 iterations", "40 iterations".
  static std::string in_iterations(double count) {
    std::string number = fmt::format("{:.{}f}", count, count < 10 ? 1 : 0);
    if (number.ends_with(".0")) number.resize(number.size() - 2);
    return fmt::format("{} iteration{}", number, number == "1" ? "" : "s");
  }

  static std::string crossing_in_words(const Json& result) {
    if (result.at("shares_memory").get<bool>()) {
      return "nothing moves: the domain shares memory with the host";
    }
    if (const Json& crossing = result.at("crossing"); !crossing.is_null()) {
      return "transfers and kernels take as long at " + in_iterations(crossing.get<double>());
    }
    const auto rows = kernel_rows(result);
    const double data_s = result.at("curves").at("data")[0].get<double>();
    if (rows.front().second > data_s) {
      return "kernels take longer than the transfers from " + in_iterations(rows.front().first) +
             " on";
    }
    return "transfers take longer than the kernels up to " + in_iterations(rows.back().first);
  }

  static std::string verdict(const Json& result) {
    std::string text = crossing_in_words(result);
    text += fmt::format(
        "; at worst measured / ideal = {}",
        paint(fmt::format("{:.3f}", result.at("worst_ratio").get<double>()), Tone::strong));
    const Json& verified = result.at("verified");
    if (!verified.is_null()) text += verified.get<bool>() ? "; verified" : "; WRONG results";
    return text;
  }

  std::size_t bytes_ = std::size_t{16} << 20, blocks_ = 64, streams_ = 2;
  std::vector<int> iterations_;
  bool verify_ = false;
};

}  // namespace

std::unique_ptr<Experiment> make_overlap() { return std::make_unique<Overlap>(); }

}  // namespace weir::cli::bench
