// hBench: blocks to a domain and back.
#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "bench/experiments.hpp"

namespace weir::cli::bench {

namespace {

constexpr std::size_t kMostBlocks = 16;

/// How many blocks go each way at the points of a curve; "hd" is host to device.
struct Proportion {
  const char* name;
  const char* words;
  std::size_t (*hd)(std::size_t step);
  std::size_t (*dh)(std::size_t step);
};

constexpr std::size_t all(std::size_t) { return kMostBlocks; }
constexpr std::size_t rising(std::size_t step) { return step; }
constexpr std::size_t falling(std::size_t step) { return kMostBlocks - step; }

constexpr std::array<Proportion, 4> kProportions = {{
    {"CC", "16 in, 16 out", all, all},
    {"IC", "0 to 16 in, 16 out", rising, all},
    {"CD", "16 in, 16 to 0 out", all, falling},
    {"ID", "0 to 16 in, 16 to 0 out", rising, falling},
}};

class Transfers final : public Experiment {
 public:
  const char* name() const override { return "transfers"; }
  const char* summary() const override {
    return "Copy blocks both ways: is the link full or half duplex?";
  }
  void add_options(CLI::App& app) override {
    app.add_option("--block", block_bytes_, "Size of a block, as 1MiB [1MiB]")
        ->transform(CLI::AsSizeValue(false))
        ->check(CLI::Range(std::size_t{4}, std::size_t{1} << 32));
  }

  Json measure(const Subject& subject, const Kernels& kernels, Progress& progress) override {
    const Arrays arrays(subject.runtime(), kernels, kMostBlocks, block_bytes_);
    const Rig rig(subject, 1, 2);
    const auto seconds = [&](std::size_t hd, std::size_t dh) {
      return subject.seconds([&] {
        for (std::size_t block = 0; block < std::max(hd, dh); ++block) {
          if (block < hd) arrays.upload(rig[0], block);
          if (block < dh) arrays.download(rig[1], block);
        }
      });
    };
    Json result = subject.facts();
    result["block_bytes"] = block_bytes_;
    result["cases"] = Json::array();
    std::size_t done = 0;
    for (const Proportion& proportion : kProportions) {
      Json curve = {{"case", proportion.name}, {"blocks", proportion.words}};
      for (std::size_t step = 0; step <= kMostBlocks; ++step) {
        progress.update(done++, kProportions.size() * (kMostBlocks + 1), "copying");
        const std::size_t hd = proportion.hd(step), dh = proportion.dh(step);
        curve["hd"].push_back(hd);
        curve["dh"].push_back(dh);
        curve["seconds"].push_back(seconds(hd, dh));
      }
      result["cases"].push_back(std::move(curve));
    }
    add_verdict(subject.info().aliases_host, result);
    return result;
  }

  std::string text(const Json& result) const override {
    Table table;
    table.add({"step", "CC", "IC", "CD", "ID"});
    for (std::size_t step = 0; step <= kMostBlocks; step += 2) {
      std::vector<std::string> row = {fmt::format("{}", step)};
      for (const Json& curve : result.at("cases")) {
        row.push_back(format_seconds(curve.at("seconds")[step].get<double>()));
      }
      table.add(std::move(row));
    }
    return table.text(2, {0, 1, 2, 3, 4}) + fmt::format("  {}\n", verdict(result));
  }

 private:
  /// Eight blocks each way against sixteen one way: as long on a link that serves one direction at
  /// a time, half as long on one that serves both.
  static void add_verdict(bool aliases_host, Json& result) {
    const Json& seconds = result.at("cases")[3].at("seconds");
    const double one_way = (seconds.front().get<double>() + seconds.back().get<double>()) / 2;
    const double both_ways = seconds[kMostBlocks / 2].get<double>();
    const double bytes = result.at("block_bytes").get<double>() * kMostBlocks;
    constexpr double kBetween = 0.75;
    const bool moves = !aliases_host && one_way > 0;
    result["both_ways_over_one_way"] = moves ? both_ways / one_way : 0;
    result["gbps"] = moves ? bytes / one_way / 1e9 : 0;
    result["duplex"] = !moves ? "none" : both_ways / one_way > kBetween ? "half" : "full";
  }

  static std::string verdict(const Json& result) {
    const auto duplex = result.at("duplex").get<std::string>();
    if (duplex == "none") return "nothing moves: the domain shares memory with the host";
    return fmt::format(
        "{} duplex: 8 blocks each way take {:.2f} times as long as 16 one way; {:.2f} GB/s",
        paint(duplex, Tone::strong), result.at("both_ways_over_one_way").get<double>(),
        result.at("gbps").get<double>());
  }

  std::size_t block_bytes_ = std::size_t{1} << 20;
};

}  // namespace

std::unique_ptr<Experiment> make_transfers() { return std::make_unique<Transfers>(); }

}  // namespace weir::cli::bench
