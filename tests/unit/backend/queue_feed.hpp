// A feed that hands out jobs of the test and collects how they ended.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "backend/backend.hpp"

namespace weir::rt {

/// Work of a job.
using Code = std::function<weir_status(const weir_call&)>;

class QueueFeed final : public PlaceFeed {
 public:
  struct Ending {
    Outcome outcome;
    Job job;
    unsigned worker = 0;
  };

  bool next(Worker& worker, Job& job) noexcept override {
    std::lock_guard lock(mutex_);
    if (ready_.empty() || (only_ >= 0 && static_cast<int>(worker.index) != only_)) return false;
    job = ready_.front();
    ready_.pop_front();
    return true;
  }
  void finish(Worker& worker, Job& job, Outcome outcome) noexcept override {
    {
      std::lock_guard lock(mutex_);
      endings_.push_back({std::move(outcome), job, worker.index});
    }
    changed_.notify_all();
  }
  bool has_work() const noexcept override {
    std::lock_guard lock(mutex_);
    return !ready_.empty();
  }

  void add(bool parallel, Code code, bool timed = false) {
    std::lock_guard lock(mutex_);
    Code& kept = code_.emplace_back(std::move(code));
    Job job;
    job.function = [](const weir_call* call) {
      return (*static_cast<Code*>(call->payload))(*call);
    };
    job.call.payload = &kept;
    job.call.name = "job";
    job.parallel = parallel;
    job.timed = timed;
    ready_.push_back(job);
  }
  /// From now on only this worker gets jobs; the others keep looking while there are any.
  void set_only(unsigned worker) {
    std::lock_guard lock(mutex_);
    only_ = static_cast<int>(worker);
  }
  void add_serial(Code code) { add(false, std::move(code)); }
  void add_parallel(Code code) { add(true, std::move(code)); }

  /// Waits until everything added so far has ended.
  std::vector<Ending> wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return endings_.size() == code_.size(); });
    return endings_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> ready_;
  std::deque<Code> code_;
  std::vector<Ending> endings_;
  int only_ = -1;
};

}  // namespace weir::rt
