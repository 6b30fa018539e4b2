#include "backend/job_queue.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace weir::rt {
namespace {

/// A copy and two brief calls that wait for nothing.
class ThreeJobs final : public PlaceFeed {
 public:
  bool next(Worker&, Job& job) noexcept override {
    if (given_ == 3) return false;
    job = {};
    job.id = ++given_;
    job.is_copy = given_ == 1;
    job.brief = !job.is_copy;
    return true;
  }
  void finish(Worker&, Job&, Outcome) noexcept override { ++over; }
  bool has_work() const noexcept override { return given_ < 3; }

  int over = 0;

 private:
  std::uint64_t given_ = 0;
};

struct IdleDriver final : PlaceDriver {
  void wake() noexcept override {}
};

class StirredQueue final : public JobQueue {
 public:
  using JobQueue::JobQueue;
  using JobQueue::serve;

  CopyJob copying;
  std::vector<bool> soon;

 private:
  void copy(const CopyJob& job) noexcept override { copying = job; }
  void notify(bool more) noexcept override { soon.push_back(more); }
};

TEST(JobQueue, LetsOnlyCoresThatTakeABriefJobBeSilent) {
  ThreeJobs jobs;
  IdleDriver driver;
  StirredQueue queue(jobs);
  queue.set_cores(driver);
  while (queue.serve()) {
  }
  ASSERT_NE(queue.copying.sink, nullptr);
  queue.copying.sink->copied(queue.copying.token, {}, 0, 0);  // the cores may be at a long call
  Worker worker;
  Job job;
  while (queue.next(worker, job)) queue.finish(worker, job, {});
  EXPECT_EQ(queue.soon, (std::vector<bool>{false, true, false}));
  while (queue.serve()) {
  }
  EXPECT_EQ(jobs.over, 3);
}

/// A call, a copy that waits for it, and two copies that wait for nothing.
class CallAndCopies final : public PlaceFeed {
 public:
  bool next(Worker&, Job& job) noexcept override {
    if (given_ == 4) return false;
    job = {};
    job.id = ++given_;
    job.is_copy = given_ > 1;
    if (given_ == 2) job.waits = first_;
    return true;
  }
  void finish(Worker&, Job& job, Outcome) noexcept override { over.push_back(job.id); }
  bool has_work() const noexcept override { return given_ < 4; }

  std::vector<std::uint64_t> over;

 private:
  std::uint64_t given_ = 0;
  std::vector<std::uint64_t> first_{1};
};

/// Copies at once.
class CopyingQueue final : public JobQueue {
 public:
  using JobQueue::JobQueue;
  using JobQueue::serve;

 private:
  void copy(const CopyJob& job) noexcept override { job.sink->copied(job.token, {}, 0, 0); }
  void notify(bool) noexcept override {}
};

TEST(JobQueue, MakesTheOldestCopyFirstAndTellsOfEach) {
  CallAndCopies jobs;
  IdleDriver driver;
  CopyingQueue queue(jobs);
  queue.set_cores(driver);
  ASSERT_TRUE(queue.serve());
  Worker worker;
  Job job;
  ASSERT_TRUE(queue.next(worker, job));
  queue.finish(worker, job, {});
  ASSERT_TRUE(queue.serve());
  EXPECT_EQ(jobs.over, (std::vector<std::uint64_t>{3, 1}));  // before the others are made
  while (queue.serve()) {
  }
  EXPECT_EQ(jobs.over, (std::vector<std::uint64_t>{3, 1, 2, 4}));
}

/// Calls and copies that wait for nothing and are the more urgent the later they come.
class EverMoreUrgentJobs final : public PlaceFeed {
 public:
  bool next(Worker&, Job& job) noexcept override {
    if (!has_work()) return false;
    job = {};
    job.id = ++given_;
    job.is_copy = given_ % 2 == 0;
    job.priority = static_cast<std::uint8_t>(given_ / 3);
    return true;
  }
  void finish(Worker&, Job& job, Outcome) noexcept override { over.push_back(job.id); }
  bool has_work() const noexcept override { return given_ < 8; }

  std::vector<std::uint64_t> over;

 private:
  std::uint64_t given_ = 0;
};

TEST(JobQueue, StartsTheMostUrgentFirst) {
  EverMoreUrgentJobs jobs;
  IdleDriver driver;
  CopyingQueue queue(jobs);
  queue.set_cores(driver);
  while (queue.serve()) {
  }
  EXPECT_EQ(jobs.over, (std::vector<std::uint64_t>{6, 8, 4, 2}));
  Worker worker;
  Job job;
  while (queue.next(worker, job)) queue.finish(worker, job, {});
  while (queue.serve()) {
  }
  jobs.over.erase(jobs.over.begin(), jobs.over.begin() + 4);
  EXPECT_EQ(jobs.over, (std::vector<std::uint64_t>{7, 3, 5, 1}));
}

/// Two calls, of which the second waits for the first.
class CallAfterCall final : public PlaceFeed {
 public:
  bool next(Worker&, Job& job) noexcept override {
    if (given_ == 2) return false;
    job = {};
    job.id = ++given_;
    if (given_ == 2) job.waits = first_;
    return true;
  }
  void finish(Worker&, Job&, Outcome outcome) noexcept override { ends.push_back(outcome.status); }
  bool has_work() const noexcept override { return given_ < 2; }

  std::vector<weir_status> ends;

 private:
  std::uint64_t given_ = 0;
  std::vector<std::uint64_t> first_{1};
};

TEST(JobQueue, RunsNothingThatFollowsAFailure) {
  CallAfterCall jobs;
  IdleDriver driver;
  CopyingQueue queue(jobs);
  queue.set_cores(driver);
  ASSERT_TRUE(queue.serve());
  Worker worker;
  Job job;
  ASSERT_TRUE(queue.next(worker, job));
  queue.finish(worker, job, {WEIR_STATUS_KERNEL_ERROR, "x"});
  EXPECT_FALSE(queue.next(worker, job));
  while (queue.serve()) {
  }
  EXPECT_EQ(jobs.ends, (std::vector{WEIR_STATUS_KERNEL_ERROR, WEIR_STATUS_POISONED}));
}

}  // namespace
}  // namespace weir::rt
