#include "core/device_ordering.hpp"

namespace weir::rt {

void DeviceOrdering::enter(Action& action) noexcept {
  Submission& submission = of(action);
  submission = {};
  submission.unsubmitted_predecessors = action.pending;
  for (const EventWait& wait : action.events()) {
    if (wait.submission_id != 0) --submission.unsubmitted_predecessors;
  }
}

void DeviceOrdering::add_predecessor(Edge& edge) noexcept {
  Submission& successor = of(*edge.successor);
  edge.next_predecessor = std::exchange(successor.predecessors, &edge);
  if (!of(*edge.predecessor).submitted) ++successor.unsubmitted_predecessors;
}

bool DeviceOrdering::remove_predecessor(Edge& edge) noexcept {
  if (!of(*edge.predecessor).submitted) --of(*edge.successor).unsubmitted_predecessors;
  if (edge.next_predecessor == &edge) return true;
  edge.predecessor = nullptr;
  return false;
}

void DeviceOrdering::drop_predecessors(Action& action, EdgePool& edges) noexcept {
  for (Edge* edge = std::exchange(of(action).predecessors, nullptr); edge != nullptr;) {
    Edge* const next = edge->next_predecessor;
    if (edge->predecessor == nullptr) {
      edges.give(*edge);
    } else {
      edge->next_predecessor =
          edge;  // marked: remove_predecessor() finds nothing that refers to it
    }
    edge = next;
  }
}

bool DeviceOrdering::knows_predecessors(const Action& action) const noexcept {
  for (const Edge* edge = of(action).predecessors; edge != nullptr; edge = edge->next_predecessor) {
    if (edge->predecessor != nullptr && of(*edge->predecessor).id == 0) return false;
  }
  return true;
}

}  // namespace weir::rt
