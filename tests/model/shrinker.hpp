// What makes programs that fail smaller.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

namespace weir::model {

/// Changes a plan, which has `steps`, for as long as it still fails and there is time.
template <class Plan>
class Shrinker {
 public:
  /// Returns whether a plan fails when it is run.
  using Fails = std::function<bool(const Plan& plan)>;

  /// The plan itself must fail. Its last `kept` steps stay.
  Shrinker(Plan plan, const Fails& fails, double seconds, std::size_t kept = 0)
      : plan_(std::move(plan)),
        fails_(fails),
        kept_(kept),
        until_(Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                  std::chrono::duration<double>(seconds))) {}

  const Plan& plan() const { return plan_; }

  /// Takes out steps, by without(plan, taken out), and calls simplify(*this), which says whether it
  /// changed anything, until neither helps. Returns what is left.
  template <class Without, class Simplify>
  Plan run(Without&& without, Simplify&& simplify) {
    bool smaller = true;
    while (smaller && in_time()) {
      smaller = take_out_steps(without);
      smaller |= simplify(*this);
    }
    return std::move(plan_);
  }

  /// Returns whether make(plan) changed something, as it says, and the plan still fails: then the
  /// change stays.
  template <class Change>
  bool change(Change&& make) {
    Plan candidate = plan_;
    return make(candidate) && try_instead(std::move(candidate));
  }

 private:
  using Clock = std::chrono::steady_clock;

  bool in_time() const { return Clock::now() < until_; }

  bool try_instead(Plan candidate) {
    if (!in_time() || !fails_(candidate)) return false;
    plan_ = std::move(candidate);
    return true;
  }

  std::size_t steps() const { return plan_.steps.size() - kept_; }

  /// Takes out runs of steps, long ones first.
  template <class Without>
  bool take_out_steps(Without& without) {
    bool smaller = false;
    for (std::size_t length = steps(); length > 0; length /= 2) {
      for (std::size_t first = 0; first < steps();) {
        std::vector<bool> out(plan_.steps.size(), false);
        const std::size_t end = std::min(first + length, steps());
        std::fill(out.begin() + static_cast<std::ptrdiff_t>(first),
                  out.begin() + static_cast<std::ptrdiff_t>(end), true);
        if (try_instead(without(plan_, out))) {
          smaller = true;
        } else {
          first = end;
        }
      }
    }
    return smaller;
  }

  Plan plan_;
  const Fails& fails_;
  const std::size_t kept_;
  const Clock::time_point until_;
};

}  // namespace weir::model
