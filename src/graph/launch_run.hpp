// One launch of a graph at a time, on the threads of a place.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <weir/kernel.h>

#include "backend/invoke.hpp"
#include "base/error.hpp"
#include "base/threads.hpp"
#include "graph/schedule.hpp"

namespace weir::rt {

/// Runs the calls of a graph by a schedule, on as many threads as that has seats.
///
/// A call that fails sets the alarm; from then on each call first looks whether one that it depends
/// on has failed or was left out, and is then left out itself. Those are complete by then, so the
/// result does not depend on timing.
class LaunchRun {
 public:
  /// Throws std::bad_alloc. The list and the dependences outlive it.
  LaunchRun(const CallList& list, const Dependences& dependences, std::size_t seats);

  const Schedule& schedule() const noexcept { return schedule_; }

  /// Runs all calls on the buffers and with the parameters of a call of the launch's kernel, and
  /// returns the first failure in program order. One thread at a time; it leads the team.
  Outcome run(const weir_call& launch, std::span<const weir_scalar> parameters);

 private:
  /// The position of a seat, on a cache line that only it writes.
  struct alignas(64) Position {
    sys::Atomic<std::uint32_t> done{0};
    sys::Atomic<std::uint32_t> sleepers{0};
  };
  /// What a seat gives to kernels.
  struct alignas(64) Seat {
    std::vector<weir_view> views;
    weir_call arguments{};
    Outcome failure;
  };

  void prepare(const weir_call& launch, std::span<const weir_scalar> parameters);
  void run_steps(const Schedule::Phase& phase, std::size_t number) noexcept;
  void run_call(std::uint32_t call, Seat& seat, KernelCaller& caller) noexcept;
  void await(const Schedule::Wait& wait) noexcept;
  static void publish(Position& position, std::uint32_t done) noexcept;
  bool depends_on_failed(std::uint32_t call) const noexcept;
  void fail(std::uint32_t call, Outcome& failure) noexcept;

  const CallList& list_;
  const Dependences& dependences_;
  const Schedule schedule_;
  const std::int64_t polls_;  ///< of a waiting seat, before it sleeps
  const std::unique_ptr<Position[]> positions_;
  std::vector<Seat> seats_;
  std::vector<weir_view> views_;      ///< of each piece, at the addresses of this launch
  std::vector<weir_scalar> scalars_;  ///< of all calls, with the parameters of this launch

  sys::Atomic<bool> alarm_{false};  ///< a call has failed
  std::vector<char> failed_;        ///< by call: it failed or was left out
  sys::Mutex failure_mutex_;
  std::uint32_t first_failed_ WEIR_GUARDED_BY(failure_mutex_) = 0;
  Outcome failure_ WEIR_GUARDED_BY(failure_mutex_);
};

}  // namespace weir::rt
