// Streams and places of whole runtimes: threads, priorities, oversubscription, shutdown.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "gate.hpp"

namespace weir {
namespace {

constexpr const char* kVirtualCard = "sim:cores=1,clock=virtual";

TEST(Regions, NegativeOrHugeNumber_IsRefusedWithItsValue) {
  const Runtime runtime("host:cores=1");
  const Buffer x = runtime.buffer(8 * sizeof(double));
  const int one_too_few = -1;
  const auto count = static_cast<std::size_t>(one_too_few);
  EXPECT_EQ(failure_of([&] { x.elements<double>(0, count); }),
            "invalid_argument: count of elements() is -1: give a number from 0");
  EXPECT_EQ(failure_of([&] { x.elements<double>(count, 1); }),
            "invalid_argument: first of elements() is -1: give a number from 0");
  EXPECT_EQ(failure_of([&] { x.range(0, count); }),
            "invalid_argument: count of range() is -1: give a number from 0");
  EXPECT_EQ(failure_of([&] { x.tile<double>(0, 0, count, 1, 8); }),
            "invalid_argument: rows of tile() is -1: give a number from 0");
  // Its bytes would wrap around to 8.
  EXPECT_EQ(failure_of([&] { x.elements<double>(0, (std::size_t{1} << 61) + 1); }),
            "invalid_argument: count of elements() is 2305843009213693953: no memory has so many "
            "elements");
  EXPECT_EQ(failure_of([&] { x.elements<double>(0, 8); }), "OK");
}

TEST(Places, DomainWithoutCores_RefusesPlacesEvenOversubscribed) {
  const Runtime runtime("null");
  const weir_domain_info info = runtime.domain(0).info();
  EXPECT_EQ(info.cores, 0u);
  weir_place* places[1] = {nullptr};
  for (const bool oversubscribe : {false, true}) {
    EXPECT_EQ(weir_domain_partition(runtime.domain(0).handle(), 1, oversubscribe, places),
              WEIR_STATUS_UNSUPPORTED);
    EXPECT_STREQ(weir_last_error(),
                 "domain 'null:0' has no cores to make a place of: run kernels "
                 "in another, such as host");
  }
  EXPECT_EQ(weir_place_create(runtime.domain(0).handle(), nullptr, places),
            WEIR_STATUS_UNSUPPORTED);
}

TEST(Streams, ConcurrentEnqueues_KeepTheOrderOfEachThread) {
  constexpr int kThreads = 6, kEach = 400;
  const Runtime runtime("host");
  const Place place = runtime.domain(0).place();
  const Stream stream = place.stream();
  std::vector<int> next(kThreads, 0);
  const Kernel kernel = runtime.kernel("count", [&next](const Call& call) {
    const auto thread = call.scalar<std::size_t>(0);
    EXPECT_EQ(next[thread], call.scalar<int>(1));
    ++next[thread];
  });
  const Buffer order = runtime.buffer(kThreads);
  {
    std::vector<std::jthread> threads;
    for (std::size_t thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, thread] {
        for (int i = 0; i < kEach; ++i) {
          stream.compute(kernel, {readwrite(order.range(thread, 1))}, {thread, i});
        }
      });
    }
  }
  stream.synchronize();
  EXPECT_EQ(next, std::vector<int>(kThreads, kEach));
}

/// Counts its calls, and fails as its scalar says.
weir_status run_brief(const weir_call* call) {
  ++*static_cast<int*>(call->payload);
  EXPECT_EQ(call->operand_count, 2u);
  EXPECT_STREQ(call->name, "a name");
  if (call->scalars[0].value.i64 == 1) throw std::runtime_error("thrown");
  if (call->scalars[0].value.i64 == 2) return weir_call_fail(call, WEIR_STATUS_UNSUPPORTED, "said");
  return WEIR_STATUS_OK;
}

Kernel register_brief(const Runtime& runtime, int& runs) {
  const weir_implementation implementation = {"host", run_brief, &runs};
  weir_kernel_options options = WEIR_KERNEL_OPTIONS_INIT;
  options.name = "brief";
  options.implementations = &implementation;
  options.implementation_count = 1;
  weir_kernel* kernel = nullptr;
  check(weir_kernel_register(runtime.handle(), &options, &kernel));
  return Kernel(kernel);
}

