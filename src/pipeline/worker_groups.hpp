// The workers of a pipeline by place, and how they and feeds wake.
#pragma once

#include "base/parking.hpp"
#include "pipeline/tunnel.hpp"

namespace weir::rt {

/// The workers of one place.
struct WorkerGroup {
  Parking parking;
  alignas(64) sys::Atomic<std::uint32_t> idle_workers{0};  ///< workers without work
  std::vector<Stage*> stages;                              ///< downstream first
  std::vector<Stage*> sources;
  std::size_t workers = 0;
};

/// Wakes workers and feeds. A worker announces that it sleeps, checks every source of work once
/// more, and sleeps; a thread first changes one of these (sequentially consistent), then calls a
/// function below. A worker that keeps items sleeps on stuck(), because any change may end its
/// wait; the others park in their group. Any thread; before seal() there are no workers to wake:
/// they check all tunnels when they begin.
class WorkerGroups {
 public:
  /// Adds a tunnel whose feeds wake_all() wakes, by one thread before seal(). Throws
  /// std::bad_alloc.
  void add(Tunnel& tunnel) { tunnels_.push_back(&tunnel); }
  /// Creates the groups, by one thread before seal(); workers[i] in group i.
  void create(const std::vector<std::size_t>& workers) {
    groups_ = std::vector<WorkerGroup>(workers.size());
    for (std::size_t g = 0; g < workers.size(); ++g) groups_[g].workers = workers[g];
  }
  void seal() noexcept { sealed_.store(true, std::memory_order_seq_cst); }
  bool sealed() const noexcept { return sealed_.load(std::memory_order_seq_cst); }
  WorkerGroup& operator[](std::size_t group) noexcept { return groups_[group]; }
  std::vector<WorkerGroup>& all() noexcept { return groups_; }
  Bell& stuck() noexcept { return stuck_; }

  /// The ring of a tunnel got items.
  void on_items(const Tunnel& tunnel) noexcept {
    stuck_.ring();
    if (sealed()) groups_[tunnel.stage->group].parking.unpark_one();
  }
  /// A worker has taken items from the ring of a stage, and may have left some.
  void on_taken(const Stage& stage) noexcept {
    stage.input->room.ring();
    stuck_.ring();
    if (stage.input->ring.ready()) wake_one_of(groups_[stage.group]);
  }
  void wake_one_of(WorkerGroup& group) noexcept {
    group.parking.unpark_one();
    stuck_.ring();
  }
  void wake_one() noexcept {
    stuck_.ring();
    if (!sealed()) return;
    for (WorkerGroup& group : groups_) {
      if (group.parking.unpark_one()) return;
    }
  }
  /// The pipeline or an epoch has ended.
  void wake_all() noexcept {
    stuck_.ring();
    for (Tunnel* const tunnel : tunnels_) tunnel->room.ring();
    if (!sealed()) return;
    for (WorkerGroup& group : groups_) group.parking.unpark_all();
  }

 private:
  std::vector<Tunnel*> tunnels_;
  std::vector<WorkerGroup> groups_;
  Bell stuck_;
  sys::Atomic<bool> sealed_{false};
};

}  // namespace weir::rt
