#include "sched/policy.hpp"

#include <algorithm>

#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "base/thread_role.hpp"

namespace weir::rt {

namespace {

using Candidates = std::span<const weir_candidate>;

/// Returns the candidate with the least cost(candidate), the first of equal ones.
template <class Cost>
std::size_t cheapest(Candidates candidates, const Cost& cost) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < candidates.size(); ++i) {
    if (cost(candidates[i]) < cost(candidates[best])) best = i;
  }
  return best;
}

/// Tasks that a place has for each of its cores.
double load_of(const weir_candidate& candidate) {
  return static_cast<double>(candidate.tasks) / static_cast<double>(candidate.cores);
}

class RoundRobin final : public Policy {
 public:
  std::size_t choose(const char*, Candidates candidates) override {
    const std::size_t chosen = next_ % candidates.size();
    if (!candidates[chosen].full) ++next_;
    return chosen;
  }

 private:
  std::size_t next_ = 0;
};

/// The owner of what a task writes computes it. What nobody owns goes where there is least to do.
class Locality final : public Policy {
 public:
  std::size_t choose(const char*, Candidates candidates) override {
    const auto most = std::max_element(
        candidates.begin(), candidates.end(),
        [](const auto& a, const auto& b) { return a.owned_bytes < b.owned_bytes; });
    if (most->owned_bytes > 0) return static_cast<std::size_t>(most - candidates.begin());
    return cheapest(candidates, load_of);
  }
};

/// The place that will have done the task first. Places that never ran the kind of task get some to
/// be measured.
class EarliestFinish final : public Policy {
 public:
  std::size_t choose(const char*, Candidates candidates) override {
    const bool known = std::all_of(candidates.begin(), candidates.end(),
                                   [](const auto& candidate) { return candidate.run_ns >= 0; });
    if (known) return cheapest(candidates, finish_of);
    return cheapest(candidates, [](const auto& candidate) {
      return load_of(candidate) + (candidate.full ? kFull : 0);
    });
  }

 private:
  static constexpr double kFull = 1e9;

  /// Copies count twice: where they are hidden, they still keep the link from others.
  static std::int64_t finish_of(const weir_candidate& candidate) {
    const std::int64_t start =
        std::max(candidate.free_ns, candidate.ready_ns + candidate.transfer_ns);
    return start + candidate.run_ns + candidate.transfer_ns;
  }
};

/// A place with room takes the task, rather one that has its data.
class Steal final : public Policy {
 public:
  std::size_t choose(const char*, Candidates candidates) override {
    return cheapest(candidates, [](const auto& candidate) {
      return std::pair(candidate.full ? 1 : 0,
                       std::pair(candidate.tasks < candidate.cores ? 0 : 1,
                                 std::pair(candidate.missing_bytes, load_of(candidate))));
    });
  }
};

/// Shares in proportion to the weights: the place that is furthest behind its share.
class Static final : public Policy {
 public:
  std::size_t choose(const char*, Candidates candidates) override {
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

/// Of the program.
class Custom final : public Policy {
 public:
  Custom(weir_policy_function function, void* payload) : function_(function), payload_(payload) {}
  std::size_t choose(const char* task, Candidates candidates) override {
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
  own("finish", "the place that will have done it first, by measured times",
      make_new<EarliestFinish>);
  own("steal", "a place that has room, rather one that has the data", make_new<Steal>);
  own("locality", "the place that last wrote what the task writes", make_new<Locality>);
  own("static", "in proportion to given weights, or to measured speed", make_new<Static>);
  own("round-robin", "one after the other", make_new<RoundRobin>);
}

void PolicyTable::add(const weir_policy_options& options) {
  if (options.name == nullptr || *options.name == '\0') fail_argument("a policy needs a name");
  if (options.choose == nullptr) fail_argument("policy '{}' has no function", options.name);
  for (const PolicyEntry& entry : entries_) {
    if (entry.name == options.name) {
      fail(WEIR_STATUS_BUSY, "there is a policy '{}' already: give yours another name", entry.name);
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
