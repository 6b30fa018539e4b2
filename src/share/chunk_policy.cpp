#include "share/chunk_policy.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/ranges.h>

#include "base/counted.hpp"
#include "base/error.hpp"
#include "base/text.hpp"

namespace weir::rt {

namespace {

std::uint64_t divide_up(std::uint64_t count, std::uint64_t parts) noexcept {
  return (count + parts - 1) / parts;
}

/// One chunk for each place, in proportion to its weight. The items of places that failed are
/// divided equally among the others, also those that were never fetched.
class StaticChunks final : public ChunkPolicy {
 public:
  explicit StaticChunks(std::vector<double> weights) : ends_(std::move(weights)) {
    for (std::size_t i = 1; i < ends_.size(); ++i) ends_[i] += ends_[i - 1];
  }
  bool uses_peer_speeds() const noexcept override { return true; }
  std::uint64_t count(const ShareView& view) const noexcept override {
    if (waits_for(view, view.self)) return share_of(view, view.self);
    std::uint64_t sound = 0;
    for (std::size_t i = 0; i < view.peers.size(); ++i) {
      if (view.peers[i].lost) continue;
      if (waits_for(view, i)) return 0;
      ++sound;
    }
    return divide_up(view.remaining, std::max<std::uint64_t>(sound, 1));
  }

 private:
  /// Whether the place has not fetched its chunk.
  bool waits_for(const ShareView& view, std::size_t place) const noexcept {
    return view.peers[place].visits == 0 && share_of(view, place) > 0;
  }
  std::uint64_t share_of(const ShareView& view, std::size_t place) const noexcept {
    return end_of(view, place) - (place == 0 ? 0 : end_of(view, place - 1));
  }
  std::uint64_t end_of(const ShareView& view, std::size_t place) const noexcept {
    if (place + 1 == ends_.size()) return view.items.count();
    const double all = static_cast<double>(view.items.count());
    return static_cast<std::uint64_t>(std::floor(all * (ends_[place] / ends_.back()) + 0.5));
  }

  std::vector<double> ends_;  ///< prefix sums of the weights
};

class FixedChunks final : public ChunkPolicy {
 public:
  explicit FixedChunks(std::uint64_t size) : size_(size) {}
  std::uint64_t count(const ShareView&) const noexcept override { return size_; }
  bool fetches_ahead() const noexcept override { return true; }

 private:
  const std::uint64_t size_;
};

/// A place takes its equal part of the remaining items (Polychronopoulos and Kuck 1987).
class GuidedChunks final : public ChunkPolicy {
 public:
  std::uint64_t count(const ShareView& view) const noexcept override {
    return divide_up(view.remaining, view.peers.size());
  }
};

/// Batches of half of the remaining items, each divided equally (Hummel, Schonberg and Flynn 1992)
/// or in proportion to the measured speeds (Banicescu and Velusamy 2002).
class FactoringChunks final : public ChunkPolicy {
 public:
  explicit FactoringChunks(bool weighted) : weighted_(weighted) {}
  bool uses_peer_speeds() const noexcept override { return weighted_; }
  std::uint64_t count(const ShareView& view) const noexcept override {
    const double all = static_cast<double>(view.items.count());
    const double batches = std::floor(std::log2(all / static_cast<double>(view.remaining)));
    const double equal = all / (std::exp2(batches + 1) * static_cast<double>(view.peers.size()));
    const double size = std::ceil(weighted_ ? equal * weight_of(view) : equal);
    return static_cast<std::uint64_t>(std::max(1.0, size));
  }

 private:
  /// Returns the speed relative to the mean, 1 until all speeds are known.
  static double weight_of(const ShareView& view) noexcept {
    double sum = 0;
    for (const SharePeer& peer : view.peers) {
      if (peer.speed <= 0) return 1;
      sum += peer.speed;
    }
    return view.peers[view.self].speed * static_cast<double>(view.peers.size()) / sum;
  }

  const bool weighted_;
};

/// A place takes a fraction of its part of the remaining items, such that all places end together.
/// It takes nothing if the others finish the rest before it could complete one more item. It learns
/// its speed with chunks of one item, again after each change of speed (see ThroughputMeter).
class LearnedChunks final : public ChunkPolicy {
 public:
  bool uses_measured_speeds() const noexcept override { return true; }
  bool fetches_ahead() const noexcept override { return true; }
  bool uses_peer_speeds() const noexcept override { return true; }

  std::uint64_t count(const ShareView& view) const noexcept override {
    const SharePeer& own = view.peers[view.self];
    if (own.speed <= 0) return 1;
    const double item_ns = view.items.work(view.next, view.next + 1) / own.speed;
    if (own.free_ns + item_ns > end_without(view)) return 0;
    const double own_work = own.speed * (end_of(view, kNone) - own.free_ns);
    const std::uint64_t most = view.items.within(view.next, own_work);
    const std::uint64_t usual = view.items.within(view.next, own_work / kVisits);
    return std::min(most, std::max(usual, own.grain));
  }

