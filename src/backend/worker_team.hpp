// Places made of host cores: one pinned thread each, used by host and simulated devices.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.hpp"
#include "backend/team.hpp"
#include "base/parking.hpp"
#include "base/plain.hpp"
#include "base/threads.hpp"

namespace weir::rt {

struct WorkerTeamOptions {
  std::string name;
  std::vector<unsigned> processors;  ///< operating system numbers, one for each worker
  bool pin = true;
  double speed = 1;         ///< if below 1, each job takes 1/speed times as long
  bool feed_calls = false;  ///< the feed may call kernels inline
  /// Runs a job on this number of cores instead of calling its kernel; empty: calls the kernel.
  std::function<Outcome(const Job&, std::size_t cores)> stand_in = {};
};

/// A team of threads that run the jobs of one place.
///
/// Each worker runs serial jobs. A parallel job runs on all workers and is always led by worker 0,
/// whichever worker took it: OpenMP keeps a thread pool for each thread that ever forked, and a
/// place needs only one. An idle worker polls for a bounded time, shorter if other threads need its
/// core, and then sleeps.
class WorkerTeam final : public PlaceDriver, public weir_team {
 public:
  WorkerTeam(WorkerTeamOptions options, PlaceFeed& feed);
  ~WorkerTeam() override;

  void wake() noexcept override { parking_.unpark_one(); }

  std::size_t size() const noexcept override { return workers_.size(); }
  void for_each(std::size_t count, std::size_t grain, weir_team_body body, void* payload) override;
  void run(weir_team_function function, void* payload) override;
  void barrier() override;

 private:
  struct alignas(64) Member {
    Worker worker;
    /// Its processor, allocated in advance because threads must not throw.
    std::vector<unsigned> processor;
    std::optional<sys::Thread> thread;
  };
  /// What the gang runs together: a loop, or a function on each member.
  struct Task {
    sys::Plain<weir_team_body> body = nullptr;
    sys::Plain<weir_team_function> function = nullptr;
    sys::Plain<void*> payload = nullptr;
    sys::Plain<std::size_t> count = 0, chunk = 0, chunks = 0;
    sys::Atomic<std::size_t> next{0};  ///< index of the next chunk
    sys::Atomic<std::uint32_t> running{0};
  };

  void work(Member& slot);
  void execute(Worker& worker, Job& job);
  Outcome run_timed(Job& job) const;
  bool has_work() const noexcept;
  void idle() noexcept;

  Outcome run_parallel(Worker& worker, Job& job);
  void lead();
  void bind(const Worker& worker) const noexcept;
  void join_gang(const Worker& worker);
  void perform(std::size_t member);
  void take_part(std::size_t member) noexcept;
  void run_task();
  void wait_while(const sys::Atomic<std::uint32_t>& word, std::uint32_t value) noexcept;
  void wait_until(const sys::Atomic<std::uint32_t>& word, std::uint32_t wanted) noexcept;
  void change(sys::Atomic<std::uint32_t>& word, std::uint32_t by) noexcept;

  const WorkerTeamOptions options_;
  PlaceFeed& feed_;
  const long long spin_ns_;
  std::vector<std::unique_ptr<Member>> workers_;
  Parking parking_;
  sys::Atomic<bool> stopping_{false};

  // The gang: the workers during a parallel job. Threads wait on the atomic words. Only the leader
  // writes the other fields or, before it leads, the worker that took the job.
  sys::Atomic<bool> gang_taken_{false};         ///< a worker has a parallel job
  sys::Atomic<bool> gang_called_{false};        ///< members must arrive
  sys::Atomic<std::uint32_t> gang_present_{0};  ///< number of members that have arrived
  sys::Atomic<std::uint32_t> gang_task_{0};  ///< number of the current task; a change wakes members
  sys::Plain<bool> gang_over_ = false;
  sys::Plain<Job*> gang_job_ = nullptr;
  sys::Plain<Outcome*> gang_outcome_ = nullptr;  ///< of `gang_job_`
  Task task_;
  sys::Atomic<std::uint32_t> barrier_waiting_{0};
  sys::Atomic<std::uint32_t> barrier_phase_{0};
  sys::Atomic<bool> broken_{false};  ///< a member threw: the others do not wait for it
  std::exception_ptr thrown_;
  sys::Atomic<bool> thrown_taken_{false};
};

}  // namespace weir::rt
