// hBench: the overhead of the runtime.
#include <algorithm>
#include <chrono>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "bench/experiments.hpp"
#include "interruption.hpp"

namespace weir::cli::bench {

namespace {

constexpr std::size_t kParts = 1024;  ///< regions of independent actions, used round robin
constexpr std::size_t kMostPlaces = 64;
constexpr std::size_t kRounds = 3;

/// Returns the least time of several rounds divided by the number of operations in a round, on the
/// clock of the machine, also where a device has one of its own.
template <class Work>
double nanoseconds_each(std::size_t count, Work&& work) {
  using Clock = std::chrono::steady_clock;
  std::chrono::duration<double, std::nano> least = std::chrono::hours(1);
  for (std::size_t round = 0; round <= kRounds; ++round) {
    Interruption::check();
    const auto start = Clock::now();
    work();
    if (round > 0) least = std::min<decltype(least)>(least, Clock::now() - start);
  }
  return least.count() / static_cast<double>(count);
}

class Overhead final : public Experiment {
 public:
  const char* name() const override { return "overhead"; }
  const char* summary() const override {
    return "Cost of an action, a wait, a dependence and a place";
  }
  bool repeats() const override { return false; }

  void add_options(CLI::App& app) override {
    app.add_option("--actions", actions_, "Empty kernels per round [2000]")
        ->check(CLI::Range(2, 10'000'000));
  }

  Json measure(const Subject& subject, const Kernels& kernels, Progress& progress) override {
    progress.update(0, 0, "counting nanoseconds");
    const weir::Buffer data = subject.runtime().buffer(2 * kParts * sizeof(float), "parts");
    const std::size_t cores = subject.info().cores;
    Json result = subject.facts();
    result["actions"] = actions_;
    const auto act = [&](const weir::Stream& stream, std::size_t part) {
      return stream.compute(kernels.empty,
                            {weir::write(data.elements<float>(part % kParts, 1)),
                             weir::read(data.elements<float>(kParts + part % kParts, 1))},
                            {0.F, 0, 0}, "empty");
    };
    {
      const Rig rig(subject, std::min<std::size_t>(2, cores), cores > 1 ? 1 : 2);
      result["ns"]["action"] = nanoseconds_each(actions_, [&] {
        for (std::size_t i = 0; i < actions_; ++i) act(rig[0], i);
        rig[0].synchronize();
      });
      const std::size_t waits = std::max<std::size_t>(1, actions_ / 10);
      result["ns"]["event_wait"] = nanoseconds_each(waits, [&] {
        for (std::size_t i = 0; i < waits; ++i) act(rig[0], i).wait();
      });
      result["ns"]["cross_stream_dependence"] = nanoseconds_each(actions_, [&] {
        weir::Event before = act(rig[0], 0);
        for (std::size_t i = 1; i < actions_; ++i) {
          rig[i].wait(before);
          before = act(rig[i], i);
        }
        subject.runtime().synchronize();
      });
    }
    const std::size_t places = std::min(cores, kMostPlaces);
    result["places"] = places;
    result["ns"]["place"] =
        nanoseconds_each(places, [&] { static_cast<void>(Rig(subject, places)); });
    return result;
  }

  std::string text(const Json& result) const override {
    Table table;
    const auto row = [&](const char* key, std::string words) {
      table.add({format_seconds(result.at("ns").at(key).get<double>() / 1e9), std::move(words)});
    };
    row("action", "an empty kernel among many in a stream");
    row("event_wait", "an empty kernel and the wait for its event");
    row("cross_stream_dependence", "an empty kernel that waits for one of another stream");
    row("place", fmt::format("a place with a stream, of {}: made and destroyed",
                             result.at("places").get<std::size_t>()));
    return table.text(2, {0});
  }

 private:
  std::size_t actions_ = 2000;
};

}  // namespace

std::unique_ptr<Experiment> make_overhead() { return std::make_unique<Overhead>(); }

}  // namespace weir::cli::bench