 private:
  /// Number of chunks per place for its part of the remaining items, if no speed changes. More
  /// chunks detect a change of speed sooner: a slowdown by 10 costs two chunks of 10 times their
  /// time.
  static constexpr double kVisits = 32;
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

  /// Whether the place is known to take part in the remaining items.
  static bool counts(const ShareView& view, std::size_t place, std::size_t without) noexcept {
    return place != without && !view.peers[place].lost && view.peers[place].speed > 0;
  }

  /// Returns when the remaining items are complete if all places end together, in nanoseconds from
  /// now: the T with sum of speed (T - free) = remaining work, over the places that are free before
  /// T.
  static double end_of(const ShareView& view, std::size_t without) noexcept {
    double end = std::numeric_limits<double>::infinity();
    for (;;) {
      double speeds = 0, work = view.remaining_work;
      for (std::size_t i = 0; i < view.peers.size(); ++i) {
        const SharePeer& peer = view.peers[i];
        if (!counts(view, i, without) || peer.free_ns >= end) continue;
        speeds += peer.speed;
        work += peer.speed * peer.free_ns;
      }
      if (speeds <= 0 || work / speeds >= end) return end;
      end = work / speeds;
    }
  }

  /// Returns when the other places have completed the remaining items, at least one item.
  static double end_without(const ShareView& view) noexcept {
    double first = std::numeric_limits<double>::infinity();
    const double item = view.items.work(view.next, view.next + 1);
    for (std::size_t i = 0; i < view.peers.size(); ++i) {
      if (!counts(view, i, view.self)) continue;
      first = std::min(first, view.peers[i].free_ns + item / view.peers[i].speed);
    }
    return std::max(first, end_of(view, view.self));
  }
};

constexpr std::array<ChunkPolicyEntry, 8> kPolicies = {{
    {"learned", "by measured speeds, so that all places end together (default)"},
    {"static", "one chunk a place, all equal"},
    {"static:W1,W2,...", "one chunk a place, in proportion to weights"},
    {"one", "one item at a time"},
    {"fixed:N", "N items at a time"},
    {"guided", "remaining items divided by the number of places"},
    {"factoring", "half of what is left in equal chunks, again and again"},
    {"weighted-factoring", "the same in proportion to measured speeds"},
}};

std::vector<double> read_weights(std::string_view text, std::size_t places) {
  std::vector<double> weights;
  for (const std::string_view part : split(text, ',')) {
    const auto weight = parse_real(part);
    if (!weight || !(*weight > 0) || *weight > 1e9) {
      fail_argument("weight '{}' of chunks 'static:{}' is not a positive number", part, text);
    }
    weights.push_back(*weight);
  }
  if (weights.size() != places) {
    fail_argument("chunks 'static:{}' have {} for {}", text, counted(weights.size(), "weight"),
                  counted(places, "place"));
  }
  return weights;
}

std::uint64_t read_size(std::string_view text) {
  const auto size = parse_unsigned(text);
  if (!size || *size == 0) fail_argument("chunks 'fixed:{}' need a number of items", text);
  return *size;
}

[[noreturn]] void fail_unknown(const std::string& text) {
  std::vector<std::string> names;
  for (const ChunkPolicyEntry& policy : kPolicies) {
    names.emplace_back(
        std::string_view(policy.name).substr(0, std::string_view(policy.name).find(':')));
  }
  names.erase(std::unique(names.begin(), names.end()), names.end());
  fail(WEIR_STATUS_NOT_FOUND, "no chunks '{}'{}; there is: {}", text, did_you_mean(text, names),
       fmt::join(names, ", "));
}

}  // namespace

std::span<const ChunkPolicyEntry> chunk_policies() noexcept { return kPolicies; }

std::unique_ptr<ChunkPolicy> make_chunk_policy(const std::string& text, std::size_t places) {
  constexpr std::string_view kStatic = "static:", kFixed = "fixed:";
  if (text == "learned") return std::make_unique<LearnedChunks>();
  if (text == "static") return std::make_unique<StaticChunks>(std::vector<double>(places, 1));
  if (text == "one") return std::make_unique<FixedChunks>(1);
  if (text == "guided") return std::make_unique<GuidedChunks>();
  if (text == "factoring") return std::make_unique<FactoringChunks>(false);
  if (text == "weighted-factoring") return std::make_unique<FactoringChunks>(true);
  if (text.starts_with(kStatic)) {
    return std::make_unique<StaticChunks>(read_weights(text.substr(kStatic.size()), places));
  }
  if (text.starts_with(kFixed)) {
    return std::make_unique<FixedChunks>(read_size(text.substr(kFixed.size())));
  }
  fail_unknown(text);
}

}  // namespace weir::rt
