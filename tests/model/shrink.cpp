#include "shrink.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace weir::model {

namespace {

using Clock = std::chrono::steady_clock;

class Shrinker {
 public:
  Shrinker(Program plan, const Fails& fails, double seconds)
      : plan_(std::move(plan)),
        fails_(fails),
        until_(Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                  std::chrono::duration<double>(seconds))) {}

  Program run() {
    bool smaller = true;
    while (smaller && in_time()) {
      smaller = take_out_steps();
      smaller |= simplify();
    }
    return std::move(plan_);
  }

 private:
  bool in_time() const { return Clock::now() < until_; }

  bool try_instead(Program candidate) {
    if (!in_time() || !fails_(candidate)) return false;
    plan_ = std::move(candidate);
    return true;
  }

  /// Takes out runs of steps, long ones first.
  bool take_out_steps() {
    bool smaller = false;
    for (std::size_t length = plan_.steps.size(); length > 0; length /= 2) {
      for (std::size_t first = 0; first < plan_.steps.size();) {
        std::vector<bool> out(plan_.steps.size(), false);
        const std::size_t end = std::min(first + length, out.size());
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

  template <class Change>
  bool change(Change&& make) {
    Program candidate = plan_;
    return make(candidate) && try_instead(std::move(candidate));
  }

  bool simplify() {
    bool simpler = change([](Program& plan) { return std::exchange(plan.threads, 1) > 1; });
    for (std::size_t i = 0; i < plan_.streams.size(); ++i) {
      simpler |=
          change([i](Program& plan) { return std::exchange(plan.streams[i].priority, 0) != 0; });
      simpler |= change([i](Program& plan) {
        return std::exchange(plan.streams[i].policy, WEIR_DEPENDENCE_POLICY_OPERANDS) !=
               WEIR_DEPENDENCE_POLICY_OPERANDS;
      });
    }
    for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
      simpler |=
          change([i](Program& plan) { return std::exchange(plan.steps[i].parallel, false); });
      simpler |= change([i](Program& plan) { return std::exchange(plan.steps[i].fails, false); });
      simpler |= take_out_operands(i);
    }
    while (change([](Program& plan) { return drop_last_stream(plan); })) simpler = true;
    return simpler;
  }

  bool take_out_operands(std::size_t step) {
    bool simpler = false;
    for (std::size_t part = plan_.steps[step].parts.size(); part-- > 0;) {
      simpler |= change([=](Program& plan) {
        Step& changed = plan.steps[step];
        if (changed.kind == StepKind::transfer || changed.scope == WEIR_SYNC_SCOPE_OPERANDS) {
          return false;
        }
        changed.parts.erase(changed.parts.begin() + static_cast<std::ptrdiff_t>(part));
        return true;
      });
    }
    return simpler;
  }

  static bool drop_last_stream(Program& plan) {
    const std::size_t last = plan.streams.size() - 1;
    const bool used = std::any_of(plan.steps.begin(), plan.steps.end(),
                                  [last](const Step& step) { return step.stream == last; });
    if (used || last == 0) return false;
    plan.streams.pop_back();
    return true;
  }

  Program plan_;
  const Fails& fails_;
  const Clock::time_point until_;
};

}  // namespace

Program shrink(Program plan, const Fails& fails, double seconds) {
  return Shrinker(std::move(plan), fails, seconds).run();
}

}  // namespace weir::model
