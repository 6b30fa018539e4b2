#include "tasks/policy.hpp"

#include <algorithm>
#include <utility>

#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "base/thread_role.hpp"
#include "tasks/piece.hpp"

namespace weir::rt {

namespace {

using Candidates = std::span<const weir_candidate>;
using Estimates = std::span<const CandidateEstimate>;

/// Returns the candidate with the lowest cost(candidate), the first one of equals.
template <class Cost>
std::size_t cheapest(Candidates candidates, const Cost& cost) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < candidates.size(); ++i) {
    if (cost(candidates[i]) < cost(candidates[best])) best = i;
  }
  return best;
}

/// Returns the number of tasks per core of a place.
double load_of(const weir_candidate& candidate) {
  return static_cast<double>(candidate.tasks) / static_cast<double>(candidate.cores);
}

class RoundRobin final : public Policy {
 public:
  std::size_t choose(const char*, Candidates candidates, Estimates) override {
    const std::size_t chosen = next_ % candidates.size();
    if (!candidates[chosen].full) ++next_;
    return chosen;
  }

 private:
  std::size_t next_ = 0;
};

/// Chooses the owner of what the task writes. Without an owner, chooses the place with the least
/// load.
class Locality final : public Policy {
 public:
  std::size_t choose(const char*, Candidates candidates, Estimates) override {
    const auto most = std::max_element(
        candidates.begin(), candidates.end(),
        [](const auto& a, const auto& b) { return a.owned_bytes < b.owned_bytes; });
    if (most->owned_bytes > 0) return static_cast<std::size_t>(most - candidates.begin());
    return cheapest(candidates, load_of);
  }
};

/// Chooses the place with the earliest estimated completion. Places that never ran the kernel get
/// one task per core for measurement. A place that was avoided for long is tried again when that
/// costs little compared with the tasks since.
class EarliestFinish final : public Policy {
 public:
  bool wants_ready_tasks() const noexcept override { return true; }

  std::size_t choose(const char*, Candidates candidates, Estimates estimates) override {
    if (candidates.size() == 1) return 0;
    const std::size_t none = candidates.size();
    std::size_t unknown = none, best = none, soonest = none, cores = 0;
    std::int64_t least = 0, earliest = 0;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const weir_candidate& candidate = candidates[i];
      cores += candidate.cores;
      if (candidate.run_ns >= 0) {
        const std::int64_t cost = cost_of(candidate, estimates[i]);
        if (best == none || cost < least) best = i, least = cost;
        const std::int64_t end = completion_of(candidate);
        if (soonest == none || end < earliest) soonest = i, earliest = end;
      } else if (!candidate.full && estimates[i].unmeasured < candidate.cores) {
        if (unknown == none || load_of(candidate) < load_of(candidates[unknown])) unknown = i;
      }
    }
    if (unknown != none) return unknown;
    if (best == none) return WEIR_POLICY_LATER;
    if (candidates[best].full) return best;
    if (soonest != best && pays_to_move(candidates, estimates, best, soonest)) return soonest;
    const double share_ns =
        static_cast<double>(candidates[best].run_ns) / static_cast<double>(cores);
    savings_ns_ = std::min(savings_ns_ + share_ns / kSaved, kMostSaved * share_ns);
    return try_again(candidates, estimates, best, least);
  }

 private:
  static constexpr std::int64_t kCopies = 4;  ///< weight of a copy, besides the wait for it
  static constexpr std::int64_t kMove = 6;    ///< weight of a copy that moves data, and of one back
  static constexpr double kSaved = 32;        ///< 1/kSaved of the time may go to measurements
  static constexpr double kMostSaved = 256;   ///< tasks for which time is saved up
  static constexpr double kDoubt = 8;         ///< factor by which an unmeasured time may be wrong
  static constexpr std::uint64_t kOld = 64;   ///< tasks after which a measured time may be obsolete

  /// The completion time of the task, plus a penalty for the time that its copies occupy links:
  /// what was copied once is likely to be copied again.
  static std::int64_t cost_of(const weir_candidate& candidate, const CandidateEstimate& estimate) {
    return completion_of(candidate) + kCopies * estimate.copying_ns;
  }
  static std::int64_t completion_of(const weir_candidate& candidate) {
    return std::max(candidate.free_ns, candidate.ready_ns + candidate.transfer_ns) +
           candidate.run_ns;
  }

  /// Whether a task moves its data to the place of its earliest completion, although the copies
  /// weigh more than it gains. It does if successive tasks on this data have together lost more by
  /// staying than the copies weigh ("rent or buy"): an iteration uses its data again.
  static bool pays_to_move(Candidates candidates, Estimates estimates, std::size_t best,
                           std::size_t soonest) {
    Piece* const piece = estimates[soonest].largest;
    if (candidates[soonest].full || piece == nullptr) return false;
    const std::uint64_t before = std::exchange(piece->waited_sequence, piece->writer_sequence);
    if (before == piece->writer_sequence) return false;  // contents that many tasks read count once
    piece->waited_ns += completion_of(candidates[best]) - completion_of(candidates[soonest]);
    if (piece->waited_ns < kMove * (estimates[soonest].copying_ns - estimates[best].copying_ns)) {
      return false;
    }
    piece->waited_ns = 0;
    return true;
  }

  /// Returns an idle place that was avoided, if its extra cost is saved up, else the best one.
  std::size_t try_again(Candidates candidates, Estimates estimates, std::size_t best,
                        std::int64_t least) {
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const weir_candidate& candidate = candidates[i];
      if (i == best || candidate.run_ns < 0 || candidate.tasks >= candidate.cores) continue;
      const bool measured = estimates[i].source == PerformanceModel::Source::measured;
      if (estimates[i].tasks_since < (measured ? kOld : kOld / 2)) continue;
      const auto more =
          static_cast<double>(cost_of(candidate, estimates[i]) - least) / (measured ? 1 : kDoubt);
      if (more > savings_ns_) continue;
      savings_ns_ -= more;
      return i;
    }
    return best;
  }

  double savings_ns_ = 0;  ///< for trying avoided places
};

