#include "backend/worker_team.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <deque>
#include <functional>
#include <latch>
#include <limits>
#include <numeric>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>

#include "scripted_feed.hpp"
#include "surroundings.hpp"

namespace weir::rt {
namespace {

std::vector<unsigned> allowed_processors() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  sched_getaffinity(0, sizeof mask, &mask);
  std::vector<unsigned> processors;
  for (unsigned i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &mask)) processors.push_back(i);
  }
  return processors;
}

/// Teams of any size on the processors of this machine, and a feed.
class WorkerTeamTest : public testing::TestWithParam<unsigned> {
 protected:
  /// Work of a job.
  using Code = std::function<weir_status(const weir_call&)>;

  WorkerTeam make_team(double speed = 1) {
    WorkerTeamOptions options{.name = "test", .processors = {}, .pin = true, .speed = speed};
    const std::vector<unsigned> all = allowed_processors();
    for (unsigned i = 0; i < GetParam(); ++i) options.processors.push_back(all[i % all.size()]);
    return {std::move(options), feed_};
  }

  void expect_all_well() {
    for (const auto& [number, ending] : feed_.wait()) {
      EXPECT_EQ(ending.outcome.status, WEIR_STATUS_OK) << ending.outcome.message;
    }
  }

  void add(bool parallel, Code code, bool timed = false) {
    Job job;
    job.function = [](const weir_call* call) {
      return (*static_cast<Code*>(call->payload))(*call);
    };
    job.call.payload = &code_.emplace_back(std::move(code));
    job.call.name = "job";
    job.parallel = parallel;
    job.timed = timed;
    feed_.add(job);
  }
  void add_serial(Code code) { add(false, std::move(code)); }
  void add_parallel(Code code) { add(true, std::move(code)); }

  ScriptedFeed feed_;
  std::deque<Code> code_;
};

INSTANTIATE_TEST_SUITE_P(Sizes, WorkerTeamTest, testing::Values(1u, 2u, 3u, 5u),
                         testing::PrintToStringParamName());

TEST_P(WorkerTeamTest, RunsEverySerialJobOnceWithoutATeam) {
  WorkerTeam team = make_team();
  std::vector<std::atomic<int>> runs(200);
  for (auto& run : runs) {
    add_serial([&run](const weir_call& call) {
      EXPECT_EQ(call.team, nullptr);
      ++run;
      return WEIR_STATUS_OK;
    });
    team.wake();
  }
  expect_all_well();
  for (const auto& run : runs) EXPECT_EQ(run, 1);
}

TEST_P(WorkerTeamTest, AsManySerialJobsAsWorkers_RunConcurrently) {
  WorkerTeam team = make_team();
  std::latch all_here(GetParam());
  for (unsigned i = 0; i < GetParam(); ++i) {
    add_serial([&](const weir_call&) {
      all_here.arrive_and_wait();
      return WEIR_STATUS_OK;
    });
    team.wake();
  }
  expect_all_well();
}

TEST_P(WorkerTeamTest, IdleWorkersThatParkAtOnce_WakeForEveryJob) {
  const EnvironmentVariable spin("WEIR_SPIN_US", "0");
  WorkerTeam team = make_team();
  for (int i = 0; i < 300; ++i) {
    add(i % 3 == 0, [](const weir_call&) { return WEIR_STATUS_OK; });
    team.wake();
    expect_all_well();
  }
}

TEST_P(WorkerTeamTest, LoopCoversEveryIndexOnce) {
  WorkerTeam team = make_team();
  constexpr std::size_t kCounts[] = {0, 1, 2, 7, 64, 1000};
  constexpr std::size_t kGrains[] = {0, 1, 3, 5000};
  struct Seen {
    std::vector<std::atomic<int>> times;
    std::size_t members = 0;
  };
  add_parallel([&](const weir_call& call) {
    EXPECT_EQ(call.team->size(), GetParam());
    for (const std::size_t count : kCounts) {
      for (const std::size_t grain : kGrains) {
        Seen seen{std::vector<std::atomic<int>>(count), GetParam()};
        call.team->for_each(
            count, grain,
            [](std::size_t begin, std::size_t end, std::size_t member, void* payload) {
              auto& all = *static_cast<Seen*>(payload);
              EXPECT_LT(member, all.members);
              for (std::size_t i = begin; i < end; ++i) ++all.times[i];
            },
            &seen);
        for (const auto& times : seen.times) EXPECT_EQ(times, 1) << count << " by " << grain;
      }
    }
    return WEIR_STATUS_OK;
  });
  team.wake();
  expect_all_well();
}

