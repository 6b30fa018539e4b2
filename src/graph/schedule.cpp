#include "graph/schedule.hpp"

#include <algorithm>
#include <cassert>

namespace weir::rt {

namespace {

/// How far a call is from the beginning, in calls of the longest path.
std::vector<std::uint32_t> levels_of(const CallList& list, const Dependences& dependences) {
  std::vector<std::uint32_t> levels(list.calls().size());
  for (std::size_t call = 0; call < levels.size(); ++call) {
    for (const std::uint32_t earlier : dependences.of(call)) {
      levels[call] = std::max(levels[call], levels[earlier] + 1);
    }
  }
  return levels;
}

/// Chooses a seat for each call: that of the last writer of what it writes first, or else of its
/// latest predecessor, while the calls of a level are spread evenly over the seats. A call without
/// either takes the place in its level that it has in the program.
std::vector<std::uint32_t> assign_seats(const CallList& list, const Dependences& dependences,
                                        std::size_t seats) {
  constexpr std::uint32_t kNone = UINT32_MAX;
  const std::vector<std::uint32_t> levels = levels_of(list, dependences);
  const std::size_t level_count = levels.empty() ? 0 : std::ranges::max(levels) + 1u;
  std::vector<std::size_t> width(level_count), seen(level_count);
  for (const std::uint32_t level : levels) ++width[level];
  std::vector<std::size_t> taken(level_count * seats);  // by level and seat
  std::vector<std::uint32_t> owner(list.pieces().size(), kNone), chosen(levels.size());
  for (std::size_t at = 0; at < levels.size(); ++at) {
    const std::uint32_t level = levels[at];
    const std::size_t most = (width[level] + seats - 1) / seats;
    const auto uses = list.uses_of(list.calls()[at]);
    std::size_t wanted = seen[level]++ * seats / width[level];
    if (!dependences.of(at).empty()) wanted = chosen[dependences.of(at).back()];
    for (const CallList::Use& use : uses) {
      if (!use.writes() || owner[use.piece] == kNone) continue;
      wanted = owner[use.piece];
      break;
    }
    const auto row = taken.begin() + static_cast<std::ptrdiff_t>(level * seats);
    if (row[static_cast<std::ptrdiff_t>(wanted)] >= most) {
      wanted = static_cast<std::size_t>(
          std::min_element(row, row + static_cast<std::ptrdiff_t>(seats)) - row);
    }
    ++row[static_cast<std::ptrdiff_t>(wanted)];
    chosen[at] = static_cast<std::uint32_t>(wanted);
    for (const CallList::Use& use : uses) {
      if (use.writes()) owner[use.piece] = chosen[at];
    }
  }
  return chosen;
}

}  // namespace

/// Fills in a schedule, one phase after the other. A *clock* says which positions of all seats have
/// been reached for certain at some point of a seat.
class Schedule::Maker {
 public:
  Maker(Schedule& schedule, const CallList& list, const Dependences& dependences, std::size_t seats)
      : schedule_(schedule),
        dependences_(dependences),
        seats_(seats),
        seat_of_(assign_seats(list, dependences, seats)),
        position_of_(list.calls().size()),
        clock_after_(list.calls().size() * seats),
        clocks_(seats * seats) {
    schedule_.steps_.resize(seats);
    for (std::uint32_t at = 0; at < list.calls().size(); ++at) {
      if (list.calls()[at].parallel) {
        add_parallel(at);
      } else {
        add_step(at);
      }
    }
    end_lists();
  }

 private:
  void end_lists() {
    if (!open_) return;
    open_ = false;
    Phase& phase = schedule_.phases_.back();
    for (std::size_t seat = 0; seat < seats_; ++seat) phase.last[seat] = length(seat);
  }

  void add_parallel(std::uint32_t call) {
    end_lists();
    schedule_.phases_.push_back({true, call, {}, {}});
    // Behind it everything is complete: also the call, which has no position.
    for (std::size_t seat = 0; seat < seats_; ++seat) {
      for (std::size_t of = 0; of < seats_; ++of) clocks_[seat * seats_ + of] = length(of);
    }
  }

  void add_step(std::uint32_t call) {
    const std::uint32_t seat = seat_of_[call];
    if (!open_) {
      open_ = true;
      Phase& phase = schedule_.phases_.emplace_back(Phase{false, 0, {}, {}});
      phase.last.resize(seats_);
      for (std::size_t of = 0; of < seats_; ++of) phase.first.push_back(length(of));
    }
    Step step{call, static_cast<std::uint32_t>(schedule_.waits_.size()), 0, false};
    std::uint32_t* const clock = clocks_.data() + seat * seats_;
    // The latest first: what it implies needs no wait.
    const auto earlier = dependences_.of(call);
    for (auto at = earlier.rbegin(); at != earlier.rend(); ++at) {
      const std::uint32_t from = seat_of_[*at], position = position_of_[*at];
      if (from == seat || clock[from] >= position) continue;
      schedule_.waits_.push_back({from, position});
      schedule_.steps_[from][position - 1].awaited = true;
      const std::uint32_t* const known = clock_after_.data() + std::size_t{*at} * seats_;
      for (std::size_t of = 0; of < seats_; ++of) clock[of] = std::max(clock[of], known[of]);
      ++step.wait_count;
    }
    schedule_.steps_[seat].push_back(step);
    clock[seat] = position_of_[call] = length(seat);
    std::copy_n(clock, seats_, clock_after_.data() + std::size_t{call} * seats_);
  }

  std::uint32_t length(std::size_t seat) const noexcept {
    return static_cast<std::uint32_t>(schedule_.steps_[seat].size());
  }

  Schedule& schedule_;
  const Dependences& dependences_;
  const std::size_t seats_;
  const std::vector<std::uint32_t> seat_of_;
  std::vector<std::uint32_t> position_of_;  ///< of the seat after each call; 0: a parallel call
  std::vector<std::uint32_t> clock_after_;  ///< by call and seat
  std::vector<std::uint32_t> clocks_;       ///< of each seat after its last step
  bool open_ = false;                       ///< the last phase takes more steps
};

Schedule::Schedule(const CallList& list, const Dependences& dependences, std::size_t seats) {
  assert(seats > 0);
  Maker(*this, list, dependences, seats);
}

}  // namespace weir::rt