/// Most of them run without a job for the driver.
TEST(Streams, FailingInlineKernel_FailsItsActionAndPoisonsDependents) {
  for (const char* const domains : {"host:cores=1", "host"}) {
    const Runtime runtime(domains);
    const Place place = runtime.domain(0).place();
    const Stream stream = place.stream();
    const Buffer cells = runtime.buffer(64);
    int runs = 0;
    const Kernel kernel = register_brief(runtime, runs);
    const auto enqueue = [&](int failure) {
      return stream.compute(kernel, {read(cells.range(0, 8)), readwrite(cells.range(8, 8))},
                            {failure}, "a name");
    };
    int enqueued = 0;
    for (int place_of_failure = 0; place_of_failure < 40; ++place_of_failure) {
      for (int i = 0; i < place_of_failure + 20; ++i, ++enqueued) enqueue(0);
      const int failure = 1 + place_of_failure % 2;
      const Event failed = enqueue(failure), after = enqueue(0);
      ++enqueued;
      const weir_status status = failure == 1 ? WEIR_STATUS_KERNEL_ERROR : WEIR_STATUS_UNSUPPORTED;
      EXPECT_EQ(status_of([&] { after.wait(); }), WEIR_STATUS_POISONED);
      EXPECT_EQ(status_of([&] { failed.wait(); }), status);
      EXPECT_NE(std::string(weir_last_error()).find(failure == 1 ? "thrown" : "said"),
                std::string::npos)
          << weir_last_error();
      EXPECT_EQ(status_of([&] { stream.synchronize(); }), status);
      EXPECT_EQ(runs, enqueued);
    }
  }
}

TEST(Streams, FreeHostCore_RunsStreamOfHighestPriorityFirst) {
  Gate gate;
  const Runtime runtime("host");
  const Place place = runtime.domain(0).place(1);
  const Stream first = place.stream();
  const Stream low = place.stream({.priority = -1}), normal = place.stream({.priority = 0}),
               high = place.stream({.priority = 1});
  std::string order;
  const Kernel note =
      runtime.kernel("note", [&order](const Call& call) { order += call.scalar<char>(0); });
  gate.close(runtime, first);
  for (int i = 0; i < 3; ++i) {
    low.compute(note, {}, {'l'});
    normal.compute(note, {}, {'n'});
    high.compute(note, {}, {'h'});
  }
  gate.open();
  runtime.synchronize();
  EXPECT_EQ(order, "hhhnnnlll");
}

/// Returns the order in which a device with one core runs kernels of a low and of a high priority
/// that were enqueued `patience` yields before the core is free.
std::string order_of_priorities(const char* domains, int patience) {
  Gate gate;
  const Runtime runtime(domains);
  const Place place = runtime.domain(0).place();
  const Stream first = place.stream();
  const Stream low = place.stream({.priority = -1}), high = place.stream({.priority = 1});
  std::string order;
  const Kernel note =
      runtime.kernel("note", [&order](const Call& call) { order += call.scalar<char>(0); });
  if (patience > 0) gate.close(runtime, first);
  for (int i = 0; i < 3; ++i) low.compute(note, {}, {'l'});
  for (int i = 0; i < 3; ++i) high.compute(note, {}, {'h'});
  for (int i = 0; i < patience; ++i) std::this_thread::yield();
  gate.open();
  runtime.synchronize();
  return order;
}

// The place has all actions before it starts any: virtual time stands still until a thread waits.
TEST(Streams, VirtualDevice_RunsStreamOfHighestPriorityFirst) {
  EXPECT_EQ(order_of_priorities(kVirtualCard, 0), "hhhlll");
}

// The device chooses, once it has all jobs; without priorities no patience is enough.
TEST(Streams, DeviceThatOrdersItsJobs_RunsStreamOfHighestPriorityFirst) {
  constexpr int kRuns = 10;  // by chance the order may be right
  int right = 0;
  for (int patience = 16; patience <= 1 << 16 && right < kRuns; patience *= 16) {
    const auto is_right = [&] {
      return order_of_priorities("sim:cores=1,latency_us=0,order=device", patience) == "hhhlll";
    };
    for (right = 0; right < kRuns && is_right();) ++right;
  }
  EXPECT_EQ(right, kRuns);
}

