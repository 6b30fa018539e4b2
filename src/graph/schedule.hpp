// Lists of calls for the cores of a place.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/call_list.hpp"
#include "graph/dependences.hpp"

namespace weir::rt {

/// What each core of a place does in a launch.
///
/// A *seat* is the list of one core: *steps* in program order. Its *position* is the number of its
/// steps that are complete. A step waits until the positions of other seats have reached what it
/// depends on; a wait that follows from earlier waits of its seat is left out. Each wait is for an
/// earlier call of the program, so some seat can always go on.
///
/// Parallel calls, which need all cores, divide the program into *phases*: a phase is either one
/// such call, or lists of serial calls. All cores end a phase before the next one begins.
///
/// Example: calls 0 and 1 write A and B, 2 reads both and writes A, 3 reads A; two seats:
///
///     seat 0: 0, 2 (waits for position 1 of seat 1), 3      seat 1: 1 (its position is awaited)
class Schedule {
 public:
  struct Wait {
    std::uint32_t seat;
    std::uint32_t position;
  };
  struct Step {
    std::uint32_t call;
    std::uint32_t first_wait;
    std::uint16_t wait_count;
    bool awaited;  ///< a step of another seat waits for the position after this one
  };
  struct Phase {
    bool parallel;
    std::uint32_t call;                      ///< of a parallel phase
    std::vector<std::uint32_t> first, last;  ///< steps of each seat, of a phase with lists
  };

  /// Throws std::bad_alloc.
  Schedule(const CallList& list, const Dependences& dependences, std::size_t seats);

  std::size_t seats() const noexcept { return steps_.size(); }
  const std::vector<Phase>& phases() const noexcept { return phases_; }
  std::span<const Step> steps_of(const Phase& phase, std::size_t seat) const noexcept {
    return {steps_[seat].data() + phase.first[seat], steps_[seat].data() + phase.last[seat]};
  }
  std::span<const Wait> waits_of(const Step& step) const noexcept {
    return {waits_.data() + step.first_wait, step.wait_count};
  }
  std::size_t wait_count() const noexcept { return waits_.size(); }

 private:
  class Maker;

  std::vector<std::vector<Step>> steps_;  ///< by seat
  std::vector<Wait> waits_;
  std::vector<Phase> phases_;
};

}  // namespace weir::rt
