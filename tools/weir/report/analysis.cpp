#include "report/analysis.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include <fmt/format.h>

namespace weir::cli::report {

namespace {

using Intervals = std::vector<std::pair<std::int64_t, std::int64_t>>;

double seconds(std::int64_t ns) { return static_cast<double>(ns) / 1e9; }

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

/// Adds an interval that begins no earlier than those before.
void add_interval(Intervals& intervals, std::int64_t begin, std::int64_t end) {
  if (!intervals.empty() && begin <= intervals.back().second) {
    intervals.back().second = std::max(intervals.back().second, end);
  } else {
    intervals.emplace_back(begin, end);
  }
}

std::int64_t length(const Intervals& intervals) {
  std::int64_t sum = 0;
  for (const auto& [begin, end] : intervals) sum += end - begin;
  return sum;
}

/// How much of [begin, end) is in the intervals.
std::int64_t covered(const Intervals& intervals, std::int64_t begin, std::int64_t end) {
  std::int64_t sum = 0;
  auto at =
      std::upper_bound(intervals.begin(), intervals.end(), begin,
                       [](std::int64_t time, const auto& each) { return time < each.second; });
  for (; at != intervals.end() && at->first < end; ++at) {
    sum += std::min(end, at->second) - std::max(begin, at->first);
  }
  return sum;
}

class Analyst {
 public:
  explicit Analyst(const Trace& trace) : trace_(trace) {}

  Analysis work() {
    find_owners();
    measure();
    find_hidden();
    find_critical_path();
    find_kinds();
    say();
    return std::move(result_);
  }

 private:
  struct Owner {
    Resource resource;
    Intervals busy;
    std::set<std::uint32_t> streams;
  };

  /// Places and links by name, from the rows that have slices.
  void find_owners() {
    std::map<std::string, std::size_t> numbers;
    owner_of_row_.resize(trace_.rows.size());
    for (std::size_t row = 0; row < trace_.rows.size(); ++row) {
      const std::string& name = trace_.rows[row].owner;
      const auto [found, is_new] = numbers.try_emplace(name, owners_.size());
      if (is_new) owners_.push_back({{.name = name}, {}, {}});
      owner_of_row_[row] = found->second;
    }
  }

  void measure() {
    std::int64_t end = 0;
    bool computed = false;
    for (const Slice& slice : trace_.slices) {
      end = std::max(end, slice.ended());
      result_.failed += slice.failed ? 1 : 0;
      const bool never_ran = slice.failed && slice.duration == 0;  // its row is that of the syncs
      if (slice.kind == Kind::sync || never_ran) continue;
      Owner& owner = owners_[owner_of_row_[slice.row]];
      owner.resource.is_link = slice.moves();
      ++owner.resource.actions;
      owner.resource.bytes += slice.moves() ? slice.bytes : 0;
      add_interval(owner.busy, slice.started, slice.ended());
      owner.streams.insert(slice.stream);
      (slice.moves() ? result_.transfer_s : result_.compute_s) += seconds(slice.duration);
      if (slice.moves()) continue;
      add_interval(computing_, slice.started, slice.ended());
      if (!computed) result_.first_kernel_s = seconds(slice.started);
      computed = true;
    }
    result_.measured_s = seconds(end);
    for (Owner& owner : owners_) {
      if (owner.resource.actions == 0) continue;
      owner.resource.busy_s = seconds(length(owner.busy));
      owner.resource.streams = static_cast<std::uint32_t>(owner.streams.size());
      result_.ideal_s = std::max(result_.ideal_s, owner.resource.busy_s);
      result_.resources.push_back(owner.resource);
    }
    std::stable_sort(result_.resources.begin(), result_.resources.end(),
                     [](const auto& a, const auto& b) { return a.is_link < b.is_link; });
  }

  void find_hidden() {
    std::int64_t hidden = 0;
    for (const Slice& slice : trace_.slices) {
      if (slice.moves()) hidden += covered(computing_, slice.started, slice.ended());
    }
    result_.hidden_s = seconds(hidden);
  }

  /// Slices are in an order in which none comes before those it waited for.
  void find_critical_path() {
    constexpr std::uint32_t kNone = UINT32_MAX;
    const std::size_t count = trace_.slices.size();
    std::vector<std::size_t> first(count + 1, 0);  // of the edges into each slice
    for (const auto& [from, to] : trace_.edges) ++first[to + 1];
    for (std::size_t i = 0; i < count; ++i) first[i + 1] += first[i];
    std::vector<std::uint32_t> sources(trace_.edges.size());
    std::vector<std::size_t> next(first.begin(), first.end() - 1);
    for (const auto& [from, to] : trace_.edges) sources[next[to]++] = from;

    std::vector<std::int64_t> longest(count, 0);
    std::vector<std::uint32_t> before(count, kNone);
    std::uint32_t last = kNone;
    for (std::uint32_t i = 0; i < count; ++i) {
      for (std::size_t edge = first[i]; edge < first[i + 1]; ++edge) {
        const std::uint32_t from = sources[edge];
        if (before[i] == kNone || longest[from] > longest[before[i]]) before[i] = from;
      }
      longest[i] = trace_.slices[i].duration + (before[i] == kNone ? 0 : longest[before[i]]);
      if (last == kNone || longest[i] > longest[last]) last = i;
    }
    if (last == kNone) return;
    result_.critical_s = seconds(longest[last]);
    for (std::uint32_t i = last; i != kNone; i = before[i]) result_.critical.push_back(i);
    std::reverse(result_.critical.begin(), result_.critical.end());
  }

