#include "report/advice.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "common/counted.hpp"

namespace weir::cli::report {

namespace {

using apps::counted;

constexpr double kFull = 0.9;     ///< busy share from which a link is saturated
constexpr double kFilled = 0.95;  ///< from here on nothing but kernels matters
constexpr double kNearlyFilled = 0.85;
constexpr const char* kFewerBytes = ": fewer bytes, or more work on them, gain most";

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

std::string bytes_in_words(double bytes) {
  const char* unit = "B";
  for (const char* const larger : {"kB", "MB", "GB"}) {
    if (bytes < 1000) break;
    bytes /= 1000;
    unit = larger;
  }
  return fmt::format("{:.3g} {}", bytes, unit);
}

std::string micros(double seconds) { return apps::two_digits(1e6 * seconds) + " us"; }

class Adviser {
 public:
  Adviser(const Analysis& analysis, const Choices& choices)
      : is_(analysis), choices_(choices), total_s_(analysis.measured_s) {}

  std::vector<Finding> findings() {
    if (is_.kinds.empty() && is_.failed == 0 && is_.dropped == 0) {
      add(Judgement::bad, "the recording holds no actions");
      return std::move(findings_);
    }
    say_missing();
    if (!choices_.pipeline) {
      say_loss();
      say_facts();
    }
    return std::move(findings_);
  }

 private:
  void add(Judgement judgement, std::string words) {
    findings_.push_back({judgement, std::move(words)});
  }

  double share(double part_s) const { return total_s_ > 0 ? part_s / total_s_ : 0; }

  // ---- Doubtful figures ----

  void say_missing() {
    if (is_.failed > 0) {
      add(Judgement::bad,
          fmt::format("{} failed, {} poisoned or cancelled", counted(is_.failed, "action"),
                      is_.failed == 1 ? "was" : "were"));
    }
    if (is_.dropped > 0) {
      add(Judgement::bad,
          fmt::format("{} {} missing: there was no room to record {}",
                      counted(is_.dropped, "action"), is_.dropped == 1 ? "is" : "are",
                      is_.dropped == 1 ? "it" : "them"));
    }
  }

  // ---- The largest loss, its cause and a remedy ----

  void say_loss() {
    if (total_s_ <= 0 || is_.ideal_s <= 0) return;
    if (is_.kernels == 0) return say_only_copies();
    const double filled = share(is_.spent.work_s);
    if (filled >= kFilled) {
      return add(
          Judgement::good,
          fmt::format("kernels fill {} of the cores' time: only faster kernels or more cores "
                      "gain more",
                      percent(filled)));
    }
    say_largest_loss();
    if (filled < kNearlyFilled) return;
    Finding& loss = findings_.back();
    loss.judgement = Judgement::fair;
    loss.words = fmt::format("kernels fill {} of the cores' time; {}", percent(filled), loss.words);
  }

  /// Copies that cores wait for count as one loss, whether other cores compute meanwhile or not.
  void say_largest_loss() {
    const Spent& spent = is_.spent;
    const Resource* const link = busiest_link();
    if (link != nullptr && share(link->busy_s) >= kFull) return say_full_link(*link);
    const double nothing_s = spent.starting_s + spent.waiting_s;
    const double fetching_s = spent.waiting_cores_s(), idle_s = spent.idle_cores_s() - fetching_s;
    if (spent.exposed_s() + fetching_s >= std::max(nothing_s, idle_s)) {
      return fetching_s > spent.exposed_s() ? say_fetching() : say_exposed();
    }
    if (nothing_s >= idle_s) return say_nothing();
    say_idle_cores();
  }

  void say_only_copies() {
    add(Judgement::fair, fmt::format("no kernel was recorded: copies keep the busiest link busy {} "
                                     "of the time",
                                     percent(share(is_.ideal_s))));
  }

  void say_full_link(const Resource& link) {
    add(Judgement::bad,
        fmt::format(
            "link {} is busy {} of the time{}: only fewer bytes or a faster link gain more{}",
            link.name, percent(share(link.busy_s)), times_of_kernels(), most_moved()));
  }