TEST_P(WorkerTeamTest, LoopOverTheLargestCount_VisitsEveryIndexAndEnds) {
  WorkerTeam team = make_team();
  constexpr std::size_t kCount = std::numeric_limits<std::size_t>::max();
  constexpr std::size_t kGrains[] = {1, kCount / 2 + 1, kCount - 1, kCount};
  add_parallel([&](const weir_call& call) {
    for (const std::size_t grain : kGrains) {
      std::atomic<std::size_t> indices{0}, chunks{0};
      std::pair both{&indices, &chunks};
      call.team->for_each(
          kCount, grain,
          [](std::size_t begin, std::size_t end, std::size_t, void* payload) {
            EXPECT_LT(begin, end);
            auto& [all, calls] = *static_cast<decltype(both)*>(payload);
            *all += end - begin;
            if (++*calls > 1000) throw std::runtime_error("the loop does not end");
          },
          &both);
      EXPECT_EQ(indices, kCount) << "by " << grain;
    }
    return WEIR_STATUS_OK;
  });
  team.wake();
  expect_all_well();
}

TEST_P(WorkerTeamTest, LoopKeepsChunksAtLeastAsLargeAsTheGrain) {
  WorkerTeam team = make_team();
  add_parallel([&](const weir_call& call) {
    call.team->for_each(
        100, 30,
        [](std::size_t begin, std::size_t end, std::size_t, void*) {
          EXPECT_TRUE(end - begin >= 30 || end == 100) << begin << " to " << end;
        },
        nullptr);
    return WEIR_STATUS_OK;
  });
  team.wake();
  expect_all_well();
}

TEST_P(WorkerTeamTest, BarrierSeparatesThePhasesOfAllMembers) {
  WorkerTeam team = make_team();
  struct Phases {
    std::atomic<std::size_t> arrived{0};
    std::vector<std::atomic<int>> calls;
  } phases{{}, std::vector<std::atomic<int>>(GetParam())};
  add_parallel([&](const weir_call& call) {
    call.team->run(
        [](weir_team* own, std::size_t member, void* payload) {
          auto& all = *static_cast<Phases*>(payload);
          ++all.calls[member];
          for (std::size_t phase = 1; phase <= 50; ++phase) {
            ++all.arrived;
            own->barrier();
            EXPECT_EQ(all.arrived, phase * own->size());
            own->barrier();
          }
        },
        &phases);
    return WEIR_STATUS_OK;
  });
  team.wake();
  expect_all_well();
  for (const auto& calls : phases.calls) EXPECT_EQ(calls, 1);
}

TEST_P(WorkerTeamTest, ConsecutiveLoopsInOneKernel_EachVisitEveryIndex) {
  WorkerTeam team = make_team();
  std::atomic<int> total{0};
  add_parallel([&](const weir_call& call) {
    for (int i = 0; i < 500; ++i) {
      call.team->for_each(
          8, 1,
          [](std::size_t begin, std::size_t end, std::size_t, void* payload) {
            *static_cast<std::atomic<int>*>(payload) += static_cast<int>(end - begin);
          },
          &total);
    }
    return WEIR_STATUS_OK;
  });
  team.wake();
  expect_all_well();
  EXPECT_EQ(total, 4000);
}

TEST_P(WorkerTeamTest, AlternatingParallelAndSerialJobs_RunOnceEach) {
  WorkerTeam team = make_team();
  std::atomic<std::size_t> members{0}, serial{0};
  for (int i = 0; i < 120; ++i) {
    add(i % 2 == 0, [&](const weir_call& call) {
      if (call.team == nullptr) {
        ++serial;
        return WEIR_STATUS_OK;
      }
      call.team->run([](weir_team*, std::size_t,
                        void* count) { ++*static_cast<std::atomic<std::size_t>*>(count); },
                     &members);
      return WEIR_STATUS_OK;
    });
    team.wake();
  }
  expect_all_well();
  EXPECT_EQ(serial, 60u);
  EXPECT_EQ(members, 60u * GetParam());
}

