#include "scatter/scatter.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <weir/fabric.h>
#include <nlohmann/json.hpp>

#include "common/command_options.hpp"
#include "common/input_error.hpp"
#include "scatter/histogram.hpp"
#include "scatter/keys.hpp"

namespace weir::apps {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<Preset, 3> kPresets = {
    {{"tiny", 100'000, 0, 0, 0}, {"small", 4'000'000, 0, 0, 0}, {"paper", 100'000'000, 0, 0, 0}}};
constexpr std::size_t kMostBins = std::size_t{1} << 32;
constexpr std::size_t kLongestKmer = 14;

struct ScatterOptions {
  std::string pattern = "random";
  std::size_t bins = std::size_t{1} << 20;
  std::size_t kmer = 11;
  std::string coalesce = "on";
  unsigned simulate = 0;
  std::size_t delivery = 0;  ///< their messages come in an order drawn from this; 0: as they come
  Travel travel;
};

/// This process's membership of the fabric.
class Membership {
 public:
  Membership() { weir::check(weir_fabric_open(nullptr, &fabric_)); }
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;
  ~Membership() { weir_fabric_close(fabric_); }

  weir_fabric* handle() const noexcept { return fabric_; }
  unsigned rank() const noexcept { return weir_fabric_rank(fabric_); }
  unsigned ranks() const noexcept { return weir_fabric_ranks(fabric_); }

  std::int64_t reduce(std::int64_t value, weir_fabric_op op = WEIR_FABRIC_OP_SUM) const {
    weir::check(weir_fabric_reduce_int64(fabric_, &value, 1, op, WEIR_FOREVER));
    return value;
  }

 private:
  weir_fabric* fabric_ = nullptr;
};

/// The work of ranks, in one process or in several.
class Scatter : public Workload {
 public:
  Scatter(std::unique_ptr<Keys> keys, ScatterOptions options)
      : keys_(std::move(keys)), options_(std::move(options)) {}

  /// Keys.
  std::size_t n() const override { return static_cast<std::size_t>(counts_.items); }
  std::size_t tile() const override { return 0; }
  std::size_t tiles() const override { return 0; }
  double operations() const override { return 0; }

  void reset() override {}
  void enqueue() override {}
  void await(std::chrono::nanoseconds timeout) override {
    const auto start = std::chrono::steady_clock::now();
    run(timeout);
    seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  void cancel() noexcept override { cancelled_ = true; }
  void finish() override { counts_ = total(); }

  std::vector<Verification> verify(const ReferenceBlas&) const override {
    std::int64_t wrong = 0, sum = 0;
    for (const HistogramPart& part : parts()) {
      wrong += static_cast<std::int64_t>(part.wrong_bins(*keys_));
      sum += part.sum();
    }
    const std::int64_t lost = together(sum) - counts_.items;
    return {{"bins that differ from a sequential count", static_cast<double>(together(wrong)), 0},
            {"|sum of the table - updates|", static_cast<double>(std::abs(lost)), 0}};
  }

  std::vector<Figure> figures() const override {
    return {{"updates a second", static_cast<double>(counts_.items) / seconds_},
            {"bytes on the wire for each of payload", wire_ratio()}};
  }

  std::vector<std::pair<std::string, std::string>> remarks() const override {
    return {
        {"updates", fmt::format("{} {}, {:.2f} million a second", counts_.items, keys_->describe(),
                                static_cast<double>(counts_.items) / seconds_ / 1e6)},
        {"messages", fmt::format("{} on {} ranks, {} bytes for {} of payload", counts_.blocks,
                                 ranks(), counts_.wire_bytes, counts_.item_bytes)},
        {"saved", fmt::format("{} updates joined, {} combined", counts_.joined, counts_.combined)}};
  }

  std::string details() const override {
    Json json;
    json["scatter"] = {{"ranks", ranks()},
                       {"keys", keys_->describe()},
                       {"bins", keys_->bins()},
                       {"coalesce", options_.travel.coalesce},
                       {"items", counts_.items},
                       {"seconds", seconds_},
                       {"items_per_s", static_cast<double>(counts_.items) / seconds_},
                       {"payload_bytes", counts_.item_bytes},
                       {"wire_bytes", counts_.wire_bytes},
                       {"wire_per_payload", wire_ratio()},
                       {"blocks", counts_.blocks},
                       {"joined", counts_.joined},
                       {"combined", counts_.combined},
                       {"most_blocks_in_flight", counts_.most_in_flight}};
    return json.dump();
  }

 protected:
  virtual void run(std::chrono::nanoseconds timeout) = 0;
  virtual unsigned ranks() const = 0;
  /// The parts that are in this process.
  virtual std::vector<HistogramPart> parts() const = 0;
  /// The sum over all processes.
  virtual std::int64_t together(std::int64_t value) const = 0;
  virtual std::int64_t greatest(std::int64_t value) const = 0;

  const Keys& keys() const noexcept { return *keys_; }
  const ScatterOptions& options() const noexcept { return options_; }
  const std::atomic<bool>& cancelled() const noexcept { return cancelled_; }

 private:
  ScatterCounts total() const {
    ScatterCounts sum;
    for (const HistogramPart& part : parts()) {
      sum.items += part.counts.items;
      sum.item_bytes += part.counts.item_bytes;
      sum.wire_bytes += part.counts.wire_bytes;
      sum.blocks += part.counts.blocks;
      sum.joined += part.counts.joined;
      sum.combined += part.counts.combined;
      sum.most_in_flight = std::max(sum.most_in_flight, part.counts.most_in_flight);
    }
    for (std::int64_t* const count :
         {&sum.items, &sum.item_bytes, &sum.wire_bytes, &sum.blocks, &sum.joined, &sum.combined}) {
      *count = together(*count);
    }
    sum.most_in_flight = greatest(sum.most_in_flight);
    return sum;
  }

  double wire_ratio() const {
    if (counts_.item_bytes == 0) return 0;
    return static_cast<double>(counts_.wire_bytes) / static_cast<double>(counts_.item_bytes);
  }

  std::unique_ptr<Keys> keys_;
  ScatterOptions options_;
  std::atomic<bool> cancelled_{false};
  double seconds_ = 0;
  ScatterCounts counts_;
};

/// A rank of the fabric that this process was started in, or alone.
class ProcessScatter final : public Scatter {
 public:
  ProcessScatter(std::unique_ptr<Keys> keys, ScatterOptions options)
      : Scatter(std::move(keys), std::move(options)),
        histogram_(fabric_.handle(), Scatter::keys(), Scatter::options().travel) {}

  bool silent() const override { return fabric_.rank() > 0; }

 private:
  void run(std::chrono::nanoseconds timeout) override { histogram_.run(cancelled(), timeout); }
  unsigned ranks() const override { return fabric_.ranks(); }
  std::vector<HistogramPart> parts() const override { return {histogram_.part()}; }
  std::int64_t together(std::int64_t value) const override { return fabric_.reduce(value); }
  std::int64_t greatest(std::int64_t value) const override {
    return fabric_.reduce(value, WEIR_FABRIC_OP_MAX);
  }

  Membership fabric_;
  Histogram histogram_;
};

/// All ranks in this process.
class SimulatedScatter final : public Scatter {
 public:
  using Scatter::Scatter;

 private:
  struct Call {
    SimulatedScatter& scatter;
    std::chrono::nanoseconds timeout;
  };

  void run(std::chrono::nanoseconds timeout) override {
    parts_.assign(ranks(), {});
    failure_ = nullptr;
    Call call{*this, timeout};
    weir_fabric_options fabric_options = WEIR_FABRIC_OPTIONS_INIT;
    fabric_options.seed = options().delivery;
    const weir_status status = weir_fabric_simulate(&fabric_options, ranks(), run_rank, &call);
    if (failure_ != nullptr) std::rethrow_exception(failure_);
    weir::check(status);
  }

  static weir_status run_rank(weir_fabric* fabric, void* payload) noexcept {
    const Call& call = *static_cast<Call*>(payload);
    SimulatedScatter& scatter = call.scatter;
    try {
      Histogram histogram(fabric, scatter.keys(), scatter.options().travel);
      histogram.run(scatter.cancelled(), call.timeout);
      scatter.parts_[weir_fabric_rank(fabric)] = histogram.part();
      return WEIR_STATUS_OK;
    } catch (...) {
      const std::lock_guard lock(scatter.mutex_);
      if (scatter.failure_ == nullptr) scatter.failure_ = std::current_exception();
      return WEIR_STATUS_KERNEL_ERROR;
    }
  }

  unsigned ranks() const override { return options().simulate; }
  std::vector<HistogramPart> parts() const override { return parts_; }
  std::int64_t together(std::int64_t value) const override { return value; }
  std::int64_t greatest(std::int64_t value) const override { return value; }

  std::vector<HistogramPart> parts_;
  std::mutex mutex_;
  std::exception_ptr failure_;  ///< the first of a rank
};

KeyPattern pattern_of(const std::string& word) {
  if (word == "stream") return KeyPattern::stream;
  return word == "repeat" ? KeyPattern::repeat : KeyPattern::random;
}

class ScatterApplication final : public Application {
 public:
  const char* name() const override { return "scatter"; }
  const char* example() const override {
    return "weir run scatter --input genome.fa --kmer 11 --ranks 2";
  }
  bool has_tiles() const override { return false; }
  bool runs_on_ranks() const override { return false; }
  bool has_parts() const override { return true; }
  const char* summary() const override {
    return "count keys in a table that is distributed over ranks";
  }
  std::span<const Preset> presets() const override { return kPresets; }
  bool has_precision() const override { return false; }
  bool uses(std::string_view option) const override {
    return option != "--streams" && option != "--places" && option != "--output";
  }
  const char* input_help() const override {
    return "Text, to count words, or FASTA, to count k-mers [--n generated keys]";
  }
  void add_options(CommandOptions& options) override {
    options
        .add("--pattern", options_.pattern,
             "Access pattern of the keys: stream, random or repeat [random]")
        .one_of({"stream", "random", "repeat"});
    options.add("--bins", options_.bins, "Number of bins of the table; for k-mers 4^k [1048576]")
        .within(std::size_t{1}, kMostBins);
    options.add("--kmer", options_.kmer, "Bases of a k-mer [11]")
        .within(std::size_t{1}, kLongestKmer);
    options
        .add("--coalesce", options_.coalesce,
             "on: combine updates into messages; off: send each update alone [on]")
        .one_of({"on", "off"});
    options.add("--block", options_.travel.block_bytes, "Bytes of a message [64512]")
        .within(std::size_t{1} << 10, std::size_t{4} << 20);
    options
        .add("--age", options_.travel.age_us,
             "Age in microseconds at which a partial message is sent; -1: never [1000]")
        .within(std::int64_t{-1}, std::int64_t{1'000'000'000});
    options.add("--producers", options_.travel.producers, "Producer threads per rank [1]")
        .within(std::size_t{1}, std::size_t{64});
    const CommandOption simulate = options
                                       .add("--simulate", options_.simulate,
                                            "Run as this many ranks on threads of this process")
                                       .within(1u, 256u);
    options
        .add("--delivery", options_.delivery,
             "Seed for the delivery order of messages [0: order of arrival]")
        .needs(simulate);
  }
  std::unique_ptr<Workload> prepare(const Parameters& parameters, const weir::Runtime&,
                                    const AppStreams&) override {
    const Parameters filled = with_usual(parameters, kPresets[1]);
    if (!filled.output.empty()) fail_input("--output {}: scatter writes no file", filled.output);
    ScatterOptions options = options_;
    options.travel.coalesce = options.coalesce == "on";
    auto keys = filled.input.empty() ? generate_keys(filled.n, options.bins,
                                                     pattern_of(options.pattern), filled.seed)
                                     : read_keys(filled.input, options.bins, options.kmer);
    if (options.simulate > 0) {
      return std::make_unique<SimulatedScatter>(std::move(keys), std::move(options));
    }
    return std::make_unique<ProcessScatter>(std::move(keys), std::move(options));
  }

 private:
  ScatterOptions options_;
};

}  // namespace

std::unique_ptr<Application> make_scatter() { return std::make_unique<ScatterApplication>(); }

}  // namespace weir::apps
