// A feed that hands out the jobs of a test and records how they end.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "backend/backend.hpp"

namespace weir::rt {

/// Hands out jobs in the order in which they were added, numbered from 1. Any thread.
class ScriptedFeed final : public PlaceFeed {
 public:
  using Numbers = std::vector<std::uint64_t>;
  struct Ending {
    Outcome outcome;
    Job job;
    unsigned worker = 0;
  };

  /// Adds these jobs, and copies their lists of jobs to wait for.
  explicit ScriptedFeed(const std::vector<Job>& jobs = {}) {
    for (const Job& job : jobs) add(job, {job.waits.begin(), job.waits.end()});
  }

  bool next(Worker& worker, Job& job) noexcept override {
    const std::lock_guard lock(mutex_);
    if (ready_.empty() || worker.index != only_.value_or(worker.index)) return false;
    job = ready_.front().first;
    waits_ = std::move(ready_.front().second);
    job.waits = waits_;
    ready_.pop_front();
    return true;
  }
  void finish(Worker& worker, Job& job, Outcome outcome) noexcept override {
    const std::lock_guard lock(mutex_);
    order_.push_back(job.id);
    endings_[job.id] = {std::move(outcome), job, worker.index};
    changed_.notify_all();
  }
  bool has_work() const noexcept override {
    const std::lock_guard lock(mutex_);
    return !ready_.empty();
  }

  /// Adds a job that waits for the jobs with the numbers `waits`. Returns its number.
  std::uint64_t add(Job job, Numbers waits = {}) {
    const std::lock_guard lock(mutex_);
    job.id = ++added_;
    ready_.emplace_back(job, std::move(waits));
    return added_;
  }
  /// From now on only this worker gets jobs; the others keep looking while there are any.
  void set_only(unsigned worker) {
    const std::lock_guard lock(mutex_);
    only_ = worker;
  }

  /// Waits until the job with this number has ended.
  void wait_for(std::uint64_t number) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return endings_.contains(number); });
  }
  /// Waits until all jobs added so far have ended. Returns their endings by number.
  std::map<std::uint64_t, Ending> wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return endings_.size() == added_; });
    return endings_;
  }
  /// Returns the numbers of the jobs that have ended, in the order of their ends.
  Numbers order() const {
    const std::lock_guard lock(mutex_);
    return order_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::pair<Job, Numbers>> ready_;
  Numbers waits_;  ///< of the job that next() returned last
  std::map<std::uint64_t, Ending> endings_;
  Numbers order_;
  std::uint64_t added_ = 0;
  std::optional<unsigned> only_;
};

}  // namespace weir::rt
