#include "asian_option/asian_option.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "asian_option/book.hpp"
#include "asian_option/pricing.hpp"
#include "asian_option/valuation.hpp"
#include "common/command_options.hpp"
#include "common/input_error.hpp"
#include "common/membership.hpp"

namespace weir::apps {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kUsualOptions = 64;

/// Published values of calls on the average of all times: spot 100, rate 9 %, one year (Vecer,
/// "A new PDE approach for pricing arithmetic average Asian options", 2001; Zhang 2001 has the
/// same digits).
struct TableEntry {
  double volatility, strike, price;
};
constexpr std::array<TableEntry, 9> kTable = {{{0.1, 95, 8.9118509},
                                               {0.1, 100, 4.9151167},
                                               {0.1, 105, 2.0700634},
                                               {0.3, 95, 11.6558858},
                                               {0.3, 100, 8.8287588},
                                               {0.3, 105, 6.5177905},
                                               {0.5, 95, 15.4427163},
                                               {0.5, 100, 13.0281555},
                                               {0.5, 105, 10.9296247}}};
constexpr std::size_t kTableSteps = 64, kTablePaths = 16384;

class AsianOption final : public Workload {
 public:
  AsianOption(Book book, std::string output, const PricingOptions& wanted,
              std::unique_ptr<const Membership> member, const weir::Runtime& runtime,
              const AppStreams& app_streams)
      : book_(std::move(book)),
        output_(std::move(output)),
        member_(std::move(member)),
        wanted_(wanted),
        runtime_(runtime),
        streams_(app_streams),
        kernels_(runtime),
        pricing_(runtime, app_streams, kernels_, book_.options, wanted) {}

  /// Options.
  std::size_t n() const override { return book_.options.size(); }
  std::size_t tile() const override { return 0; }
  std::size_t tiles() const override { return 0; }
  double operations() const override {
    return PathKernels::kStepOperations / 2 * pricing_.path_steps();
  }

  void reset() override {}
  void enqueue() override { pricing_.start(); }
  void await(std::chrono::nanoseconds timeout) override { pricing_.wait(timeout); }
  void cancel() noexcept override { pricing_.cancel(); }
  void finish() override {
    if (!silent()) values_ = pricing_.valuations();
  }
  void save() const override {
    if (!output_.empty() && !silent()) write_valuations(output_, book_, values_);
  }

  std::vector<Verification> verify(const ReferenceBlas&) const override {
    if (silent()) return {};
    const Deviations geometric = geometric_deviations(book_.options, values_);
    return {{"|geometric - closed form| / standard error", geometric.worst, worst_of(n())},
            {"the same, of all that seldom pay together", geometric.seldom, worst_of(1)},
            {"|price - published| / standard error", table_deviation(), worst_of(kTable.size())}};
  }

  bool silent() const override { return member_ != nullptr && member_->rank() > 0; }

  std::vector<std::pair<std::string, std::string>> remarks() const override {
    const weir_share_info info = pricing_.parts().share().info();
    const double seconds = static_cast<double>(info.makespan_ns) / 1e9;
    auto rows = pricing_.parts().describe([this](const weir_share_part& part, std::size_t place) {
      return pricing_.shape_of(part, place);
    });
    rows.emplace(
        rows.begin(), "paths",
        fmt::format("{:.1f} million steps a second", pricing_.path_steps() / seconds / 1e6));
    for (std::size_t i = 0; i < std::min(values_.size(), kShown); ++i) {
      rows.emplace_back(
          fmt::format("option {}", name_of(i)),
          fmt::format("{:.6g} +- {:.2g}", values_[i].price, values_[i].standard_error));
    }
    return rows;
  }

  std::string details() const override {
    Json json;
    json["results"] = Json::array();
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const Valuation& value = values_[i];
      json["results"].push_back({{"line", name_of(i)},
                                 {"price", value.price},
                                 {"standard_error", value.standard_error},
                                 {"delta", value.delta},
                                 {"vega", value.vega},
                                 {"rho", value.rho}});
    }
    json["rejected"] = Json::array();
    for (const BadLine& bad : book_.bad) {
      json["rejected"].push_back({{"line", bad.line}, {"message", bad.message}});
    }
    json["share"] = describe_share();
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

  std::vector<std::string> complaints() const override {
    std::vector<std::string> lines;
    if (silent()) return lines;
    for (const BadLine& bad : book_.bad) lines.push_back(bad.message);
    return lines;
  }

 private:
  static constexpr std::size_t kShown = 5;

  /// The line of an option in its file, or its number.
  std::size_t name_of(std::size_t option) const {
    return book_.lines.empty() ? option + 1 : book_.lines[option];
  }

  Json describe_share() const {
    const weir::Share& share = pricing_.parts().share();
    const weir_share_info info = share.info();
    const double seconds = static_cast<double>(info.makespan_ns) / 1e9;
    Json json = {{"chunks", info.chunks},
                 {"scheduler", wanted_.scheduler},
                 {"ranks", member_ != nullptr ? member_->ranks() : 1},
                 {"makespan_s", seconds},
                 {"ideal_s", info.ideal_ns / 1e9},
                 {"ratio", pricing_.parts().ratio()},
                 {"path_steps_per_s", pricing_.path_steps() / seconds}};
    const auto parts = share.parts();
    for (std::size_t i = 0; i < parts.size(); ++i) {
      json["places"].push_back({{"rank", parts[i].rank},
                                {"place", parts[i].place},
                                {"shape", pricing_.shape_of(parts[i], i)},
                                {"options", parts[i].items},
                                {"visits", parts[i].visits},
                                {"busy_s", static_cast<double>(parts[i].busy_ns) / 1e9},
                                {"idle_s", static_cast<double>(parts[i].idle_ns) / 1e9},
                                {"lost", parts[i].lost}});
    }
    return json;
  }

