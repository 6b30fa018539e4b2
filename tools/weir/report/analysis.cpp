#include "report/analysis.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "report/advice.hpp"

namespace weir::cli::report {

namespace {

using Intervals = std::vector<std::pair<std::int64_t, std::int64_t>>;

double seconds(std::int64_t ns) { return static_cast<double>(ns) / 1e9; }

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

/// The parts of intervals that are not in others.
Intervals without(const Intervals& intervals, const Intervals& others) {
  Intervals rest;
  auto other = others.begin();
  for (const auto& [begin, end] : intervals) {
    std::int64_t at = begin;
    while (other != others.end() && other->second <= at) ++other;
    for (auto next = other; next != others.end() && next->first < end; ++next) {
      if (next->first > at) rest.emplace_back(at, next->first);
      at = std::max(at, next->second);
    }
    if (at < end) rest.emplace_back(at, end);
  }
  return rest;
}

class Analyst {
 public:
  Analyst(const Trace& trace, const Choices& choices) : trace_(trace), choices_(choices) {}

  Analysis work() {
    find_owners();
    measure();
    find_hidden();
    find_spent();
    find_most_moved();
    find_critical_path();
    find_kinds();
    find_queues();
    result_.dropped = trace_.dropped;
    result_.findings = findings_on(result_, choices_);
    return std::move(result_);
  }

 private:
  struct Owner {
    Resource resource;
    Intervals busy;
    std::set<std::uint32_t> streams;
    std::string domain;
  };

  /// Places and links by name, from the rows that have slices.
  void find_owners() {
    std::map<std::string, std::size_t> numbers;
    owner_of_row_.resize(trace_.rows.size());
    for (std::size_t row = 0; row < trace_.rows.size(); ++row) {
      const std::string& name = trace_.rows[row].owner;
      const auto [found, is_new] = numbers.try_emplace(name, owners_.size());
      if (is_new) owners_.push_back({{.name = name}, {}, {}, trace_.rows[row].domain});
      owner_of_row_[row] = found->second;
    }
  }

  /// Whether a slice used a place or a link: actions that never ran are in the row of the syncs.
  static bool ran(const Slice& slice) noexcept {
    return slice.kind != Kind::sync && (!slice.failed || slice.duration > 0);
  }

  void measure() {
    std::int64_t end = 0;
    for (std::uint32_t i = 0; i < trace_.slices.size(); ++i) {
      const Slice& slice = trace_.slices[i];
      end = std::max(end, slice.ended());
      result_.failed += slice.failed ? 1 : 0;
      if (!ran(slice)) continue;
      Owner& owner = owners_[owner_of_row_[slice.row]];
      owner.resource.is_link = slice.moves();
      ++owner.resource.actions;
      owner.resource.bytes += slice.moves() ? slice.bytes : 0;
      add_interval(owner.busy, slice.started, slice.ended());
      owner.streams.insert(slice.stream);
      add_interval(occupied_, slice.started, slice.ended());
      (slice.moves() ? result_.transfer_s : result_.compute_s) += seconds(slice.duration);
      if (slice.moves()) {
        add_interval(moving_, slice.started, slice.ended());
        add_interval(moving_of_[owner.domain], slice.started, slice.ended());
      } else {
        add_kernel(i, owner.resource);
      }
    }
    result_.measured_s = seconds(end);
    list_resources();
  }

  void add_kernel(std::uint32_t number, Resource& place) {
    const Slice& slice = trace_.slices[number];
    if (computing_.empty()) result_.first_kernel_s = seconds(slice.started);
    const std::size_t before = computing_.size();
    add_interval(computing_, slice.started, slice.ended());
    if (computing_.size() > before) openers_.push_back(number);
    place.cores = std::max(place.cores, slice.place_cores);
    result_.core_s += seconds(slice.duration) * slice.cores;
    ++result_.kernels;
  }