  void find_kinds() {
    std::map<std::string_view, KindOfAction> kinds;
    for (const Slice& slice : trace_.slices) {
      if (slice.kind == Kind::sync) continue;
      const std::string_view name = trace_.names[slice.name];
      const std::string_view word = name.substr(0, name.find(' '));
      KindOfAction& kind = kinds[word];
      ++kind.calls;
      kind.total_s += seconds(slice.duration);
      kind.waited_s += seconds(std::max<std::int64_t>(0, slice.started - slice.ready));
    }
    for (auto& [word, kind] : kinds) {
      kind.name = word;
      result_.kinds.push_back(std::move(kind));
    }
    std::stable_sort(result_.kinds.begin(), result_.kinds.end(),
                     [](const auto& a, const auto& b) { return a.total_s > b.total_s; });
  }

  // ---- Words ----

  void add(Judgement judgement, std::string words) {
    result_.findings.push_back({judgement, std::move(words)});
  }

  double share(double part_s) const {
    return result_.measured_s > 0 ? part_s / result_.measured_s : 0;
  }

  void say() {
    if (trace_.slices.empty()) return add(Judgement::bad, "the recording holds no actions");
    say_copies();
    say_ratio();
    say_idle();
    say_balance();
    say_link();
    say_chain();
    if (result_.failed > 0) {
      add(Judgement::bad,
          fmt::format("{} actions failed, were poisoned or cancelled", result_.failed));
    }
    if (trace_.dropped > 0) {
      add(Judgement::bad,
          fmt::format("{} actions are missing: there was no room to record them", trace_.dropped));
    }
  }

  std::uint32_t streams_of_a_place() const {
    std::uint32_t most = 1;
    for (const Resource& resource : result_.resources) {
      if (!resource.is_link) most = std::max(most, resource.streams);
    }
    return most;
  }

  double busiest_link() const {
    double most = 0;
    for (const Resource& resource : result_.resources) {
      if (resource.is_link) most = std::max(most, share(resource.busy_s));
    }
    return most;
  }

  void say_copies() {
    if (result_.transfer_s <= 0) return;
    constexpr double kMany = 0.9, kSome = 0.7;
    const double hidden = result_.hidden_s / result_.transfer_s;
    std::string words = fmt::format("copies hidden {}", percent(hidden));
    if (hidden < kSome && busiest_link() < kMany) {
      words += fmt::format("; try {} streams, or smaller tiles", 2 * streams_of_a_place());
    }
    add(hidden >= kMany   ? Judgement::good
        : hidden >= kSome ? Judgement::fair
                          : Judgement::bad,
        words);
  }

  void say_ratio() {
    if (result_.ideal_s <= 0) return;
    constexpr double kGood = 1.1, kFair = 1.5;
    const double ratio = result_.measured_s / result_.ideal_s;
    add(ratio <= kGood   ? Judgement::good
        : ratio <= kFair ? Judgement::fair
                         : Judgement::bad,
        fmt::format("measured is {:.2f} times the ideal, in which all else hides behind the "
                    "busiest place or link",
                    ratio));
  }

  void say_idle() {
    constexpr double kIdle = 0.25;
    std::size_t places = 0, idle = 0;
    double least = 1;
    for (const Resource& resource : result_.resources) {
      if (resource.is_link) continue;
      ++places;
      const double unused = 1 - share(resource.busy_s);
      if (unused < kIdle) continue;
      ++idle;
      least = std::min(least, unused);
    }
    if (places == 0) return;
    if (idle == 0) {
      return add(Judgement::good, fmt::format("no place is idle {} of the time", percent(kIdle)));
    }
    std::string words =
        fmt::format("{} of {} place{} idle {} of the time{}", idle, places, places == 1 ? "" : "s",
                    percent(least), idle > 1 ? " or more" : "");
    constexpr double kLate = 0.15;
    if (share(result_.first_kernel_s) > kLate) {
      words += fmt::format("; the first kernel starts after {}: smaller tiles start sooner",
                           percent(share(result_.first_kernel_s)));
    }
    add(Judgement::bad, words);
  }

  void say_balance() {
    constexpr double kUneven = 1.25;
    double most = 0, sum = 0;
    std::size_t places = 0;
    for (const Resource& resource : result_.resources) {
      if (resource.is_link) continue;
      most = std::max(most, resource.busy_s);
      sum += resource.busy_s;
      ++places;
    }
    if (places < 2 || sum <= 0) return;
    const double uneven = most * static_cast<double>(places) / sum;
    if (uneven < kUneven) return;
    add(Judgement::bad,
        fmt::format("the busiest place works {:.2f} times as long as the mean: try smaller tiles, "
                    "or another number of places than {}",
                    uneven, places));
  }

  void say_link() {
    constexpr double kFull = 0.9;
    for (const Resource& resource : result_.resources) {
      if (!resource.is_link || share(resource.busy_s) < kFull) continue;
      add(Judgement::fair,
          fmt::format("link {} is busy {} of the time: transfers set the pace, and "
                      "only fewer bytes would make it faster",
                      resource.name, percent(share(resource.busy_s))));
    }
  }

  void say_chain() {
    constexpr double kLong = 0.7;
    const double chain = share(result_.critical_s);
    const bool binds = chain > kLong;
    add(binds ? Judgement::bad : Judgement::fair,
        fmt::format(
            "the longest chain of dependent actions is {} of the time{}", percent(chain),
            binds ? ": smaller tiles or another order shorten it, more places do not" : ""));
  }

  const Trace& trace_;
  Analysis result_;
  std::vector<Owner> owners_;
  std::vector<std::size_t> owner_of_row_;
  Intervals computing_;
};

}  // namespace

Analysis analyze(const Trace& trace) { return Analyst(trace).work(); }

}  // namespace weir::cli::report
