// Cache lines that are sent together: by the paper's communication cache and by a conveyor.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <weir/conveyor.hpp>
#include <weir/fabric.hpp>

#include "bench/communication_cache.hpp"
#include "bench/rank_experiment.hpp"

namespace weir::cli::bench {

namespace {

constexpr std::size_t kMemoryLines = 1u << 18;  ///< 16 MiB of rank 1 that they go to
constexpr std::size_t kRepeated = 256;          ///< lines that the pattern "repeat" has
constexpr std::size_t kLinesInCall = 64;        ///< of a conveyor
constexpr const char* kConveyor = "conveyor";

/// Returns the line that access number `i` of a pattern writes.
std::uint64_t line_of(const std::string& pattern, std::uint64_t i) {
  if (pattern == "stream") return i % kMemoryLines;
  std::uint64_t state = (i + 1) * 0x9e3779b97f4a7c15u;  // the finalizer of splitmix64
  state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9u;
  state = (state ^ (state >> 27)) * 0x94d049bb133111ebu;
  state ^= state >> 31;
  return state % (pattern == "random" ? kMemoryLines : kRepeated);
}

/// Returns what line `number` contains when it has arrived; never zeros.
Line line_with(std::uint64_t number) {
  Line line{};
  const std::uint64_t content = number + 1;
  std::memcpy(line.data(), &content, sizeof content);
  return line;
}

/// What a run took, on rank 0.
struct Sent {
  double seconds = 0;
  std::size_t messages = 0, bytes = 0;
};

/// Memory of rank 1 that lines of rank 0 go to. All ranks call the same functions.
class Target {
 public:
  /// `lines`: that a run sends.
  Target(Fabric& fabric, std::size_t lines)
      : fabric_(fabric), count_(lines), memory_(fabric.rank() == kTo ? kMemoryLines : 1) {
    fabric.listen([this](unsigned, std::span<const std::byte> message) { receive(message); });
  }
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;
  ~Target() { fabric_.listen({}); }

  Sent send_by_cache(const std::string& pattern, std::size_t sets, std::size_t ways,
                     Placement placement) {
    Sent sent;
    CommunicationCache cache(sets, ways, placement, [&](auto numbers, auto lines) {
      ++sent.messages;
      sent.bytes += numbers.size() * kLineBytes;
      send(numbers, lines);
    });
    sent.seconds = seconds_together(fabric_, [&] {
      if (fabric_.rank() == kFrom) {
        for (std::uint64_t i = 0; i < count_; ++i) {
          const std::uint64_t number = line_of(pattern, i);
          cache.insert(number, line_with(number));
        }
        cache.flush();
        send({}, {});  // the end
        wait();
      } else if (fabric_.rank() == kTo) {
        wait();
        fabric_.send(kFrom, std::span<const std::byte>());
      }
    });
    verify(pattern);
    return sent;
  }

  Sent send_by_conveyor(const std::string& pattern, std::size_t bytes) {
    ConveyorOptions options;
    options.memory = std::as_writable_bytes(std::span(memory_));
    options.block_bytes = std::clamp<std::size_t>(bytes, 1 << 10, 4u << 20);
    const Conveyor conveyor(fabric_, options);
    const Producer producer = conveyor.producer();
    std::vector<std::uint64_t> offsets;
    std::vector<Line> lines;
    Sent sent;
    sent.seconds = seconds_together(fabric_, [&] {
      for (std::uint64_t i = 0; fabric_.rank() == kFrom && i < count_; ++i) {
        offsets.push_back(line_of(pattern, i) * kLineBytes);
        lines.push_back(line_with(offsets.back() / kLineBytes));
        if (lines.size() < kLinesInCall && i + 1 < count_) continue;
        producer.put(kTo, std::span<const std::uint64_t>(offsets), std::span<const Line>(lines));
        offsets.clear();
        lines.clear();
      }
      producer.flush();
      conveyor.finish();
    });
    const weir_conveyor_info info = conveyor.info();
    sent.messages = info.blocks;
    sent.bytes = (info.items - info.combined) * kLineBytes;
    verify(pattern);
    return sent;
  }

 private:
  void send(std::span<const std::uint64_t> numbers, std::span<const Line> lines) {
    message_.resize(numbers.size() * (sizeof(std::uint64_t) + kLineBytes));
    if (!numbers.empty()) {
      std::memcpy(message_.data(), numbers.data(), numbers.size_bytes());
      std::memcpy(message_.data() + numbers.size_bytes(), lines.data(), lines.size_bytes());
    }
    fabric_.send(kTo, std::span<const std::byte>(message_));
  }

