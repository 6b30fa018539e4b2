// Code of the program that throws what it likes, or returns what does not exist.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstdio>
#include <limits>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>

#include <weir/weir.hpp>

namespace weir {
namespace {

struct NotAnException {
  int value;
};

const char* const kHost = "host";
const char* const kCard = "sim:clock=virtual,cores=2,gflops=1";

weir_kernel* add(const Runtime& runtime, const char* name, weir_host_function function,
                 weir_kernel_shape shape, weir_cost_function cost = nullptr) {
  const weir_implementation code = {"host", function, nullptr};
  weir_kernel_options options = WEIR_KERNEL_OPTIONS_INIT;
  options.name = name;
  options.shape = shape;
  options.implementations = &code;
  options.implementation_count = 1;
  options.cost = cost;
  weir_kernel* kernel = nullptr;
  check(weir_kernel_register(runtime.handle(), &options, &kernel));
  return kernel;
}

weir_status do_nothing(const weir_call*) { return WEIR_STATUS_OK; }

weir_status run(const Stream& stream, weir_kernel* kernel, weir_event* event) {
  weir_compute compute = WEIR_COMPUTE_INIT;
  compute.kernel = kernel;
  check(weir_stream_compute(stream.handle(), &compute, event));
  return weir_stream_synchronize(stream.handle(), WEIR_FOREVER);
}

/// Runs a kernel on all cores and returns how it ended. The place is of use afterwards.
weir_status outcome_of(const char* domains, weir_host_function function,
                       weir_kernel_shape shape = WEIR_KERNEL_SHAPE_SERIAL,
                       weir_cost_function cost = nullptr) {
  const Runtime runtime(domains);
  const Place place = runtime.domain(0).place();
  const Stream stream = place.stream();
  weir_event event = WEIR_EVENT_INIT;
  const weir_status status = run(stream, add(runtime, "tried", function, shape, cost), &event);
  weir_event_info info = WEIR_EVENT_INFO_INIT;
  check(weir_event_get_info(runtime.handle(), &event, &info));
  EXPECT_EQ(info.status, status);
  EXPECT_EQ(info.message[0] == '\0', status == WEIR_STATUS_OK);
  weir_kernel* const serial = add(runtime, "serial", do_nothing, WEIR_KERNEL_SHAPE_SERIAL);
  weir_kernel* const parallel = add(runtime, "parallel", do_nothing, WEIR_KERNEL_SHAPE_PARALLEL);
  EXPECT_EQ(run(stream, serial, nullptr), WEIR_STATUS_OK);
  EXPECT_EQ(run(stream, parallel, nullptr), WEIR_STATUS_OK);
  return status;
}

TEST(Throwing, KernelThatThrows_FailsItsAction) {
  for (const char* domains : {kHost, kCard}) {
    const auto ends = [&](weir_host_function function) { return outcome_of(domains, function); };
    EXPECT_EQ(ends([](const weir_call*) -> weir_status { throw 7; }), WEIR_STATUS_KERNEL_ERROR);
    EXPECT_EQ(ends([](const weir_call*) -> weir_status { throw "words"; }),
              WEIR_STATUS_KERNEL_ERROR);
    EXPECT_EQ(ends([](const weir_call*) -> weir_status { throw NotAnException{1}; }),
              WEIR_STATUS_KERNEL_ERROR);
    EXPECT_EQ(ends([](const weir_call*) -> weir_status { throw std::runtime_error(""); }),
              WEIR_STATUS_KERNEL_ERROR);
    EXPECT_EQ(ends([](const weir_call*) -> weir_status { throw std::bad_alloc(); }),
              WEIR_STATUS_OUT_OF_MEMORY);
  }
}

TEST(Throwing, KernelThatReturnsAnInvalidStatus_FailsWithKernelError) {
  for (const char* domains : {kHost, kCard}) {
    const auto ends = [&](weir_host_function function) { return outcome_of(domains, function); };
    EXPECT_EQ(ends([](const weir_call*) { return static_cast<weir_status>(14); }),
              WEIR_STATUS_KERNEL_ERROR);
    EXPECT_EQ(ends([](const weir_call*) { return WEIR_STATUS_INTERNAL; }),
              WEIR_STATUS_KERNEL_ERROR);
  }
}

TEST(Throwing, TeamMemberThrowsInALoop_FailsTheAction) {
  const auto kernel = [](const weir_call* call) {
    const auto body = [](std::size_t begin, std::size_t, std::size_t, void*) {
      if (begin == 0) throw NotAnException{2};
    };
    weir_team_for(call->team, 1000, 10, body, nullptr);
    return WEIR_STATUS_OK;
  };
  for (const char* domains : {kHost, kCard}) {
    EXPECT_EQ(outcome_of(domains, kernel, WEIR_KERNEL_SHAPE_PARALLEL), WEIR_STATUS_KERNEL_ERROR);
  }
}

TEST(Throwing, TeamMemberThrowsWhileOthersWaitAtABarrier_FailsTheAction) {
  const auto kernel = [](const weir_call* call) {
    const auto function = [](weir_team* team, std::size_t member, void*) {
      weir_team_barrier(team);
      if (member + 1 == weir_team_size(team)) throw std::string("the last one");
      weir_team_barrier(team);
    };
    weir_team_run(call->team, function, nullptr);
    return WEIR_STATUS_OK;
  };
  for (const char* domains : {kHost, kCard}) {
    for (int round = 0; round < 20; ++round) {
      EXPECT_EQ(outcome_of(domains, kernel, WEIR_KERNEL_SHAPE_PARALLEL), WEIR_STATUS_KERNEL_ERROR);
    }
  }
}

TEST(Throwing, KernelThatCatchesATeamException_Succeeds) {
  const auto kernel = [](const weir_call* call) {
    for (int i = 0; i < 3; ++i) {
      try {
        weir_team_run(
            call->team, [](weir_team*, std::size_t, void*) { throw 5; }, nullptr);
        return WEIR_STATUS_BUSY;
      } catch (int) {
      }
    }
    return WEIR_STATUS_OK;
  };
  EXPECT_EQ(outcome_of(kHost, kernel, WEIR_KERNEL_SHAPE_PARALLEL), WEIR_STATUS_OK);
}

TEST(Throwing, CostFunctionThatThrows_FailsTheActionOnlyInVirtualTime) {
  const auto cost = [](const weir_call*) -> weir_cost { throw NotAnException{3}; };
  for (const auto shape : {WEIR_KERNEL_SHAPE_SERIAL, WEIR_KERNEL_SHAPE_PARALLEL}) {
    EXPECT_EQ(outcome_of(kCard, do_nothing, shape, cost), WEIR_STATUS_KERNEL_ERROR);
    EXPECT_EQ(outcome_of(kHost, do_nothing, shape, cost), WEIR_STATUS_OK);
  }
}

TEST(Throwing, NanInfiniteOrNegativeCost_DoesNotFailTheAction) {
  const weir_cost_function costs[] = {
      [](const weir_call*) {
        return weir_cost{std::nan(""), 0};
      },
      [](const weir_call*) {
        return weir_cost{std::numeric_limits<double>::infinity(), 0};
      },
      [](const weir_call*) {
        return weir_cost{-1e300, -1};
      },
      [](const weir_call*) {
        return weir_cost{1e300, 1e300};
      },
  };
  for (const weir_cost_function cost : costs) {
    const auto shape = WEIR_KERNEL_SHAPE_SERIAL;
    EXPECT_EQ(outcome_of(kCard, do_nothing, shape, cost), WEIR_STATUS_OK);
  }
}

TEST(Throwing, EventCallbackThatThrows_DoesNotStopOtherCallbacks) {
  for (const char* domains : {kHost, kCard}) {
    const Runtime runtime(domains);
    const Place place = runtime.domain(0).place();
    const Stream stream = place.stream();
    const Kernel kernel = runtime.kernel("nothing", [](Call&) {});
    std::atomic<int> called = 0;
    for (int i = 0; i < 100; ++i) {
      const Event event = stream.compute(kernel, {});
      const auto callback = [](weir_status, const char*, void* payload) {
        static_cast<std::atomic<int>*>(payload)->fetch_add(1);
        throw NotAnException{4};
      };
      check(weir_event_on_complete(runtime.handle(), &event.handle(), callback, &called));
    }
    stream.synchronize();
    // A callback may run a little later than those who wait for its event.
    while (called < 100) std::this_thread::yield();
  }
}

class Amount : public testing::Environment {
  void TearDown() override {
    std::printf("proof: %d ways to throw, each ends its action only\n",
                testing::UnitTest::GetInstance()->successful_test_count());
  }
};
const testing::Environment* const amount = testing::AddGlobalTestEnvironment(new Amount);

}  // namespace
}  // namespace weir
