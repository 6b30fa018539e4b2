// hBench: how well transfers and kernels overlap.
#include <algorithm>
#include <cmath>

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

  /// Returns the iterations with which the kernels take as long as the transfers, by a line through
  /// two of their times; 0 where nothing moves or no number of iterations does.
  int crossing(double data_s) const {
    if (data_s <= 0) return 0;
    int few = 1, many = 2;
    const double least = kernel(few);
    double most = kernel(many);
    while (most < data_s && many < kMostIterations) most = kernel(many *= 4);
    const double slope = (most - least) / (many - few);
    if (!(slope > 0)) return 0;
    const double found = few + (data_s - least) / slope;
    return found <= kMostIterations ? static_cast<int>(std::max(found, 1.0)) : 0;
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
    return "Transfers against kernels: how close to the longer of them is both?";
  }
  void add_options(CLI::App& app) override {
    app.add_option("--size", bytes_, "Size of each of the two arrays [16MiB]")
        ->transform(CLI::AsSizeValue(false))
        ->check(CLI::Range(std::size_t{1} << 12, std::size_t{1} << 36));
    app.add_option("--blocks", blocks_, "Blocks that they are divided into [64]")
        ->check(CLI::Range(1, 1024));
    app.add_option("--streams", streams_, "Streams that share the blocks [2]")
        ->check(CLI::Range(1, 64));
    app.add_option("--iterations", iterations_,
                   "Of the kernel, as 10,20,40 [around the crossing of transfers and kernels]")
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
    const int crossing = subject.info().aliases_host ? 0 : run.crossing(data_s);
    result["crossing"] = crossing == 0 ? Json(nullptr) : Json(crossing);
    Json& curves = result["curves"];
    std::size_t wrong = 0, done = 0;
    double worst = 0;
    const std::vector<int> sweep = iterations(crossing);
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

  static std::string verdict(const Json& result) {
    std::string text = "no number of iterations takes as long as the transfers";
    if (result.at("shares_memory").get<bool>()) {
      text = "nothing moves: the domain shares memory with the host";
    } else if (!result.at("crossing").is_null()) {
      text = fmt::format("transfers and kernels take as long at {} iterations",
                         result.at("crossing").get<int>());
    }
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