/// Chooses a place with free cores, preferably one that has the data.
class Steal final : public Policy {
 public:
  std::size_t choose(const char*, Candidates candidates, Estimates) override {
    return cheapest(candidates, [](const auto& candidate) {
      return std::pair(candidate.full ? 1 : 0,
                       std::pair(candidate.tasks < candidate.cores ? 0 : 1,
                                 std::pair(candidate.missing_bytes, load_of(candidate))));
    });
  }
};

/// Distributes tasks in proportion to the weights: chooses the place that is furthest behind.
class Static final : public Policy {
 public:
  std::size_t choose(const char*, Candidates candidates, Estimates) override {
    for (const weir_candidate& candidate : candidates) share_of(candidate);
    const std::size_t best = cheapest(candidates, [this](const auto& candidate) {
      return (share_of(candidate) + 1) / candidate.weight;
    });
    if (!candidates[best].full) share_of(candidates[best]) += 1;
    return best;
  }

 private:
  double& share_of(const weir_candidate& candidate) {
    for (auto& [place, tasks] : shares_) {
      if (place == candidate.place) return tasks;
    }
    return shares_.emplace_back(candidate.place, 0.0).second;
  }

  std::vector<std::pair<weir_place*, double>> shares_;
};

/// A policy of the program.
class Custom final : public Policy {
 public:
  Custom(weir_policy_function function, void* payload) : function_(function), payload_(payload) {}
  std::size_t choose(const char* task, Candidates candidates, Estimates) override {
    const NoWaitScope no_wait;
    return function_(task, candidates.data(), candidates.size(), payload_);
  }

 private:
  const weir_policy_function function_;
  void* const payload_;
};

template <class Type>
std::unique_ptr<Policy> make_new() {
  return std::make_unique<Type>();
}

}  // namespace

PolicyTable::PolicyTable() {
  const auto own = [this](const char* name, const char* summary,
                          std::unique_ptr<Policy> (*make)()) {
    entries_.push_back({.name = name, .summary = summary, .make = make});
  };
  own("finish", "the place with the earliest predicted completion, by measured times",
      make_new<EarliestFinish>);
  own("steal", "a place with a free core, preferably with the data", make_new<Steal>);
  own("locality", "the place that last wrote what the task writes", make_new<Locality>);
  own("static", "in proportion to given weights, or to measured speed", make_new<Static>);
  own("round-robin", "one after the other", make_new<RoundRobin>);
}

void PolicyTable::add(const weir_policy_options& options) {
  if (options.name == nullptr || *options.name == '\0') {
    fail_argument("weir_policy_options::name is NULL or empty");
  }
  if (options.choose == nullptr) fail_argument("policy '{}' has no function", options.name);
  for (const PolicyEntry& entry : entries_) {
    if (entry.name == options.name) {
      fail_argument("policy '{}' is registered already: choose another name", entry.name);
    }
  }
  entries_.push_back({.name = options.name,
                      .summary = options.summary != nullptr ? options.summary : "",
                      .function = options.choose,
                      .payload = options.payload});
}

std::unique_ptr<Policy> PolicyTable::make(const std::string& name) const {
  std::vector<std::string> names;
  for (const PolicyEntry& entry : entries_) {
    if (entry.name != name) {
      names.push_back(entry.name);
    } else if (entry.make != nullptr) {
      return entry.make();
    } else {
      return std::make_unique<Custom>(entry.function, entry.payload);
    }
  }
  fail(WEIR_STATUS_NOT_FOUND, "no policy '{}'{}; there is: {}", name, did_you_mean(name, names),
       fmt::join(names, ", "));
}

}  // namespace weir::rt
