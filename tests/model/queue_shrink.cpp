#include "queue_shrink.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

namespace weir::queue_model {

namespace {

using Shrinker = model::Shrinker<Plan>;

Plan without_steps(Plan plan, const std::vector<bool>& out) {
  std::size_t at = 0;
  std::erase_if(plan.steps, [&](const Step&) { return out[at++]; });
  return plan;
}

/// A task keeps one.
bool take_out_operands(Shrinker& shrinker, std::size_t step) {
  bool simpler = false;
  for (std::size_t k = shrinker.plan().steps[step].task.accesses.size(); k-- > 0;) {
    simpler |= shrinker.change([=](Plan& plan) {
      std::vector<Access>& accesses = plan.steps[step].task.accesses;
      if (accesses.size() <= 1) return false;
      accesses.erase(accesses.begin() + static_cast<std::ptrdiff_t>(k));
      return true;
    });
  }
  return simpler;
}

bool uses(const Step& step, std::size_t part) {
  if (step.has_part()) return step.part == part;
  return std::any_of(step.task.accesses.begin(), step.task.accesses.end(),
                     [part](const Access& access) { return access.part == part; });
}

/// Takes out a part that no step uses; one stays.
bool take_out_part(Plan& plan, std::size_t part) {
  const bool used = std::any_of(plan.steps.begin(), plan.steps.end(),
                                [part](const Step& step) { return uses(step, part); });
  if (used || plan.parts.size() == 1) return false;
  plan.parts.erase(plan.parts.begin() + static_cast<std::ptrdiff_t>(part));
  for (Step& step : plan.steps) {
    if (step.part > part) --step.part;
    for (Access& access : step.task.accesses) {
      if (access.part > part) --access.part;
    }
  }
  return true;
}

bool simplify_steps(Shrinker& shrinker) {
  bool simpler = shrinker.change([](Plan& plan) {
    return std::exchange(plan.policy, std::string("round-robin")) != "round-robin";
  });
  simpler |= shrinker.change(
      [](Plan& plan) { return std::exchange(plan.producers, std::size_t{1}) != 1; });
  for (std::size_t i = 0; i < shrinker.plan().steps.size(); ++i) {
    simpler |=
        shrinker.change([i](Plan& plan) { return std::exchange(plan.steps[i].brief, false); });
    const auto change = [&](auto&& make) {
      return shrinker.change([&](Plan& plan) { return make(plan.steps[i].task); });
    };
    simpler |= change([](PlannedTask& task) { return std::exchange(task.throws, false); });
    simpler |= change([](PlannedTask& task) { return std::exchange(task.bytewise, false); });
    simpler |= change([](PlannedTask& task) { return std::exchange(task.priority, 0) != 0; });
    simpler |= change([](PlannedTask& task) { return std::exchange(task.domain, -1) != -1; });
    simpler |= change([](PlannedTask& task) { return std::exchange(task.place, -1) != -1; });
    simpler |= change([](PlannedTask& task) { return std::exchange(task.init, false); });
    simpler |= take_out_operands(shrinker, i);
  }
  for (std::size_t part = shrinker.plan().parts.size(); part-- > 0;) {
    simpler |= shrinker.change([part](Plan& plan) { return take_out_part(plan, part); });
  }
  return simpler;
}

}  // namespace

Plan shrink(Plan plan, const Fails& fails, double seconds) {
  return Shrinker(std::move(plan), fails, seconds, 1).run(without_steps, simplify_steps);
}

}  // namespace weir::queue_model