TEST(Streams, ReadersOfOneWriter_RunInEnqueueOrder) {
  for (const char* domains : {"host:cores=1", kVirtualCard}) {
    Gate gate;
    const Runtime runtime(domains);
    const Place place = runtime.domain(0).place();
    const Stream stream = place.stream();
    const Buffer buffer = runtime.buffer(1);
    std::string order;
    const Kernel note =
        runtime.kernel("note", [&order](const Call& call) { order += call.scalar<char>(0); });
    if (runtime.domain(0).info().virtual_time == 0) gate.close(runtime, stream);
    stream.compute(note, {write(buffer.all())}, {'.'});
    for (const char letter : {'a', 'b', 'c', 'd'}) {
      stream.compute(note, {read(buffer.all())}, {letter});
    }
    gate.open();
    runtime.synchronize();
    EXPECT_EQ(order, ".abcd") << domains;
  }
}

TEST(Streams, StreamsWaitingForOneEvent_ContinueInTheOrderOfTheirWaits) {
  Gate gate;
  const Runtime runtime("host:cores=1");
  const Place place = runtime.domain(0).place();
  const Stream first = place.stream();
  const Event event = gate.close(runtime, first);
  std::string order;
  const Kernel note =
      runtime.kernel("note", [&order](const Call& call) { order += call.scalar<char>(0); });
  std::vector<Stream> streams;
  for (const char letter : {'a', 'b', 'c', 'd'}) {
    const Stream& stream = streams.emplace_back(place.stream());
    stream.wait(event);
    stream.compute(note, {}, {letter});
  }
  gate.open();
  runtime.synchronize();
  EXPECT_EQ(order, "abcd");
}

TEST(Streams, CallbackEnqueuesWhileTheStreamIsDestroyed_ItsActionRunsFirst) {
  for (const char* domains : {kVirtualCard, "sim:cores=1,clock=virtual,order=device"}) {
    const Runtime runtime(domains);
    const Place place = runtime.domain(0).place();
    int runs = 0;
    const Kernel count = runtime.kernel("count", [&runs](const Call&) { ++runs; });
    {
      const Stream stream = place.stream();
      stream.compute(count, {}).on_complete([&, handle = stream.handle()](weir_status,
                                                                          const char*) {
        weir_compute more = WEIR_COMPUTE_INIT;
        more.kernel = count.handle();
        EXPECT_EQ(weir_stream_compute(handle, &more, nullptr), WEIR_STATUS_OK) << weir_last_error();
      });
    }
    EXPECT_EQ(runs, 2) << domains;
  }
}

TEST(Streams, CallbacksOfOneEvent_RunInTheOrderInWhichTheyWereSet) {
  Gate gate;
  const Runtime runtime("host:cores=1");
  const Stream stream = runtime.domain(0).place().stream();
  const Event event = gate.close(runtime, stream);
  std::string order;
  for (const char letter : {'a', 'b', 'c', 'd'}) {
    event.on_complete([&order, letter](weir_status, const char*) { order += letter; });
  }
  gate.open();
  runtime.synchronize();
  EXPECT_EQ(order, "abcd");
}

TEST(Streams, BusyStream_DoesNotStarveAnotherStreamOfItsCore) {
  constexpr int kMany = 200;
  Gate gate;
  int done = 0, seen = kMany;
  const Runtime runtime("host");
  const Place place = runtime.domain(0).place(1);
  const Stream busy = place.stream(), other = place.stream();
  const Kernel count = runtime.kernel("count", [&done](const Call&) { ++done; });
  const Kernel peek = runtime.kernel("peek", [&](const Call&) { seen = done; });
  gate.close(runtime, busy);
  for (int i = 0; i < kMany; ++i) busy.compute(count, {});
  other.compute(peek, {});
  gate.open();
  runtime.synchronize();
  EXPECT_EQ(done, kMany);
  EXPECT_LT(seen, kMany);
}

Kernel make_kernel(const Runtime& runtime, const char* name, weir_host_function code,
                   weir_cost_function cost, void* payload = nullptr) {
  const weir_implementation implementation = {"host", code, payload};
  weir_kernel_options options = WEIR_KERNEL_OPTIONS_INIT;
  options.name = name;
  options.implementations = &implementation;
  options.implementation_count = 1;
  options.cost = cost;
  weir_kernel* made = nullptr;
  check(weir_kernel_register(runtime.handle(), &options, &made));
  return Kernel(made);
}

