#include "bench/messages.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <weir/conveyor.hpp>
#include <weir/fabric.hpp>

#include "command_line.hpp"
#include "description.hpp"
#include "ranks.hpp"

namespace weir::cli::bench {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kBytes = 32u << 20;  ///< of a measurement of bandwidth, at most
constexpr std::size_t kMessages = 20'000;  ///< likewise
constexpr std::size_t kRoundTrips = 200;   ///< of a measurement of latency
constexpr std::size_t kLargestItem = 256;  ///< of a conveyor
constexpr unsigned kFrom = 0, kTo = 1;

template <class Code>
double seconds_of(const Code& code) {
  const auto begin = std::chrono::steady_clock::now();
  code();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// The ways to send data of one size from rank 0 to rank 1. All ranks call the same functions in
/// the same order; rank 0 gets the seconds.
class Sender {
 public:
  Sender(Fabric& fabric, std::size_t largest)
      : fabric_(fabric),
        data_(largest, std::byte{1}),
        window_(fabric, fabric.rank() == kTo ? largest : 1) {
    fabric.listen([this](unsigned, std::span<const std::byte>) { ++received_; });
  }
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;
  ~Sender() { fabric_.listen({}); }

  /// Until an answer says that all have been received.
  double messages(std::size_t bytes, std::size_t count) {
    return together([&] {
      if (is(kFrom)) {
        for (std::size_t i = 0; i < count; ++i) fabric_.send(kTo, data(bytes));
        receive(1);
      } else if (is(kTo)) {
        receive(count);
        fabric_.send(kFrom, data(1));
      }
    });
  }

  double round_trips(std::size_t bytes, std::size_t count) {
    return together([&] {
      for (std::size_t i = 0; i < count; ++i) {
        if (is(kFrom)) fabric_.send(kTo, data(bytes));
        if (is(kFrom) || is(kTo)) receive(1);
        if (is(kTo)) fabric_.send(kFrom, data(bytes));
      }
    });
  }

  /// `each`: waits for every put.
  double puts(std::size_t bytes, std::size_t count, bool each) {
    return together([&] {
      if (!is(kFrom)) return;
      for (std::size_t i = 0; i < count; ++i) {
        window_.put(kTo, 0, data(bytes));
        if (each) window_.flush(kTo);
      }
      window_.flush(kTo);
    });
  }

  /// Items of at most kLargestItem bytes.
  double items(std::size_t bytes, std::size_t count) {
    ConveyorOptions options;
    options.memory = window_.memory();
    const Conveyor conveyor(fabric_, options);
    const Producer producer = conveyor.producer();
    return together([&] {
      const std::uint64_t offset = 0;
      for (std::size_t i = 0; is(kFrom) && i < count; ++i) {
        check(weir_producer_put(producer.handle(), kTo, &offset, data_.data(), bytes, 1));
      }
      producer.flush();
      conveyor.finish();
    });
  }

 private:
  bool is(unsigned rank) const { return fabric_.rank() == rank; }
  std::span<const std::byte> data(std::size_t bytes) const { return std::span(data_).first(bytes); }

  void receive(std::size_t count) {
    while (received_ < count) fabric_.progress();
    received_ -= count;
  }

  template <class Code>
  double together(const Code& code) {
    fabric_.barrier();
    const double seconds = seconds_of(code);
    fabric_.barrier();
    return seconds;
  }

  Fabric& fabric_;
  std::vector<std::byte> data_;
  std::atomic<std::size_t> received_{0};
  Window<std::byte> window_;
};

}  // namespace

void Messages::add_options(CLI::App& app) {
  app.add_option("--ranks", ranks_, "Start so many ranks on this machine [those of mpirun]")
      ->check(CLI::Range(2, 1024));
  app.add_option("--sizes", sizes_, "Bytes of a message, as 8,64,4096 [8 to 4194304]")
      ->delimiter(',')
      ->check(CLI::Range(1, 1 << 26));
  app.add_option("--repeat", repeat_, "Runs of each point; the median counts [5]")
      ->check(CLI::Range(1, 1'000'000));
  app.add_flag("--json", json_, "Print one JSON object");
}

ExitCode Messages::run() {
  if (ranks_ > 0 && !is_rank()) return run_on_ranks(ranks_);
  const Json results = measure();
  if (results.is_null()) return ExitCode::ok;  // another rank
  print(json_ ? results.dump(2, ' ', false, Json::error_handler_t::replace) + "\n" : text(results));
  return ExitCode::ok;
}

Messages::Json Messages::measure() {
  Fabric fabric;
  if (fabric.ranks() < 2) {
    throw Error(WEIR_STATUS_INVALID_ARGUMENT,
                "messages need two ranks: weir bench messages --ranks 2, or mpirun -n 2 weir bench "
                "messages");
  }
  Sender sender(fabric, *std::max_element(sizes_.begin(), sizes_.end()));
  const auto median = [&](const auto& once) {
    std::vector<double> all;
    for (std::size_t i = 0; i <= repeat_; ++i) all.push_back(once());
    std::sort(all.begin() + 1, all.end());  // the first is a warm-up
    return all[1 + repeat_ / 2];
  };
  Json points = Json::array();
  for (const std::size_t bytes : sizes_) {
    if (fabric.rank() == kFrom) progress_.update(points.size(), sizes_.size(), "sending");
    const std::size_t count = std::clamp<std::size_t>(kBytes / bytes, 8, kMessages);
    const double gigabytes = static_cast<double>(count * bytes) / 1e9;
    const bool joins = bytes % 8 == 0 && bytes <= kLargestItem;
    const double messages = median([&] { return sender.messages(bytes, count); });
    const double puts = median([&] { return sender.puts(bytes, count, false); });
    const double items = joins ? median([&] { return sender.items(bytes, count); }) : 0;
    const std::size_t trips = std::clamp<std::size_t>(kBytes / bytes, 8, kRoundTrips);
    const double there_and_back = median([&] { return sender.round_trips(bytes, trips); });
    const double each = median([&] { return sender.puts(bytes, trips, true); });
    points.push_back({{"bytes", bytes},
                      {"messages_gb_per_s", gigabytes / messages},
                      {"puts_gb_per_s", gigabytes / puts},
                      {"joined_gb_per_s", joins ? Json(gigabytes / items) : Json(nullptr)},
                      {"half_round_trip_s", there_and_back / static_cast<double>(2 * trips)},
                      {"put_s", each / static_cast<double>(trips)}});
  }
  progress_.clear();
  if (fabric.rank() != kFrom) return {};
  return {{"schema", "weir.bench/1"},
          {"benchmark", "messages"},
          {"command", command_line()},
          {"link", fabric.link(kTo)},
          {"ranks", fabric.ranks()},
          {"points", points},
          {"machine", describe(open_runtime({"null", ""})).at("machine")}};
}

std::string Messages::text(const Json& results) const {
  Table table;
  table.add({"bytes", "messages GB/s", "puts GB/s", "joined GB/s", "one way us", "put us"});
  for (const Json& each : results.at("points")) {
    const auto number = [&](const char* name) { return each.at(name).get<double>(); };
    table.add({fmt::format("{}", each.at("bytes").get<std::size_t>()),
               fmt::format("{:.3f}", number("messages_gb_per_s")),
               fmt::format("{:.3f}", number("puts_gb_per_s")),
               each.at("joined_gb_per_s").is_null()
                   ? "-"
                   : fmt::format("{:.3f}", number("joined_gb_per_s")),
               fmt::format("{:.2f}", 1e6 * number("half_round_trip_s")),
               fmt::format("{:.2f}", 1e6 * number("put_s"))});
  }
  return fmt::format("messages from rank 0 to rank 1 over {}\n",
                     results.at("link").get<std::string>()) +
         table.text(2, {0, 1, 2, 3, 4, 5});
}

}  // namespace weir::cli::bench