TEST_P(WorkerTeamTest, ExceptionInALoop_FailsItsJobAndTheTeamRunsOn) {
  WorkerTeam team = make_team();
  for (int i = 0; i < 20; ++i) {
    add_parallel([](const weir_call& call) {
      call.team->for_each(
          100, 1,
          [](std::size_t begin, std::size_t end, std::size_t, void*) {
            if (begin <= 40 && 40 < end) throw std::runtime_error("index 40 is bad");
          },
          nullptr);
      return WEIR_STATUS_OK;
    });
  }
  team.wake();
  for (const auto& [number, ending] : feed_.wait()) {
    EXPECT_EQ(ending.outcome.status, WEIR_STATUS_KERNEL_ERROR);
    EXPECT_EQ(ending.outcome.message, "index 40 is bad");
  }
}

TEST_P(WorkerTeamTest, ExceptionBeforeABarrier_ReleasesTheWaitingMembers) {
  WorkerTeam team = make_team();
  for (int i = 0; i < 20; ++i) {
    add_parallel([i](const weir_call& call) {
      auto thrower = static_cast<std::size_t>(i) % call.team->size();
      try {
        call.team->run(
            [](weir_team* own, std::size_t member, void* payload) {
              own->barrier();
              if (member == *static_cast<std::size_t*>(payload)) throw std::logic_error("me");
              own->barrier();
            },
            &thrower);
        ADD_FAILURE() << "nothing was thrown";
      } catch (const std::logic_error& error) {
        EXPECT_STREQ(error.what(), "me");
      }
      call.team->run([](weir_team* own, std::size_t, void*) { own->barrier(); }, nullptr);
      return WEIR_STATUS_OK;
    });
  }
  team.wake();
  expect_all_well();
}

TEST_P(WorkerTeamTest, PinsEachWorkerToItsProcessor) {
  WorkerTeam team = make_team();
  const std::vector<unsigned> all = allowed_processors();
  std::latch everybody(GetParam());
  std::vector<std::vector<unsigned>> bound(GetParam());
  std::atomic<std::size_t> index{0};
  for (unsigned i = 0; i < GetParam(); ++i) {
    add_serial([&](const weir_call&) {
      everybody.arrive_and_wait();
      bound[index++] = allowed_processors();
      return WEIR_STATUS_OK;
    });
    team.wake();
  }
  expect_all_well();
  std::vector<int> workers(all.back() + 1);
  for (const auto& mask : bound) {
    ASSERT_EQ(mask.size(), 1u);
    ++workers[mask.front()];
  }
  for (unsigned i = 0; i < GetParam(); ++i) --workers[all[i % all.size()]];
  EXPECT_EQ(std::count(workers.begin(), workers.end(), 0), std::ssize(workers));
}

TEST_P(WorkerTeamTest, TimesAJobOnlyOnRequest) {
  WorkerTeam team = make_team();
  const std::int64_t before = sys::now_ns();
  add(
      false, [](const weir_call&) { return WEIR_STATUS_OK; }, true);
  add(
      false, [](const weir_call&) { return WEIR_STATUS_OK; }, false);
  team.wake();
  for (const auto& [number, ending] : feed_.wait()) {
    if (!ending.job.timed) {
      EXPECT_EQ(ending.job.started_ns, 0);
      continue;
    }
    EXPECT_GE(ending.job.started_ns, before);
    EXPECT_GE(ending.job.ended_ns, ending.job.started_ns);
    EXPECT_LE(ending.job.ended_ns, sys::now_ns());
  }
}

TEST_P(WorkerTeamTest, TeamOfQuarterSpeed_StretchesTheJobTimeFourfold) {
  WorkerTeam team = make_team(0.25);
  std::int64_t spent = 0;
  add_serial([&](const weir_call&) {
    const std::int64_t start = sys::now_ns();
    while ((spent = sys::now_ns() - start) < 100'000) {
    }
    return WEIR_STATUS_OK;
  });
  team.wake();
  const auto endings = feed_.wait();
  const std::int64_t now = sys::now_ns();
  EXPECT_GE(endings.at(1).job.ended_ns - endings.at(1).job.started_ns, 4 * spent);
  EXPECT_GE(now, endings.at(1).job.ended_ns);
}