/// The device gets a job before those that it follows are over: one that waits for memory is not
/// there yet when they fail.
TEST(Streams, FailedPredecessor_PoisonsActionThatWaitsForMemory) {
  constexpr std::size_t kBytes = 64 << 10;  // two buffers fit, three do not
  const Runtime runtime("sim:cores=2,clock=virtual,order=device,gflops=1,memory=160KiB");
  const auto succeed = [](const weir_call*) { return WEIR_STATUS_OK; };
  const auto fail = [](const weir_call*) { return WEIR_STATUS_KERNEL_ERROR; };
  const auto note = [](const weir_call* call) {
    *static_cast<bool*>(call->payload) = true;
    return WEIR_STATUS_OK;
  };
  const auto one_ms = [](const weir_call*) { return weir_cost{1e6, 0}; };
  const auto ten_ms = [](const weir_call*) { return weir_cost{1e7, 0}; };
  bool ran = false;
  const Kernel brief = make_kernel(runtime, "brief", succeed, one_ms),
               slow = make_kernel(runtime, "slow", succeed, ten_ms),
               broken = make_kernel(runtime, "broken", fail, one_ms),
               last = make_kernel(runtime, "last", note, one_ms, &ran);
  const Buffer x = runtime.buffer(kBytes), y = runtime.buffer(kBytes), z = runtime.buffer(kBytes);
  const std::vector<Place> places = runtime.domain(0).partition(2);
  const Stream holds = places[0].stream(), follows = places[1].stream();
  const Event begun = holds.compute(brief, {read(z.all())});
  holds.compute(slow, {read(z.all())});
  begun.wait();
  follows.compute(broken, {write(x.all())});
  const Event end = follows.compute(last, {read(x.all()), write(y.all())});
  EXPECT_EQ(status_of([&] { runtime.synchronize(); }), WEIR_STATUS_KERNEL_ERROR);
  EXPECT_EQ(end.info().status, WEIR_STATUS_POISONED);
  EXPECT_FALSE(ran);
}

TEST(Streams, MorePlacesThanCores_NeedOversubscribeAndRunAllKernels) {
  const Runtime runtime("host");
  const std::size_t count = 2 * runtime.domain(0).info().cores;
  EXPECT_EQ(status_of([&] { runtime.domain(0).partition(count); }), WEIR_STATUS_INVALID_ARGUMENT);
  const std::vector<Place> places = runtime.domain(0).partition(count, true);
  const Kernel wide = runtime.kernel(
      "wide", [](const Call& call) { call.parallel_for(100, 1, [](std::size_t, std::size_t) {}); },
      WEIR_KERNEL_SHAPE_PARALLEL);
  std::atomic<int> runs{0};
  const Kernel serial = runtime.kernel("serial", [&runs](const Call&) { ++runs; });
  std::vector<Stream> streams;
  for (const Place& place : places) streams.push_back(place.stream());
  for (int i = 0; i < 200; ++i) {
    Event before;
    for (const Stream& stream : streams) {
      stream.wait(before);
      stream.compute(wide, {});
      before = stream.compute(serial, {});
    }
  }
  runtime.synchronize();
  EXPECT_EQ(runs, static_cast<int>(200 * count));
}

TEST(Streams, TwoRuntimes_RunIndependentlyAndRefuseForeignBuffers) {
  const Runtime one("host"), other("host,sim");
  const Place place = one.domain(0).place(), other_place = other.domain("sim").place();
  const Stream stream = place.stream(), other_stream = other_place.stream();
  int calls = 0, other_calls = 0;
  const Kernel kernel = one.kernel("same", [&calls](const Call&) { ++calls; });
  const Kernel other_kernel = other.kernel("same", [&other_calls](const Call&) { ++other_calls; });
  const Buffer buffer = one.buffer(8), other_buffer = other.buffer(8);
  for (int i = 0; i < 100; ++i) {
    stream.compute(kernel, {readwrite(buffer.all())});
    other_stream.compute(other_kernel, {readwrite(other_buffer.all())});
  }
  stream.synchronize();
  other_stream.synchronize();
  EXPECT_EQ(calls, 100);
  EXPECT_EQ(other_calls, 100);
  EXPECT_EQ(status_of([&] { stream.compute(kernel, {read(other_buffer.all())}); }),
            WEIR_STATUS_INVALID_ARGUMENT);
}

/// Notes how an action ended, and opens a gate then.
struct Ending {
  Gate* gate;
  std::atomic<int> status{-1};

  void watch(weir_runtime* runtime, const Event& event) {
    const auto note = [](weir_status status, const char*, void* payload) {
      auto& ending = *static_cast<Ending*>(payload);
      ending.status = status;
      ending.gate->open();
    };
    check(weir_event_on_complete(runtime, &event.handle(), note, this));
  }
};

