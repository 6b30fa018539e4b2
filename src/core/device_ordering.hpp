// Device ordering: what the device has of one stream, and what it must wait for.
#pragma once

#include <cassert>
#include <cstdint>
#include <utility>

#include "core/action_lists.hpp"

namespace weir::rt {

/// Where dependences are resolved.
enum class Ordering : std::uint8_t {
  host,    ///< in the engine: it hands out an action when its predecessors are complete
  device,  ///< on the device: the engine hands out an action when its predecessors are submitted
};

/// The submissions of the admitted actions of one stream, under device ordering. Under host
/// ordering it is inactive and has no data.
///
/// `unsubmitted_predecessors` of an action is the number of its incomplete predecessors that are
/// neither submitted nor released early, and of its incomplete events without a submission id.
class DeviceOrdering {
 public:
  /// The state of an action under device ordering.
  struct Submission {
    Edge* predecessors = nullptr;  ///< edges from its predecessors, until it is submitted
    std::uint64_t id = 0;          ///< submission id; 0: none yet
    /// Number of predecessors and events that are not submitted.
    std::uint32_t unsubmitted_predecessors = 0;
    bool submitted = false;  ///< successors may be submitted
    bool queued = false;     ///< in the queue of ready actions
    bool executed = false;   ///< returned by the driver, but a predecessor is incomplete
  };

  explicit DeviceOrdering(Ordering ordering) noexcept : active_(ordering == Ordering::device) {}

  bool active() const noexcept { return active_; }
  const Submission& of(const Action& action) const noexcept {
    return action.in_window ? window_[action.sequence()] : outside_;
  }
  Submission& of(const Action& action) noexcept {
    return const_cast<Submission&>(std::as_const(*this).of(action));
  }

  /// Makes room for one more action of this window. Throws std::bad_alloc.
  void reserve(const ActionWindow& window) {
    if (active_) window_.reserve(window.low(), window.high());
  }
  /// Begins with an admitted action: its incomplete events without a submission id are unsubmitted.
  void enter(Action& action) noexcept {
    Submission& submission = of(action);
    submission = {};
    submission.unsubmitted_predecessors = action.pending;
    for (const EventWait& wait : action.events()) {
      if (wait.submission_id != 0) --submission.unsubmitted_predecessors;
    }
  }
  /// Adds an edge to its successor, which is not submitted.
  void add_predecessor(Edge& edge) noexcept {
    Submission& successor = of(*edge.successor);
    edge.next_predecessor = std::exchange(successor.predecessors, &edge);
    if (!of(*edge.predecessor).submitted) ++successor.unsubmitted_predecessors;
  }
  /// One predecessor or event less of an action is unsubmitted.
  void drop_unsubmitted(const Action& action) noexcept {
    assert(of(action).unsubmitted_predecessors > 0);
    --of(action).unsubmitted_predecessors;
  }
  /// Removes the edge of a complete predecessor. Returns whether nothing refers to the edge; else
  /// drop_predecessors() of the successor frees it.
  [[nodiscard]] bool remove_predecessor(Edge& edge) noexcept {
    if (!of(*edge.predecessor).submitted) drop_unsubmitted(*edge.successor);
    if (edge.next_predecessor == &edge) return true;
    edge.predecessor = nullptr;
    return false;
  }
  /// Removes the action's list of predecessors, which it no longer needs, and frees the edges whose
  /// predecessors are complete. The other edges free themselves with their predecessors.
  void drop_predecessors(Action& action, EdgePool& edges) noexcept {
    for (Edge* edge = std::exchange(of(action).predecessors, nullptr); edge != nullptr;) {
      Edge* const next = edge->next_predecessor;
      if (edge->predecessor == nullptr) {
        edges.give(*edge);
      } else {
        edge->next_predecessor = edge;  // marks that nothing refers to it
      }
      edge = next;
    }
  }
  /// Whether each incomplete predecessor has a submission id, so that successors of the action may
  /// depend on these jobs instead.
  bool knows_predecessors(const Action& action) const noexcept {
    for (const Edge* edge = of(action).predecessors; edge != nullptr;
         edge = edge->next_predecessor) {
      if (edge->predecessor != nullptr && of(*edge->predecessor).id == 0) return false;
    }
    return true;
  }

  /// Calls visit(id) for the jobs that must complete before the action.
  template <class Visit>
  void each_awaited(const Action& action, Visit&& visit) const {
    for (const Edge* edge = of(action).predecessors; edge != nullptr;
         edge = edge->next_predecessor) {
      if (edge->predecessor == nullptr) continue;
      if (const std::uint64_t id = of(*edge->predecessor).id; id != 0) {
        visit(id);
      } else {
        each_awaited(*edge->predecessor, visit);  // not a job: visits its predecessors instead
      }
    }
    for (const EventWait& wait : const_cast<Action&>(action).events()) {
      if (wait.submission_id != 0) visit(wait.submission_id);
    }
  }

 private:
  const bool active_;
  SequenceRing<Submission> window_;
  Submission outside_;  ///< of an action outside the window
};

}  // namespace weir::rt