  void say_fetching() {
    add(Judgement::bad,
        fmt::format("{} of the cores' time is idle while copies move data to or from them{}{}{}",
                    percent(share(is_.spent.waiting_cores_s())), times_of_kernels(), kFewerBytes,
                    most_moved()));
  }

  /// "; 40 transfers of 'grid', 32 MB each, take 95 % of the time of all transfers", of a buffer
  /// that takes most of it.
  std::string most_moved() const {
    constexpr double kMost = 0.5;
    const Moved& moved = is_.most_moved;
    if (moved.what.empty() || moved.total_s < kMost * is_.transfer_s) return "";
    const double each = static_cast<double>(moved.bytes) / static_cast<double>(moved.copies);
    return fmt::format("; {} of '{}', {}{}, {} {} of the time of all transfers",
                       counted(moved.copies, "transfer"), moved.what, bytes_in_words(each),
                       moved.copies == 1 ? "" : " each", moved.copies == 1 ? "takes" : "take",
                       percent(moved.total_s / is_.transfer_s));
  }

  /// ", and transfers take 4.5 times as long as kernels", where they take longer.
  std::string times_of_kernels() {
    const double times = is_.compute_s > 0 ? is_.transfer_s / is_.compute_s : 0;
    constexpr double kLonger = 1.05;
    if (times < kLonger) return "";
    said_times_ = true;
    return fmt::format(", and transfers take {:.1f} times as long as kernels", times);
  }

  void say_exposed() {
    const Spent& spent = is_.spent;
    const double exposed_s = spent.exposed_s(), ends_s = spent.fill_s + spent.drain_s;
    const bool at_ends = 2 * ends_s >= exposed_s;
    std::string words =
        fmt::format("copies that no kernel hides take {} of the time", percent(share(exposed_s)));
    if (at_ends) words += fmt::format(", {} of it {}", percent(ends_s / exposed_s), which_ends());
    words += times_of_kernels();
    const double between_s =
        std::max({spent.late_copies_s, spent.ordered_copies_s, spent.slow_copies_s});
    if (at_ends) {
      words += outweighed() ? kFewerBytes : smaller("{} overlap copies with kernels");
    } else if (spent.late_copies_s == between_s) {
      words += late_copies();
    } else if (spent.ordered_copies_s == between_s) {
      words += ordered_copies();
    } else {
      words += kFewerBytes;
    }
    add(Judgement::bad, words + most_moved());
  }

  const char* which_ends() const {
    const Spent& spent = is_.spent;
    constexpr double kMost = 0.75;
    const double ends_s = spent.fill_s + spent.drain_s;
    if (spent.fill_s >= kMost * ends_s) return "before the first kernel";
    if (spent.drain_s >= kMost * ends_s) return "after the last kernel";
    return "before the first kernel and after the last";
  }

  /// Whether kernels are too short to hide much of the transfers of the busiest link.
  bool outweighed() const {
    constexpr double kTimes = 2;
    const Resource* const link = busiest_link();
    return link != nullptr && link->busy_s >= kTimes * is_.spent.computing_s;
  }

  std::string late_copies() const {
    if (choices_.queue) return ", between kernels";
    return ": the program enqueues kernels only when those before have ended; enqueue ahead, "
           "without "
           "waiting in between";
  }

  std::string ordered_copies() const {
    std::string words = ": they come after the kernels before, in the same memory or stream";
    if (choices_.queue) return words;
    if (choices_.streams && streams_of_a_place() == 1) {
      return words + "; a second stream, with memory of its own, hides them";
    }
    return words + "; other memory for the next copies hides them";
  }

  void say_nothing() {
    const Spent& spent = is_.spent;
    if (spent.waiting_s >= spent.starting_s) {
      std::string words = fmt::format("nothing runs {} of the time, as no action is ready",
                                      percent(share(spent.waiting_s)));
      if (!choices_.queue) words += ": enqueue ahead, without waiting in between";
      return add(Judgement::bad, words);
    }
    const auto kernels = static_cast<double>(is_.kernels);
    std::string words = fmt::format(
        "nothing runs {} of the time while actions are ready to start: {} for each kernel, which "
        "takes {}",
        percent(share(spent.starting_s)), micros(spent.starting_s / kernels),
        micros(is_.compute_s / kernels));
    if (choices_.parts != nullptr && is_.kernels > 1) {
      words += fmt::format("; larger {} start less often", choices_.parts);
    }
    add(Judgement::bad, words);
  }