  void receive(std::span<const std::byte> message) {
    const std::size_t count = message.size() / (sizeof(std::uint64_t) + kLineBytes);
    const std::byte* const lines = message.data() + count * sizeof(std::uint64_t);
    for (std::size_t i = 0; i < count; ++i) {
      std::uint64_t number = 0;
      std::memcpy(&number, message.data() + i * sizeof number, sizeof number);
      std::memcpy(&memory_[number], lines + i * kLineBytes, kLineBytes);
    }
    if (count == 0) ++ends_;
  }

  /// Throws unless every line of a run has arrived; clears the memory.
  void verify(const std::string& pattern) {
    if (fabric_.rank() == kTo) {
      for (std::uint64_t i = 0; i < count_; ++i) {
        const std::uint64_t number = line_of(pattern, i);
        if (memory_[number] == line_with(number)) continue;
        throw Error(WEIR_STATUS_NETWORK_ERROR,
                    fmt::format("line {} of pattern {} has not arrived", number, pattern));
      }
    }
    std::fill(memory_.begin(), memory_.end(), Line{});
    fabric_.barrier();
  }

  /// Until the other rank has sent all.
  void wait() {
    while (ends_ == 0) fabric_.progress();
    ends_ = 0;
  }

  Fabric& fabric_;
  const std::size_t count_;
  std::vector<Line> memory_;
  std::vector<std::byte> message_;
  std::atomic<std::size_t> ends_{0};
};

class Cache final : public RankExperiment {
 public:
  const char* name() const override { return "cache"; }
  const char* summary() const override {
    return "Cache lines that are sent together: paper 003's communication cache, and a conveyor";
  }

 private:
  void add_own_options(CLI::App& app) override {
    const auto list = [&](const char* option, auto& values, const char* words) {
      return app.add_option(option, values, words)->delimiter(',');
    };
    app.add_option("--lines", lines_, "Lines that a run sends [1000000]")
        ->check(CLI::Range(1, 1'000'000'000));
    list("--sets", sets_, "Sets of the cache, as 64,512 [64,512]")->check(CLI::Range(1, 65'536));
    list("--ways", ways_, "Ways of a set, as 1,8 [1,8]")->check(CLI::Range(1, 1024));
    list("--by", by_,
         "first-free, round-robin: the cache, by placement; conveyor: as much memory [all]")
        ->check(CLI::IsMember({"first-free", "round-robin", kConveyor}));
  }

  Json measure(Fabric& fabric) override {
    Target target(fabric, lines_);
    Json points = Json::array();
    const std::size_t total = sets_.size() * ways_.size() * by_.size();
    for (const std::size_t sets : sets_) {
      for (const std::size_t ways : ways_) {
        for (const std::string& by : by_) {
          show_progress(points.size(), total);
          points.push_back(point(target, by, sets, ways));
        }
      }
    }
    return points;
  }

  /// Sends the lines of each pattern.
  Json point(Target& target, const std::string& by, std::size_t sets, std::size_t ways) {
    const std::size_t bytes = sets * ways * kLineBytes;
    Json result = {{"by", by}, {"sets", sets}, {"ways", ways}, {"bytes", bytes}};
    for (const std::string pattern : {"stream", "random", "repeat"}) {
      Sent sent;
      const double seconds = median([&] {
        sent = by == kConveyor ? target.send_by_conveyor(pattern, bytes)
                               : target.send_by_cache(pattern, sets, ways,
                                                      by == "first-free" ? Placement::first_free
                                                                         : Placement::round_robin);
        return sent.seconds;
      });
      const auto messages = static_cast<double>(std::max<std::size_t>(sent.messages, 1));
      result[pattern + "_message_bytes"] = static_cast<double>(sent.bytes) / messages;
      result[pattern + "_gb_per_s"] = static_cast<double>(lines_ * kLineBytes) / seconds * 1e-9;
    }
    return result;
  }

  std::vector<Column> columns() const override {
    return {{"by", "by"},
            {"sets", "sets"},
            {"ways", "ways"},
            {"KiB", "bytes", 1.0 / 1024, 0},
            {"stream: KiB a message", "stream_message_bytes", 1.0 / 1024, 1},
            {"GB/s", "stream_gb_per_s"},
            {"random: KiB a message", "random_message_bytes", 1.0 / 1024, 1},
            {"GB/s", "random_gb_per_s"},
            {"repeat: KiB a message", "repeat_message_bytes", 1.0 / 1024, 1},
            {"GB/s", "repeat_gb_per_s"}};
  }

  std::size_t lines_ = 1'000'000;
  std::vector<std::size_t> sets_ = {64, 512}, ways_ = {1, 8};
  std::vector<std::string> by_ = {"first-free", "round-robin", kConveyor};
};

}  // namespace

std::unique_ptr<RankExperiment> make_cache() { return std::make_unique<Cache>(); }

}  // namespace weir::cli::bench