  /// Twice as many steps halve the distance to the average of all times.
  double table_deviation() const {
    std::vector<Option> options;
    for (const TableEntry& entry : kTable) {
      for (const std::size_t steps : {kTableSteps, 2 * kTableSteps}) {
        options.push_back({.spot = 100,
                           .strike = entry.strike,
                           .rate = 0.09,
                           .volatility = entry.volatility,
                           .maturity = 1,
                           .steps = steps,
                           .paths = kTablePaths});
      }
    }
    PricingOptions wanted = wanted_;
    wanted.control = true;
    wanted.fabric = nullptr;
    Pricing pricing(runtime_, streams_, kernels_, std::move(options), wanted);
    pricing.start();
    pricing.wait(weir::forever);
    const std::vector<Valuation> values = pricing.valuations();
    double worst = 0;
    for (std::size_t i = 0; i < kTable.size(); ++i) {
      const Valuation &coarse = values[2 * i], &fine = values[2 * i + 1];
      const double error = std::hypot(2 * fine.standard_error, coarse.standard_error);
      worst = worse(worst, in_errors(2 * fine.price - coarse.price - kTable[i].price, error, 1));
    }
    return worst;
  }

  const Book book_;
  const std::string output_;
  const std::unique_ptr<const Membership> member_;  ///< null: the domains name the other ranks
  const PricingOptions wanted_;
  const weir::Runtime& runtime_;
  const AppStreams& streams_;
  const PathKernels kernels_;
  Pricing pricing_;
  std::vector<Valuation> values_;
};

class AsianOptionApplication final : public Application {
 public:
  const char* name() const override { return "asian-option"; }
  const char* example() const override {
    return "weir run asian-option --input book.csv --output prices.csv";
  }
  bool has_tiles() const override { return false; }
  bool has_parts() const override { return true; }
  bool uses(std::string_view option) const override { return option != "--streams"; }
  std::size_t usual_n() const override { return kUsualOptions; }
  const char* summary() const override {
    return "price Asian options: --input book.csv, or --n generated ones";
  }
  const char* input_help() const override { return "Book of options to read, CSV [generated]"; }
  const char* output_help() const override { return "CSV file for the prices"; }
  std::string help() const override { return wanted_.chunks == "help" ? chunk_list() : ""; }
  void add_options(CommandOptions& options) override {
    options.add(
        "--chunk", wanted_.chunks,
        "Policy for the number of options that a place takes at once; 'help' lists all [learned]");
    options
        .add("--shape", shape_,
             "mt: all threads of a place price one option; mo: each thread prices its own; hybrid: "
             "mo on the host, mt elsewhere; auto: the faster one [auto]")
        .one_of({"mt", "mo", "hybrid", "auto"});
    options
        .add(
            "--control", [this](const std::string& word) { wanted_.control = word == "on"; },
            "on or off: whether the geometric average is a control variate [on]")
        .one_of({"on", "off"});
    options
        .add("--scheduler", wanted_.scheduler,
             "onesided: ranks fetch options from a counter; master: rank 0 sends them "
             "[onesided]")
        .one_of({"onesided", "master"});
    options
        .add("--progress", progress_,
             "Threads that drive messages between ranks. thread: a progress thread; manual: only "
             "waiting threads [WEIR_PROGRESS, or both]")
        .one_of({"thread", "manual"});
  }
  void register_kernels(const Parameters&, const weir::Runtime& runtime) const override {
    PathKernels{runtime};
  }
  std::unique_ptr<Workload> prepare(const Parameters& parameters, const weir::Runtime& runtime,
                                    const AppStreams& app_streams) override {
    wanted_.seed = parameters.seed;
    wanted_.shape = shape_ == "mt"       ? OptionShape::mt
                    : shape_ == "mo"     ? OptionShape::mo
                    : shape_ == "hybrid" ? OptionShape::hybrid
                                         : OptionShape::automatic;
    if (parameters.single) fail_input("{} computes in double: leave --precision out", name());
    Book book =
        parameters.input.empty()
            ? generate_book(parameters.n > 0 ? parameters.n : kUsualOptions, parameters.seed)
            : read_book(parameters.input);
    std::unique_ptr<Membership> member;
    if (!names_ranks(runtime)) member = std::make_unique<Membership>(progress());
    wanted_.fabric = member != nullptr ? member->fabric() : nullptr;
    return std::make_unique<AsianOption>(std::move(book), parameters.output, wanted_,
                                         std::move(member), runtime, app_streams);
  }

 private:
  /// Whether ranks are domains of rank 0, which then prices alone.
  static bool names_ranks(const weir::Runtime& runtime) {
    for (std::size_t i = 0; i < runtime.domain_count(); ++i) {
      if (std::string(runtime.domain(i).info().backend) == "rank") return true;
    }
    return false;
  }
  const char* progress() const noexcept {
    return progress_.empty() ? nullptr : progress_ == "manual" ? "caller" : "thread";
  }

  PricingOptions wanted_;
  std::string shape_ = "auto", progress_;
};

}  // namespace

std::unique_ptr<Application> make_asian_option() {
  return std::make_unique<AsianOptionApplication>();
}

}  // namespace weir::apps
