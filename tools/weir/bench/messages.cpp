// Messages, puts and items of a conveyor by size.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <CLI/CLI.hpp>
#include <weir/conveyor.hpp>
#include <weir/fabric.hpp>

#include "bench/rank_experiment.hpp"

namespace weir::cli::bench {

namespace {

constexpr std::size_t kBytes = 32u << 20;  ///< of a measurement of bandwidth, at most
constexpr std::size_t kMessages = 20'000;  ///< likewise, of messages that are not joined
constexpr std::size_t kRoundTrips = 200;   ///< of a measurement of latency
constexpr std::size_t kLargestItem = 256;  ///< of a conveyor

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
    return seconds_together(fabric_, [&] {
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
    return seconds_together(fabric_, [&] {
      for (std::size_t i = 0; i < count; ++i) {
        if (is(kFrom)) fabric_.send(kTo, data(bytes));
        if (is(kFrom) || is(kTo)) receive(1);
        if (is(kTo)) fabric_.send(kFrom, data(bytes));
      }
    });
  }

  /// `each`: waits for every put.
  double puts(std::size_t bytes, std::size_t count, bool each) {
    return seconds_together(fabric_, [&] {
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
    return seconds_together(fabric_, [&] {
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

  Fabric& fabric_;
  std::vector<std::byte> data_;
  std::atomic<std::size_t> received_{0};
  Window<std::byte> window_;
};

class Messages final : public RankExperiment {
 public:
  const char* name() const override { return "messages"; }
  const char* summary() const override {
    return "Bandwidth and latency between two ranks by the size of a message";
  }

 private:
  void add_own_options(CLI::App& app) override {
    app.add_option("--sizes", sizes_, "Bytes of a message, as 8,64,4096 [8 to 4194304]")
        ->delimiter(',')
        ->check(CLI::Range(1, 1 << 26));
  }

  Json measure(Fabric& fabric) override {
    Sender sender(fabric, *std::max_element(sizes_.begin(), sizes_.end()));
    Json points = Json::array();
    for (const std::size_t bytes : sizes_) {
      show_progress(points.size(), sizes_.size());
      const std::size_t count = std::clamp<std::size_t>(kBytes / bytes, 8, kMessages);
      const double gigabytes = static_cast<double>(count * bytes) / 1e9;
      const bool joins = bytes % 8 == 0 && bytes <= kLargestItem;
      const double messages = median([&] { return sender.messages(bytes, count); });
      const double puts = median([&] { return sender.puts(bytes, count, false); });
      const std::size_t item_count = kBytes / bytes;
      const double items = joins ? median([&] { return sender.items(bytes, item_count); }) : 0;
      const double item_gigabytes = static_cast<double>(item_count * bytes) / 1e9;
      const std::size_t trips = std::clamp<std::size_t>(kBytes / bytes, 8, kRoundTrips);
      const double there_and_back = median([&] { return sender.round_trips(bytes, trips); });
      const double each = median([&] { return sender.puts(bytes, trips, true); });
      points.push_back({{"bytes", bytes},
                        {"messages_gb_per_s", gigabytes / messages},
                        {"puts_gb_per_s", gigabytes / puts},
                        {"joined_gb_per_s", joins ? Json(item_gigabytes / items) : Json(nullptr)},
                        {"half_round_trip_s", there_and_back / static_cast<double>(2 * trips)},
                        {"put_s", each / static_cast<double>(trips)}});
    }
    return points;
  }

  std::vector<Column> columns() const override {
    return {{"bytes", "bytes"},
            {"messages GB/s", "messages_gb_per_s"},
            {"puts GB/s", "puts_gb_per_s"},
            {"joined GB/s", "joined_gb_per_s"},
            {"one way us", "half_round_trip_s", 1e6, 2},
            {"put us", "put_s", 1e6, 2}};
  }

  std::vector<std::size_t> sizes_ = {8, 64, 256, 1024, 8192, 65'536, 524'288, 4'194'304};
};

}  // namespace

std::unique_ptr<RankExperiment> make_messages() { return std::make_unique<Messages>(); }

}  // namespace weir::cli::bench