// The gate opens only because the action that waits for it in another stream is cancelled. The
// streams end after the runtime, which is allowed and does nothing.
TEST(Shutdown, Timeout_CancelsActionsThatHaveNotStarted) {
  Gate gate;
  Ending running{&gate}, waiting{&gate};
  weir_runtime_options options = WEIR_RUNTIME_OPTIONS_INIT;
  options.domains = "host";
  options.shutdown_timeout_ns = 1'000'000;
  auto runtime = std::make_unique<Runtime>(options);
  const Place place = runtime->domain(0).place();
  const Stream first = place.stream(), second = place.stream();
  const Event held = gate.close(*runtime, first);
  running.watch(runtime->handle(), held);
  waiting.watch(runtime->handle(), second.wait(held));
  runtime.reset();
  EXPECT_EQ(running.status, WEIR_STATUS_OK);
  EXPECT_EQ(waiting.status, WEIR_STATUS_CANCELLED);
}

/// Enqueues an action at the end of each, until one is cancelled.
struct Endless {
  weir_runtime* runtime;
  const Stream* stream;
  const Kernel* kernel;
  std::atomic<int> status{-1};

  void go_on() {
    const auto next = [](weir_status status, const char*, void* payload) {
      auto& endless = *static_cast<Endless*>(payload);
      endless.status = status;
      if (status == WEIR_STATUS_OK) endless.go_on();
    };
    const Event event = stream->compute(*kernel, {});
    check(weir_event_on_complete(runtime, &event.handle(), next, this));
  }
};

TEST(Shutdown, ActionsEnqueuedForeverByCallbacks_AreCancelledAtTimeout) {
  weir_runtime_options options = WEIR_RUNTIME_OPTIONS_INIT;
  options.domains = "host";
  options.shutdown_timeout_ns = 50'000'000;
  auto runtime = std::make_unique<Runtime>(options);
  const Place place = runtime->domain(0).place();
  const Stream stream = place.stream();
  const Kernel nothing = runtime->kernel("nothing", [](const Call&) {});
  Endless endless{runtime->handle(), &stream, &nothing};
  endless.go_on();
  runtime.reset();
  EXPECT_EQ(endless.status, WEIR_STATUS_CANCELLED);
}

TEST(Cancel, ReadyAction_IsCancelledWithoutFurtherEnqueues) {
  for (const char* domain : {"host", "sim"}) {
    Gate gate;
    const Runtime runtime(domain);
    const Place place = runtime.domain(0).place(1);
    const Stream busy = place.stream(), stream = place.stream();
    const Kernel nothing = runtime.kernel("nothing", [](const Call&) {});
    gate.close(runtime, busy);
    const Event ready = stream.compute(nothing, {});
    stream.cancel();
    gate.open();
    EXPECT_EQ(status_of([&] { ready.wait(std::chrono::seconds(30)); }), WEIR_STATUS_CANCELLED)
        << domain;
  }
}

/// In virtual time: all calls begin at the same moment, one after the other.
TEST(Cancel, ActionsWaitingForMemory_AreCancelled) {
  const Runtime runtime("sim:cores=2,clock=virtual,memory=64B");
  const Place place = runtime.domain(0).place();
  const Stream stream = place.stream();
  const Buffer first = runtime.buffer(64), second = runtime.buffer(64), third = runtime.buffer(64);
  const Kernel work = runtime.kernel("work", [](const Call&) {});
  const Kernel cancel = runtime.kernel("cancel", [&stream](const Call&) { stream.cancel(); });
  const Event running = stream.compute(work, {readwrite(first.all())});
  const Event next = stream.compute(work, {readwrite(second.all())});
  const Event last = stream.compute(work, {readwrite(third.all())});
  stream.compute(cancel, {});
  stream.synchronize();
  EXPECT_EQ(running.info().status, WEIR_STATUS_OK);
  EXPECT_EQ(next.info().status, WEIR_STATUS_CANCELLED);
  EXPECT_EQ(last.info().status, WEIR_STATUS_CANCELLED);
  stream.compute(work, {readwrite(second.all())}).wait();
}

TEST(Shutdown, WithoutTimeout_WaitsForAllActions) {
  Gate gate;
  std::atomic<int> runs{0};
  {
    Runtime runtime("host");
    const Place place = runtime.domain(0).place();
    const Stream stream = place.stream();
    const Kernel count = runtime.kernel("count", [&runs](const Call&) { ++runs; });
    gate.close(runtime, stream);
    stream.barrier();
    for (int i = 0; i < 100; ++i) stream.compute(count, {});
    gate.open();
  }
  EXPECT_EQ(runs, 100);
}

}  // namespace
}  // namespace weir