  void list_resources() {
    for (Owner& owner : owners_) {
      if (owner.resource.actions == 0) continue;
      owner.resource.busy_s = seconds(length(owner.busy));
      owner.resource.streams = static_cast<std::uint32_t>(owner.streams.size());
      result_.ideal_s = std::max(result_.ideal_s, owner.resource.busy_s);
      result_.cores += owner.resource.is_link ? 0 : owner.resource.cores;
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

  void find_spent() {
    Spent& spent = result_.spent;
    spent.computing_s = seconds(length(computing_));
    if (result_.cores > 0) {
      spent.work_s =
          std::min(spent.computing_s, result_.core_s / static_cast<double>(result_.cores));
    }
    find_fetching();
    find_copies_alone();
    find_nothing();
  }

  /// Places wait for copies over the links of their domain; those in host memory, for any.
  void find_fetching() {
    double core_ns = 0;
    for (const Owner& owner : owners_) {
      if (owner.resource.is_link || owner.busy.empty()) continue;
      const auto links = moving_of_.find(owner.domain);
      const Intervals& moving = links != moving_of_.end() ? links->second : moving_;
      const std::int64_t last = owner.busy.back().second;
      for (const auto& [begin, end] : without(computing_, owner.busy)) {
        if (begin >= last) break;
        core_ns += static_cast<double>(covered(moving, begin, end)) * owner.resource.cores;
      }
    }
    if (result_.cores == 0) return;
    result_.spent.fetching_s = core_ns / 1e9 / static_cast<double>(result_.cores);
  }

  /// The name of a transfer without one of its own is "h2d x", for buffer x.
  void find_most_moved() {
    std::map<std::string_view, Moved> all;
    for (const Slice& slice : trace_.slices) {
      if (!slice.moves()) continue;
      const std::string_view name = trace_.names[slice.name];
      const std::size_t blank = name.find(' ');
      const std::string_view word = name.substr(0, blank);
      const bool unnamed = word == "h2d" || word == "d2h" || word == "d2d";
      const bool has_buffer = blank != std::string_view::npos;
      const std::string_view what = !unnamed ? name : has_buffer ? name.substr(blank + 1) : "";
      Moved& moved = all[what];
      moved.what = what;
      ++moved.copies;
      moved.bytes += slice.bytes;
      moved.total_s += seconds(slice.duration);
    }
    for (auto& [what, moved] : all) {
      if (moved.total_s > result_.most_moved.total_s) result_.most_moved = moved;
    }
  }

  /// Time in which only copies run: at the ends, and between kernels.
  void find_copies_alone() {
    Spent& spent = result_.spent;
    const auto copies = [&](std::int64_t begin, std::int64_t end) {
      return seconds(covered(moving_, begin, end));
    };
    if (computing_.empty()) {
      spent.fill_s = seconds(length(moving_));
      return;
    }
    spent.fill_s = copies(0, computing_.front().first);
    spent.drain_s = copies(computing_.back().second, INT64_MAX);
    const std::vector<bool> ordered = gaps_with_ordered_copies();
    for (std::size_t gap = 0; gap + 1 < computing_.size(); ++gap) {
      const std::int64_t begin = computing_[gap].second, end = computing_[gap + 1].first;
      const bool late = trace_.slices[openers_[gap + 1]].enqueued >= begin;
      (late           ? spent.late_copies_s
       : ordered[gap] ? spent.ordered_copies_s
                      : spent.slow_copies_s) += copies(begin, end);
    }
  }

  /// For each gap between kernels: whether a copy that waited for those before began in it.
  std::vector<bool> gaps_with_ordered_copies() const {
    std::vector<bool> found(computing_.size(), false);
    std::size_t gap = 0;
    for (const Slice& slice : trace_.slices) {
      if (!slice.moves() || slice.kind == Kind::d2h) continue;
      while (gap + 1 < computing_.size() && computing_[gap + 1].first <= slice.started) ++gap;
      if (gap + 1 >= computing_.size()) break;
      const std::int64_t begin = computing_[gap].second;
      if (slice.started >= begin && slice.ready >= begin) found[gap] = true;
    }
    return found;
  }

  /// Measures time in which nothing runs, with and without a ready action.
  void find_nothing() {
    Intervals ready;
    std::vector<std::pair<std::int64_t, std::int64_t>> waits;
    for (const Slice& slice : trace_.slices) {
      if (ran(slice) && slice.ready < slice.started) waits.emplace_back(slice.ready, slice.started);
    }
    std::sort(waits.begin(), waits.end());
    for (const auto& [begin, end] : waits) add_interval(ready, begin, end);
    std::int64_t at = 0;
    const auto add = [&](std::int64_t end) {
      if (end <= at) return;
      const std::int64_t starting = covered(ready, at, end);
      result_.spent.starting_s += seconds(starting);
      result_.spent.waiting_s += seconds(end - at - starting);
    };
    for (const auto& [begin, end] : occupied_) {
      add(begin);
      at = end;
    }
    add(static_cast<std::int64_t>(result_.measured_s * 1e9));
  }

  /// A queue or a share has a stream of its own for each place, and calls it "queue/place".
  void find_queues() {
    for (const Owner& owner : owners_) {
      for (const std::uint32_t stream : owner.streams) {
        const bool of_queue = trace_.streams[stream].ends_with("/" + owner.resource.name);
        choices_.queue = choices_.queue || (!owner.resource.is_link && of_queue);
      }
    }
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

  const Trace& trace_;
  Choices choices_;
  Analysis result_;
  std::vector<Owner> owners_;
  std::vector<std::size_t> owner_of_row_;
  Intervals computing_, moving_, occupied_;
  std::map<std::string, Intervals> moving_of_;  ///< over the links of each domain
  std::vector<std::uint32_t> openers_;  ///< the kernel that began each interval of computing_
};

}  // namespace

Analysis analyze(const Trace& trace, const Choices& choices) {
  return Analyst(trace, choices).work();
}

}  // namespace weir::cli::report
