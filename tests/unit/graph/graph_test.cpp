// Graphs through the public interface: random programs beside a sequential model, and bad input.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>

#include "random_graphs.hpp"

namespace weir {
namespace {

testing::AssertionResult contains(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "'" << text << "' lacks '" << part << "'";
}

/// A place of some cores of the host, with a queue.
class Fixture {
 public:
  explicit Fixture(unsigned cores) : runtime("host") {
    weir_place_options options = WEIR_PLACE_OPTIONS_INIT;
    options.core_count = cores;
    options.oversubscribe = true;
    weir_place* handle = nullptr;
    check(weir_place_create(runtime.domain(0).handle(), &options, &handle));
    place.reset(handle);
    weir_queue_options wanted = WEIR_QUEUE_OPTIONS_INIT;
    wanted.name = "q";
    wanted.places = &handle;
    wanted.place_count = 1;
    wanted.no_models = true;
    queue = runtime.queue(wanted);
  }

  Runtime runtime;
  detail::Owner<weir_place, weir_place_destroy> place;
  Queue queue;
};

/// Cores that this machine has, at most two.
unsigned cores() { return std::min(2u, std::thread::hardware_concurrency()); }

TEST(Graphs, RandomProgramsOfQueuesEqualTheSequentialModel) {
  for (unsigned seed = 1; seed <= 120 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Fixture fixture(1 + seed % cores());
    std::mt19937 random(seed);
    RandomProgram program(fixture.runtime, random);
    const std::string wrong = run_random_graph(
        program, random, fixture.queue,
        [&](const Kernel& kernel, const auto& operands, const auto& scalars) {
          fixture.queue.submit(kernel, operands, scalars);
        },
        [&] { fixture.queue.synchronize(); });
    EXPECT_EQ(wrong, "");
  }
}

/// In device memory.
TEST(Graphs, RandomProgramsOfStreamsEqualTheSequentialModel) {
  for (unsigned seed = 1; seed <= 60 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Runtime runtime(
        ("sim:gbps=1000,latency_us=0,cores=" + std::to_string(1 + seed % cores())).c_str());
    const Place place = runtime.domain(0).place();
    const Stream stream = place.stream();
    std::mt19937 random(seed);
    RandomProgram program(runtime, random);
    program.each_buffer([&](const Buffer& buffer) { stream.upload(buffer.all()); });
    const std::string wrong = run_random_graph(
        program, random, StreamRef(stream),
        [&](const Kernel& kernel, const auto& operands, const auto& scalars) {
          stream.compute(kernel, operands, scalars);
        },
        [&] {
          const std::string end = failure_of([&] { stream.synchronize(); });
          program.each_buffer([&](const Buffer& buffer) { stream.download(buffer.all()); });
          stream.synchronize();
          if (end != "OK") throw Error(WEIR_STATUS_KERNEL_ERROR, end);
        });
    EXPECT_EQ(wrong, "");
  }
}

/// One buffer of eight doubles, and a kernel that adds a scalar to its operand.
class Adder {
 public:
  explicit Adder(const Runtime& runtime)
      : buffer(runtime.buffer(64, "sums")), kernel(runtime.kernel("add", [](Call& call) {
          for (double& value : call.span<double>(0)) value += call.scalar<double>(0);
        })) {
    std::fill_n(buffer.data<double>(), 8, 0.0);
  }
  Operand all() const { return readwrite(buffer.all()); }

