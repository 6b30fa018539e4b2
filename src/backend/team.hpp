// The team: the threads of a place, as a parallel kernel sees them.
#pragma once

#include <cstddef>
#include <utility>

#include <weir/kernel.h>

#include "base/error.hpp"

/// The public weir_team. Contracts are in weir/kernel.h.
struct weir_team {
  virtual std::size_t size() const noexcept = 0;
  virtual void for_each(std::size_t count, std::size_t grain, weir_team_body body,
                        void* payload) = 0;
  virtual void run(weir_team_function function, void* payload) = 0;
  virtual void barrier() = 0;

 protected:
  ~weir_team() = default;
};

namespace weir::rt {

/// What a thread is doing for its team, to detect nested calls.
enum class TeamPart { none, loop, function };

/// Throws Error where weir_team_run() must not be called.
inline void check_team_run(TeamPart part) {
  if (part == TeamPart::none) return;
  fail_argument("weir_team_run() inside a loop or function of the team: its threads are taken");
}

/// Throws Error where weir_team_barrier() must not be called.
inline void check_team_barrier(TeamPart part) {
  if (part == TeamPart::function) return;
  fail_argument("weir_team_barrier() outside weir_team_run(): the other threads are not there");
}

/// A team that consists of the calling thread.
class SingleTeam final : public weir_team {
 public:
  std::size_t size() const noexcept override { return 1; }
  void for_each(std::size_t count, std::size_t, weir_team_body body, void* payload) override {
    const Scope scope(part_, part_ == TeamPart::none ? TeamPart::loop : part_);
    if (count > 0) body(0, count, 0, payload);
  }
  void run(weir_team_function function, void* payload) override {
    check_team_run(part_);
    const Scope scope(part_, TeamPart::function);
    function(this, 0, payload);
  }
  void barrier() override { check_team_barrier(part_); }

 private:
  class Scope {
   public:
    Scope(TeamPart& part, TeamPart inside) noexcept
        : part_(part), before_(std::exchange(part, inside)) {}
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope() { part_ = before_; }

   private:
    TeamPart& part_;
    const TeamPart before_;
  };

  TeamPart part_ = TeamPart::none;
};

}  // namespace weir::rt