  void say_idle_cores() {
    constexpr double kLong = 0.7, kUneven = 1.25;
    const double idle = share(is_.spent.idle_cores_s());
    std::string words =
        fmt::format("{} of the cores' time is idle while kernels run", percent(idle));
    if (const double uneven = unevenness(); uneven >= kUneven) {
      words += fmt::format(", as the busiest place works {:.2f} times as long as the mean{}",
                           uneven, smaller("{} share more evenly"));
    } else if (share(is_.critical_s) >= kLong) {
      words += fmt::format(
          ", as the longest chain of dependent actions is {} of the time; more cores do not help{}",
          percent(share(is_.critical_s)), smaller("{} shorten the chain"));
    } else {
      const double busy = is_.core_s / std::max(is_.spent.computing_s, 1e-12);
      words += fmt::format(", as {:.1f} of {} have a kernel on average{}", busy,
                           counted(is_.cores, "core"), smaller("{} give more of them work"));
    }
    add(Judgement::bad, words);
  }

  /// The remedy of smaller parts, where there are any and they are not small already.
  std::string smaller(const char* what) const {
    constexpr double kSmall = 50e-6;
    const bool small = is_.compute_s < kSmall * static_cast<double>(is_.kernels);
    if (choices_.parts == nullptr || small) return "";
    return ": " + fmt::format(fmt::runtime(what), fmt::format("smaller {}", choices_.parts));
  }

  // ---- Facts ----

  void say_facts() {
    say_copies();
    say_ratio();
    say_idle();
    add(Judgement::fair, fmt::format("the longest chain of dependent actions is {} of the time",
                                     percent(share(is_.critical_s))));
  }

  void say_copies() {
    if (is_.transfer_s <= 0 || is_.kernels == 0) return;
    constexpr double kMany = 0.9, kSome = 0.7;
    const double hidden = is_.hidden_s / is_.transfer_s;
    add(hidden >= kMany   ? Judgement::good
        : hidden >= kSome ? Judgement::fair
                          : Judgement::bad,
        fmt::format("copies hidden {}{}", percent(hidden), said_times_ ? "" : times_of_kernels()));
  }

  void say_ratio() {
    if (is_.ideal_s <= 0) return;
    constexpr double kGood = 1.1, kFair = 1.5;
    const double ratio = total_s_ / is_.ideal_s;
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
    for (const Resource& resource : is_.resources) {
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
    add(Judgement::bad,
        fmt::format("{} of {} idle {} of the time{}", idle, counted(places, "place"),
                    percent(least), idle > 1 ? " or more" : ""));
  }

  // ---- Figures ----

  std::uint32_t streams_of_a_place() const {
    std::uint32_t most = 0;
    for (const Resource& resource : is_.resources) {
      if (!resource.is_link) most = std::max(most, resource.streams);
    }
    return most;
  }

  const Resource* busiest_link() const {
    const Resource* found = nullptr;
    for (const Resource& resource : is_.resources) {
      if (!resource.is_link) continue;
      if (found == nullptr || resource.busy_s > found->busy_s) found = &resource;
    }
    return found;
  }

  double unevenness() const {
    double most = 0, sum = 0;
    std::size_t places = 0;
    for (const Resource& resource : is_.resources) {
      if (resource.is_link) continue;
      most = std::max(most, resource.busy_s);
      sum += resource.busy_s;
      ++places;
    }
    return places > 1 && sum > 0 ? most * static_cast<double>(places) / sum : 1;
  }

  const Analysis& is_;
  const Choices& choices_;
  const double total_s_;
  bool said_times_ = false;
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> findings_on(const Analysis& analysis, const Choices& choices) {
  return Adviser(analysis, choices).findings();
}

}  // namespace weir::cli::report