TEST_P(WorkerTeamTest, KernelThatReturnsAFailure_FailsItsJobWithThatStatus) {
  WorkerTeam team = make_team();
  add(GetParam() % 2 == 0, [](const weir_call&) { return WEIR_STATUS_DEVICE_ERROR; });
  team.wake();
  const auto endings = feed_.wait();
  EXPECT_EQ(endings.at(1).outcome.status, WEIR_STATUS_DEVICE_ERROR);
  EXPECT_EQ(endings.at(1).outcome.message, "the kernel returned device_error");
}

TEST_P(WorkerTeamTest, OpenMPThreads_AreOneInSerialAndTheTeamSizeInParallelJobs) {
  using GetThreads = int();
  auto* const threads = reinterpret_cast<GetThreads*>(dlsym(RTLD_DEFAULT, "omp_get_max_threads"));
  if (threads == nullptr) GTEST_SKIP() << "this program has no OpenMP";
  WorkerTeam team = make_team();
  for (int i = 0; i < 6; ++i) {
    add(i % 2 == 1, [&](const weir_call& call) {
      EXPECT_EQ(threads(), call.team == nullptr ? 1 : static_cast<int>(GetParam()));
      return WEIR_STATUS_OK;
    });
  }
  team.wake();
  expect_all_well();
}

TEST(SingleTeamTest, LoopRunAndBarrier_CompleteWithOneMember) {
  SingleTeam team;
  std::size_t sum = 0;
  team.for_each(
      10, 3,
      [](std::size_t begin, std::size_t end, std::size_t member, void* payload) {
        EXPECT_EQ(member, 0u);
        *static_cast<std::size_t*>(payload) += end - begin;
      },
      &sum);
  team.for_each(
      0, 1, [](std::size_t, std::size_t, std::size_t, void*) { FAIL(); }, nullptr);
  team.run([](weir_team* own, std::size_t, void*) { own->barrier(); }, nullptr);
  EXPECT_EQ(sum, 10u);
}

TEST_P(WorkerTeamTest, ParallelJobOfAnyWorker_IsLedByTheSameThread) {
  WorkerTeam team = make_team();
  std::set<std::thread::id> leaders;
  for (unsigned round = 0; round < 3 * GetParam(); ++round) {
    feed_.set_only(round % GetParam());
    add_parallel([&](const weir_call&) {
      leaders.insert(std::this_thread::get_id());
      return WEIR_STATUS_OK;
    });
    for (unsigned i = 0; i < GetParam(); ++i) team.wake();
    expect_all_well();
  }
  EXPECT_EQ(leaders.size(), 1u);  // OpenMP keeps a team of threads for each that ever forked
  unsigned got = 0;
  for (const auto& [number, ending] : feed_.wait()) EXPECT_EQ(ending.worker, got++ % GetParam());
}

TEST_P(WorkerTeamTest, LoopInsideALoop_VisitsEveryIndex) {
  WorkerTeam team = make_team();
  std::atomic<int> visits{0};
  add_parallel([&](const weir_call& call) {
    struct Shared {
      weir_team* team;
      std::atomic<int>& visits;
    } shared{call.team, visits};
    const auto inner = [](std::size_t begin, std::size_t end, std::size_t, void* payload) {
      static_cast<Shared*>(payload)->visits += static_cast<int>(end - begin);
    };
    const auto outer = [](std::size_t begin, std::size_t end, std::size_t, void* payload) {
      for (; begin < end; ++begin) {
        static_cast<Shared*>(payload)->team->for_each(8, 1, decltype(inner){}, payload);
      }
    };
    call.team->for_each(16, 1, outer, &shared);
    return WEIR_STATUS_OK;
  });
  team.wake();
  expect_all_well();
  EXPECT_EQ(visits, 16 * 8);
}

TEST_P(WorkerTeamTest, BarrierOutsideRunOrNestedRun_FailsWithInvalidArgument) {
  WorkerTeam team = make_team();
  add_parallel([](const weir_call& call) {
    call.team->barrier();
    return WEIR_STATUS_OK;
  });
  add_parallel([](const weir_call& call) {
    call.team->run([](weir_team* own, std::size_t,
                      void*) { own->run([](weir_team*, std::size_t, void*) {}, nullptr); },
                   nullptr);
    return WEIR_STATUS_OK;
  });
  team.wake();
  for (const auto& [number, ending] : feed_.wait()) {
    EXPECT_EQ(ending.outcome.status, WEIR_STATUS_INVALID_ARGUMENT) << ending.outcome.message;
  }
}

}  // namespace
}  // namespace weir::rt
