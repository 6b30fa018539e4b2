#include "shrink.hpp"

#include <algorithm>
#include <utility>

namespace weir::model {

namespace {

bool take_out_operands(Shrinker<Program>& shrinker, std::size_t step) {
  bool simpler = false;
  for (std::size_t part = shrinker.plan().steps[step].parts.size(); part-- > 0;) {
    simpler |= shrinker.change([=](Program& plan) {
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

bool drop_last_stream(Program& plan) {
  const std::size_t last = plan.streams.size() - 1;
  const bool used = std::any_of(plan.steps.begin(), plan.steps.end(),
                                [last](const Step& step) { return step.stream == last; });
  if (used || last == 0) return false;
  plan.streams.pop_back();
  return true;
}

bool simplify(Shrinker<Program>& shrinker) {
  const auto change = [&](auto&& make) { return shrinker.change(make); };
  bool simpler = change([](Program& plan) { return std::exchange(plan.threads, 1) > 1; });
  for (std::size_t i = 0; i < shrinker.plan().streams.size(); ++i) {
    simpler |=
        change([i](Program& plan) { return std::exchange(plan.streams[i].priority, 0) != 0; });
    simpler |= change([i](Program& plan) {
      return std::exchange(plan.streams[i].policy, WEIR_DEPENDENCE_POLICY_OPERANDS) !=
             WEIR_DEPENDENCE_POLICY_OPERANDS;
    });
  }
  for (std::size_t i = 0; i < shrinker.plan().steps.size(); ++i) {
    simpler |= change([i](Program& plan) { return std::exchange(plan.steps[i].parallel, false); });
    simpler |= change([i](Program& plan) { return std::exchange(plan.steps[i].fails, false); });
    simpler |= take_out_operands(shrinker, i);
  }
  while (change(drop_last_stream)) simpler = true;
  return simpler;
}

}  // namespace

Program shrink(Program plan, const Fails& fails, double seconds) {
  return Shrinker<Program>(std::move(plan), fails, seconds).run(without, simplify);
}

}  // namespace weir::model
