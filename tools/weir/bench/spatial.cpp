// hBench: kernels on more and more places.
#include <algorithm>
#include <limits>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "bench/experiments.hpp"
#include "common/counted.hpp"

namespace weir::cli::bench {

namespace {

constexpr std::size_t kBlocks = 128;
constexpr std::size_t kMostSwept =
    64;  ///< of larger numbers of cores only divisors and powers of 2

class Spatial final : public Experiment {
 public:
  const char* name() const override { return "spatial"; }
  const char* summary() const override {
    return "Time of 128 kernels for increasing numbers of places, without transfers";
  }
  void add_options(CLI::App& app) override {
    app.add_option("--places", places_, "Numbers of places, as 1,2,4 [all]")
        ->delimiter(',')
        ->check(CLI::Range(1, std::numeric_limits<int>::max()));
    app.add_option("--sizes", sizes_, "Block sizes, such as 32KiB,1MiB [32KiB,128KiB,512KiB]")
        ->delimiter(',')
        ->transform(CLI::AsSizeValue(false))
        ->check(CLI::Range(std::size_t{4}, std::size_t{1} << 32));
    app.add_option("--iterations", iterations_, "Iterations of the kernel [100]")
        ->check(CLI::Range(1, 1 << 20));
  }

  Json measure(const Subject& subject, const Kernels& kernels, Progress& progress) override {
    Json result = subject.facts();
    result["whole_cores"] = subject.whole_cores();
    result["blocks"] = kBlocks;
    result["iterations"] = iterations_;
    const std::vector<std::size_t> sweep = sweep_of(subject);
    result["places"] = sweep;
    result["series"] = Json::array();
    std::size_t done = 0;
    for (const std::size_t size : sizes_) {
      const Arrays arrays(subject.runtime(), kernels, kBlocks, size);
      Json series = {{"block_bytes", size}, {"ref_s", reference(subject, arrays)}};
      for (const std::size_t places : sweep) {
        progress.update(done++, sizes_.size() * sweep.size(), "computing");
        series["seconds"].push_back(divided(subject, arrays, places));
      }
      describe_best(sweep, series);
      result["series"].push_back(std::move(series));
    }
    return result;
  }

  std::string text(const Json& result) const override {
    Table table;
    std::vector<std::string> head = {"places"};
    for (const Json& series : result.at("series")) {
      head.push_back(format_bytes(series.at("block_bytes").get<std::uint64_t>()));
    }
    table.add(std::move(head));
    const auto cores = result.at("whole_cores").get<std::size_t>();
    std::vector<std::string> ref = {"ref"};
    for (const Json& series : result.at("series")) ref.push_back(cell(series.at("ref_s"), false));
    table.add(std::move(ref));
    for (std::size_t i = 0; i < result.at("places").size(); ++i) {
      const auto places = result.at("places")[i].get<std::size_t>();
      const bool divides = cores % places == 0;
      std::vector<std::string> row = {
          paint(fmt::format("{}", places), divides ? Tone::strong : Tone::plain)};
      for (const Json& series : result.at("series")) {
        row.push_back(cell(series.at("seconds")[i], series.at("best_places") == places));
      }
      table.add(std::move(row));
    }
    std::vector<std::size_t> right(sizes_.size() + 1);
    for (std::size_t i = 0; i < right.size(); ++i) right[i] = i;
    return table.text(2, right) +
           fmt::format("  ref: one kernel, not divided; {}; divisors of this number are bold\n",
                       apps::counted(cores, "core"));
  }

 private:
  static std::string cell(const Json& seconds, bool best) {
    if (seconds.is_null()) return "-";
    return paint(format_seconds(seconds.get<double>()), best ? Tone::good : Tone::plain);
  }

  static void place_blocks(const Rig& rig, const Arrays& arrays) {
    for (std::size_t block = 0; block < kBlocks; ++block) arrays.upload(rig[block], block);
  }

  double reference(const Subject& subject, const Arrays& arrays) const {
    const Rig rig(subject, 1);
    place_blocks(rig, arrays);
    subject.runtime().synchronize();
    return subject.seconds([&] { arrays.add(rig[0], iterations_, 0, kBlocks); });
  }

  /// Returns null when the domain cannot be divided so.
  Json divided(const Subject& subject, const Arrays& arrays, std::size_t places) const {
    try {
      const Rig rig(subject, places);
      return subject.seconds([&] {
        for (std::size_t block = 0; block < kBlocks; ++block) {
          arrays.add(rig[block], iterations_, block);
        }
      });
    } catch (const weir::Error& error) {
      if (!places_.empty() || error.status() != WEIR_STATUS_UNSUPPORTED) throw;
      return nullptr;
    }
  }

  static void describe_best(const std::vector<std::size_t>& sweep, Json& series) {
    double best = std::numeric_limits<double>::infinity();
    series["best_places"] = nullptr;
    for (std::size_t i = 0; i < sweep.size(); ++i) {
      const Json& seconds = series.at("seconds")[i];
      if (seconds.is_null() || seconds.get<double>() >= best) continue;
      best = seconds.get<double>();
      series["best_places"] = sweep[i];
    }
  }

  std::vector<std::size_t> sweep_of(const Subject& subject) const {
    if (!places_.empty()) return places_;
    const std::size_t cores = subject.whole_cores();
    std::vector<std::size_t> sweep;
    for (std::size_t places = 1; places <= cores; ++places) {
      const bool special = cores % places == 0 || (places & (places - 1)) == 0;
      if (cores <= kMostSwept || special) sweep.push_back(places);
    }
    return sweep;
  }

  std::vector<std::size_t> places_;
  std::vector<std::size_t> sizes_ = {std::size_t{32} << 10, std::size_t{128} << 10,
                                     std::size_t{512} << 10};
  int iterations_ = 100;
};

}  // namespace

std::unique_ptr<Experiment> make_spatial() { return std::make_unique<Spatial>(); }

}  // namespace weir::cli::bench