  Buffer buffer;
  Kernel kernel;
};

TEST(Graphs, RecordedStream_RepeatsItsCallsInEachLaunch) {
  const Runtime runtime("host:cores=1");
  const Place place = runtime.domain(0).place();
  const Stream stream = place.stream();
  const Adder adder(runtime);
  const Graph graph = record(stream, [&] {
    for (int i = 0; i < 10; ++i) stream.compute(adder.kernel, {adder.all()}, {1.0});
    stream.barrier();
    stream.synchronize();  // the program may wait; a launch does not
  });
  graph.launch();
  graph.launch().wait();
  stream.synchronize();
  EXPECT_EQ(adder.buffer.data<double>()[7], 30);
  EXPECT_EQ(graph.info().calls, 10u);
  EXPECT_EQ(graph.info().launches, 2u);
}

TEST(Graphs, ParameterOfALaunch_DoesNotAffectTheNextLaunch) {
  const Fixture fixture(1);
  const Adder adder(fixture.runtime);
  const Graph graph =
      record(fixture.queue,
             [&] { fixture.queue.submit(adder.kernel, {adder.all()}, {parameter(0, 1.0)}); },
             {.record_only = true});
  graph.launch({}, {10.0});
  graph.launch();
  fixture.queue.synchronize();
  EXPECT_EQ(adder.buffer.data<double>()[0], 11) << "the second has the recorded value";
}

TEST(Graphs, LaunchBetweenConflictingTasks_RunsInProgramOrder) {
  const Fixture fixture(cores());
  const Adder adder(fixture.runtime);
  const Kernel twice = fixture.runtime.kernel("twice", [](Call& call) {
    for (double& value : call.span<double>(0)) value *= 2;
  });
  const Graph graph =
      record(fixture.queue, [&] { fixture.queue.submit(adder.kernel, {adder.all()}, {1.0}); });
  double expected = 1;
  for (int i = 0; i < 20; ++i) {
    fixture.queue.submit(twice, {adder.all()});
    graph.launch();
    expected = 2 * expected + 1;
  }
  fixture.queue.synchronize();
  EXPECT_EQ(adder.buffer.data<double>()[0], expected);
}

TEST(Graphs, FailedLaunch_PoisonsItsDependentsOnly) {
  const Fixture fixture(cores());
  const Adder adder(fixture.runtime);
  const Buffer other = fixture.runtime.buffer(64, "other");
  other.data<double>()[0] = 0;
  std::atomic<bool> fails{false};
  const Kernel maybe = fixture.runtime.kernel("maybe", [&](Call&) {
    if (fails) throw std::runtime_error("no more paper");
  });
  const Graph graph = record(fixture.queue, [&] {
    fixture.queue.submit(maybe, {adder.all()});
    fixture.queue.submit(adder.kernel, {adder.all()}, {1.0});
  });
  fixture.queue.synchronize();
  fails = true;
  graph.launch();
  graph.launch();
  fixture.queue.submit(adder.kernel, {adder.all()}, {1.0});
  fixture.queue.submit(adder.kernel, {readwrite(other.all())}, {1.0});
  const std::string end = failure_of([&] { fixture.queue.synchronize(); });
  EXPECT_TRUE(contains(end, "call 1 of 2, 'maybe': no more paper"));
  EXPECT_TRUE(contains(end, "graph 1"));
  EXPECT_EQ(adder.buffer.data<double>()[0], 1) << "of the recording alone";
  EXPECT_EQ(other.data<double>()[0], 1) << "independent";
  fails = false;
  graph.launch();
  fixture.queue.synchronize();
  EXPECT_EQ(adder.buffer.data<double>()[0], 2) << "usable after a failure";
}

TEST(Graphs, LaunchInVirtualTime_TakesTheCostOfItsCalls) {
  const Runtime runtime("sim:clock=virtual,cores=2,gflops=1,kernels=skip,launch_us=0");
  const Place place = runtime.domain(0).place();
  const Stream stream = place.stream();
  const Buffer buffer = runtime.buffer(64, "b");
  const weir_implementation code = {"host", [](const weir_call*) { return WEIR_STATUS_OK; },
                                    nullptr};
  weir_kernel_options options = WEIR_KERNEL_OPTIONS_INIT;
  options.name = "work";
  options.implementations = &code;
  options.implementation_count = 1;
  options.cost = [](const weir_call* call) { return weir_cost{call->scalars[0].value.f64, 0}; };
  check(weir_kernel_register(runtime.handle(), &options, nullptr));
  const Kernel kernel = runtime.kernel("work");
  const Graph graph =
      record(stream,
             [&] {
               for (int i = 0; i < 4; ++i)
                 stream.compute(kernel, {readwrite(buffer.all())}, {parameter(0, 1e6)});
             },
             {.record_only = true});
  const auto start = runtime.now();
  graph.launch();
  stream.synchronize();
  const double once = std::chrono::duration<double>(runtime.now() - start).count();
  graph.launch({}, {3e6}).wait();
  const double all = std::chrono::duration<double>(runtime.now() - start).count();
  EXPECT_NEAR(once, 2e-3, 1e-4) << "4 million operations on two cores";
  EXPECT_NEAR(all - once, 6e-3, 1e-4);
}

TEST(Graphs, GraphDestroyedWithLaunchesInFlight_CompletesThem) {
  const Fixture fixture(1);
  const Adder adder(fixture.runtime);
  {
    const Graph graph = record(fixture.queue, [&] {
      for (int i = 0; i < 1000; ++i) fixture.queue.submit(adder.kernel, {adder.all()}, {1.0});
    });
    for (int i = 0; i < 100; ++i) graph.launch();
  }
  fixture.queue.synchronize();
  EXPECT_EQ(adder.buffer.data<double>()[0], 101'000);
}

TEST(Graphs, InvalidRecordingBindingOrParameter_FailsWithTheReason) {
  const Fixture fixture(1);
  const Adder adder(fixture.runtime);
  const auto submit = [&] { fixture.queue.submit(adder.kernel, {adder.all()}, {1.0}); };
  const auto refused = [&](const auto& code) { return failure_of(code); };
  EXPECT_TRUE(contains(refused([&] { record(fixture.queue, [] {}); }), "recorded no kernel call"));
  EXPECT_TRUE(
      contains(refused([&] { record(fixture.queue, [&] { record(fixture.queue, submit); }); }),
               "busy: stream 'q/host/p0' is being recorded already"))
      << "nested";
  submit();  // the failed recordings have ended
  const Graph graph = record(fixture.queue, submit, {.name = "loop"});
  EXPECT_TRUE(contains(refused([&] { record(fixture.queue, [&] { graph.launch(); }); }),
                       "the launch of a graph cannot be recorded"));
  EXPECT_TRUE(contains(refused([&] {
                         record(fixture.queue, [&] {
                           fixture.queue.submit(adder.kernel, {reduce(adder.buffer.all())}, {1.0},
                                                {.combine = adder.kernel.handle()});
                         });
                       }),
                       "access REDUCE cannot be recorded"));
  EXPECT_TRUE(contains(refused([&] { check(weir_graph_end(graph.handle())); }),
                       "the recording of graph 'loop' has ended already"));
  const Buffer small = fixture.runtime.buffer(8, "small"),
               free = fixture.runtime.buffer(64, "free");
  EXPECT_TRUE(contains(refused([&] {
                         graph.launch({{adder.buffer, small}});
                       }),
                       "buffer 'small' of 8 bytes cannot replace one of 64 bytes in graph 'loop'"));
  EXPECT_TRUE(contains(refused([&] {
                         graph.launch({{free, adder.buffer}});
                       }),
                       "a binding names a buffer that graph 'loop' does not use"));
  const auto with_parameter = [&] {
    fixture.queue.submit(adder.kernel, {adder.all()}, {parameter(1, 1.0)});
  };
  const Graph two = record(fixture.queue, with_parameter, {.name = "two"});
  EXPECT_EQ(two.info().parameters, 2u);
  EXPECT_TRUE(contains(refused([&] { two.launch({}, {1.0}); }),
                       "graph 'two' has parameter 1, but the launch gives 1 parameters"));
  EXPECT_TRUE(contains(refused([&] {
                         two.launch({}, {1.0, 2});
                       }),
                       "parameter 1 of graph 'two' has another type"));
  EXPECT_EQ(refused([&] { two.launch({}, {1.0, 2.0}); }), "OK");
  fixture.queue.synchronize();
}

TEST(Graphs, LaunchWithADestroyedOrAliasedBuffer_NamesTheBuffer) {
  const Fixture fixture(1);
  const Kernel nothing = fixture.runtime.kernel("nothing", [](Call&) {});
  Buffer first = fixture.runtime.buffer(64, "first");
  const Buffer second = fixture.runtime.buffer(64, "second");
  const Graph graph = record(fixture.queue, [&] {
    fixture.queue.submit(nothing, {read(first.all()), write(second.all())});
  });
  const Buffer third = fixture.runtime.buffer(64, "third");
  EXPECT_TRUE(contains(failure_of([&] {
                         graph.launch({{first, second}});
                       }),
                       "buffer 'second' would stand for two buffers of graph 'graph 1'"));
  EXPECT_EQ(failure_of([&] { graph.launch({{first, second}, {second, first}}); }), "OK");
  fixture.queue.synchronize();
  const weir_binding replaced{first.handle(), third.handle()};
  first = {};
  EXPECT_TRUE(contains(failure_of([&] { graph.launch(); }), "buffer 'first' has been destroyed"));
  weir_graph_launch_options options = WEIR_GRAPH_LAUNCH_OPTIONS_INIT;
  options.bindings = &replaced;
  options.binding_count = 1;
  EXPECT_EQ(failure_of([&] { check(weir_graph_launch(graph.handle(), &options, nullptr)); }), "OK");
  fixture.queue.synchronize();
}

TEST(Graphs, RecordOnABindingQueue_IsRefused) {
  const Runtime runtime("host:cores=1,sim:cores=1");
  const Queue queue = runtime.queue();
  EXPECT_TRUE(contains(failure_of([&] { record(queue, [] {}); }),
                       "a graph takes the tasks of a queue with one place, in host memory"));
}

TEST(Graphs, WaitForAnEventWhileRecording_IsRefused) {
  const Runtime runtime("host:cores=1");
  const Place place = runtime.domain(0).place();
  const Stream stream = place.stream(), other = place.stream();
  const Event event = other.mark();
  EXPECT_TRUE(contains(failure_of([&] { record(stream, [&] { stream.wait(event); }); }),
                       "a wait for events cannot be recorded"));
}

}  // namespace
}  // namespace weir
