#include "backend/job_queue.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "scripted_feed.hpp"

namespace weir::rt {
namespace {

using Numbers = ScriptedFeed::Numbers;

/// A queue whose cores are the test. Copies end at once, unless the test holds them.
class TestQueue final : public JobQueue {
 public:
  explicit TestQueue(PlaceFeed& feed) : JobQueue(feed) { set_cores(driver_); }
  using JobQueue::serve;

  void serve_all() {
    while (serve()) {
    }
  }
  /// Runs the next call with this outcome. Returns whether there was one.
  bool run_call(Outcome outcome = {}) {
    Job job;
    if (!next(worker_, job)) return false;
    finish(worker_, job, std::move(outcome));
    return true;
  }

  bool holds_copies = false;
  CopyJob copying;
  std::vector<bool> soon;

 private:
  struct IdleDriver final : PlaceDriver {
    void wake() noexcept override {}
  };

  void copy(const CopyJob& job) noexcept override {
    copying = job;
    if (!holds_copies) job.sink->copied(job.token, {}, 0, 0);
  }
  void notify(bool more) noexcept override { soon.push_back(more); }

  IdleDriver driver_;
  Worker worker_;
};

TEST(JobQueue, NotifiesSoonOnlyWhenTheCoreHasAnotherBriefJob) {
  Job copy, call;
  copy.is_copy = true;
  call.brief = true;
  ScriptedFeed feed({copy, call, call});
  TestQueue queue(feed);
  queue.holds_copies = true;
  queue.serve_all();
  ASSERT_NE(queue.copying.sink, nullptr);
  queue.copying.sink->copied(queue.copying.token, {}, 0, 0);  // the cores may be at a long call
  while (queue.run_call()) {
  }
  EXPECT_EQ(queue.soon, (std::vector<bool>{false, true, false}));
  queue.serve_all();
  EXPECT_EQ(feed.order().size(), 3u);
}

TEST(JobQueue, ReadyCopies_StartOldestFirstAndReturnOneByOne) {
  Job call, copy;
  copy.is_copy = true;
  ScriptedFeed feed;
  const auto first = feed.add(call);
  feed.add(copy, {first});
  feed.add(copy);
  feed.add(copy);
  TestQueue queue(feed);
  ASSERT_TRUE(queue.serve());
  ASSERT_TRUE(queue.run_call());
  ASSERT_TRUE(queue.serve());
  EXPECT_EQ(feed.order(), (Numbers{3, 1}));  // before the others are made
  queue.serve_all();
  EXPECT_EQ(feed.order(), (Numbers{3, 1, 2, 4}));
}

TEST(JobQueue, HigherPriority_StartsFirstAmongCallsAndAmongCopies) {
  ScriptedFeed feed;
  for (int id = 1; id <= 8; ++id) {
    Job job;
    job.is_copy = id % 2 == 0;
    job.priority = static_cast<std::uint8_t>(id / 3);
    feed.add(job);
  }
  TestQueue queue(feed);
  queue.serve_all();
  EXPECT_EQ(feed.order(), (Numbers{6, 8, 4, 2}));
  while (queue.run_call()) {
  }
  queue.serve_all();
  EXPECT_EQ(feed.order(), (Numbers{6, 8, 4, 2, 7, 3, 5, 1}));
}

TEST(JobQueue, DependentOfAFailedJob_IsPoisonedWithoutRunning) {
  ScriptedFeed feed;
  const auto failing = feed.add({});
  feed.add({}, {failing});
  TestQueue queue(feed);
  ASSERT_TRUE(queue.serve());
  ASSERT_TRUE(queue.run_call({WEIR_STATUS_KERNEL_ERROR, "x"}));
  EXPECT_FALSE(queue.run_call());
  queue.serve_all();
  ASSERT_EQ(feed.order(), (Numbers{1, 2}));
  EXPECT_EQ(feed.wait().at(1).outcome.status, WEIR_STATUS_KERNEL_ERROR);
  EXPECT_EQ(feed.wait().at(2).outcome.status, WEIR_STATUS_POISONED);
}

}  // namespace
}  // namespace weir::rt
