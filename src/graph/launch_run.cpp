#include "graph/launch_run.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include <fmt/format.h>

#include "backend/team.hpp"
#include "base/config.hpp"
#include "core/kernel.hpp"

namespace weir::rt {

namespace {

constexpr std::int64_t kMostPolls = 400;  ///< some 10 us, which few hand-overs between cores take
constexpr std::int64_t kPollNs = 100;     ///< of a poll, at most

}  // namespace

LaunchRun::LaunchRun(const CallList& list, const Dependences& dependences, std::size_t seats)
    : list_(list),
      dependences_(dependences),
      schedule_(list, dependences, seats),
      polls_(std::min<std::int64_t>(kMostPolls, config::spin_ns() / kPollNs)),
      positions_(std::make_unique<Position[]>(seats)),
      seats_(seats),
      scalars_(list.scalars()),
      failed_(list.calls().size()) {
  for (Seat& seat : seats_) {
    seat.views.resize(list.most_uses());
    seat.arguments.operands = seat.views.data();
  }
  for (std::uint32_t piece = 0; piece < list.pieces().size(); ++piece)
    views_.push_back(list.view_of({piece, WEIR_ACCESS_READ}));
}

void LaunchRun::prepare(const weir_call& launch, std::span<const weir_scalar> parameters) {
  assert(launch.operand_count == list_.buffers().size());
  for (std::size_t at = 0; at < views_.size(); ++at) {
    const CallList::Piece& piece = list_.pieces()[at];
    auto* const first = static_cast<std::byte*>(launch.operands[piece.buffer].address);
    views_[at].address = first + (piece.region.offset - list_.buffers()[piece.buffer].begin);
  }
  for (const CallList::Parameter& parameter : list_.parameters()) {
    scalars_[parameter.scalar] =
        parameters.empty() ? list_.scalars()[parameter.scalar] : parameters[parameter.index];
  }
  for (std::size_t seat = 0; seat < seats_.size(); ++seat) positions_[seat].done.store(0);
  if (alarm_.load()) std::ranges::fill(failed_, 0);
  alarm_.store(false);
}

Outcome LaunchRun::run(const weir_call& launch, std::span<const weir_scalar> parameters) {
  prepare(launch, parameters);
  for (const Schedule::Phase& phase : schedule_.phases()) {
    if (phase.parallel) {
      KernelCaller caller;
      seats_.front().arguments.team = launch.team;
      run_call(phase.call, seats_.front(), caller);
      seats_.front().arguments.team = nullptr;
    } else if (seats_.size() == 1) {
      run_steps(phase, 0);
    } else {
      std::pair<LaunchRun*, const Schedule::Phase*> part{this, &phase};
      const auto member = [](weir_team*, std::size_t seat, void* payload) {
        const auto& [run, steps] = *static_cast<decltype(part)*>(payload);
        run->run_steps(*steps, seat);
      };
      launch.team->run(member, &part);
    }
  }
  if (!alarm_.load()) return {};
  const sys::Lock lock(failure_mutex_);
  return std::exchange(failure_, {});
}

void LaunchRun::run_steps(const Schedule::Phase& phase, std::size_t number) noexcept {
  KernelCaller caller;
  Seat& seat = seats_[number];
  std::uint32_t done = phase.first[number];
  for (const Schedule::Step& step : schedule_.steps_of(phase, number)) {
    for (const Schedule::Wait& wait : schedule_.waits_of(step)) await(wait);
    run_call(step.call, seat, caller);
    ++done;
    if (step.awaited) publish(positions_[number], done);
  }
}

void LaunchRun::run_call(std::uint32_t number, Seat& seat, KernelCaller& caller) noexcept {
  if (alarm_.load(std::memory_order_relaxed) && depends_on_failed(number)) [[unlikely]] {
    failed_[number] = true;
    return;
  }
  const CallList::Call& call = list_.calls()[number];
  const auto uses = list_.uses_of(call);
  for (std::size_t i = 0; i < uses.size(); ++i) {
    seat.views[i] = views_[uses[i].piece];
    seat.views[i].access = uses[i].access;
  }
  seat.arguments.scalars = scalars_.data() + call.first_scalar;
  seat.arguments.scalar_count = call.scalar_count;
  seat.arguments.operand_count = call.use_count;
  seat.arguments.name = call.name;
  seat.arguments.payload = call.code->payload;
  if (!caller.call(call.code->function, seat.arguments, seat.failure)) [[unlikely]]
    fail(number, seat.failure);
}

/// Polls, and then sleeps: a thread that is woken gets a core that another program uses sooner than
/// one that yields.
void LaunchRun::await(const Schedule::Wait& wait) noexcept {
  Position& position = positions_[wait.seat];
  for (std::int64_t i = 0; i < polls_; ++i) {
    if (position.done.load(std::memory_order_acquire) >= wait.position) return;
    sys::pause();
  }
  position.sleepers.fetch_add(1, std::memory_order_seq_cst);
  for (;;) {
    const std::uint32_t done = position.done.load(std::memory_order_seq_cst);
    if (done >= wait.position) break;
    sys::wait(position.done, done);
  }
  position.sleepers.fetch_sub(1, std::memory_order_relaxed);
}

void LaunchRun::publish(Position& position, std::uint32_t done) noexcept {
  assert(done > position.done.load(std::memory_order_relaxed));  // each step once, in order
  position.done.store(done, std::memory_order_seq_cst);
  if (position.sleepers.load(std::memory_order_seq_cst) > 0) sys::wake_all(position.done);
}

bool LaunchRun::depends_on_failed(std::uint32_t call) const noexcept {
  return std::ranges::any_of(dependences_.of(call),
                             [this](std::uint32_t earlier) { return failed_[earlier] != 0; });
}

void LaunchRun::fail(std::uint32_t call, Outcome& failure) noexcept {
  failed_[call] = true;
  try {
    failure.message = fmt::format("call {} of {}, '{}': {}", call + 1, list_.calls().size(),
                                  list_.calls()[call].name, failure.message);
  } catch (...) {  // no memory: the message of the kernel must suffice
  }
  const sys::Lock lock(failure_mutex_);
  if (failure_.ok() || call < first_failed_) {
    first_failed_ = call;
    failure_ = std::move(failure);
  }
  alarm_.store(true, std::memory_order_relaxed);
}

}  // namespace weir::rt
