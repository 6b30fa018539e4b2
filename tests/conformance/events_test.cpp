// Events: when they complete, which waiters are notified, across streams and domains.
#include <array>
#include <atomic>
#include <thread>

#include "suite.hpp"

namespace weir::conformance {
namespace {

using namespace std::chrono_literals;

CONFORMANCE_TEST(Events, EventOfAPendingAction_TimesOutThenCompletesWithTheAction) {
  GatedRig rig(subject);
  const Buffer x = rig.numbers(8);
  rig.stream.wait(rig.closed());
  const Event event = rig.stream.compute(rig.kernels.fill, {write(x.all())}, {1});
  EXPECT_FALSE(event.complete());
  EXPECT_EQ(status_of([&] { event.wait(1ms); }), WEIR_STATUS_TIMEOUT);
  rig.gate.open();
  event.wait();
  EXPECT_TRUE(event.complete());
  EXPECT_EQ(event.info().status, WEIR_STATUS_OK);
}

CONFORMANCE_TEST(Events, EventAfter3000LaterActions_StaysComplete) {
  const Rig rig(subject);
  const Buffer x = rig.numbers(1);
  const Event first = rig.stream.compute(rig.kernels.fill, {write(x.all())}, {1});
  for (int i = 0; i < 3000; ++i) rig.stream.compute(rig.kernels.add, {readwrite(x.all())}, {1});
  rig.stream.synchronize();
  EXPECT_TRUE(first.complete());
  first.wait();
}

CONFORMANCE_TEST(Events, OneOfTwoEventsComplete_WaitAnyReturnsItAndWaitAllTimesOut) {
  GatedRig rig(subject);
  const Buffer x = rig.numbers(8), y = rig.numbers(8);
  rig.stream.wait(rig.closed(), x.all());
  const std::array events{rig.stream.compute(rig.kernels.fill, {write(x.all())}, {1}),
                          rig.stream.compute(rig.kernels.fill, {write(y.all())}, {1})};
  EXPECT_EQ(rig.runtime.wait_any(events), 1u);
  EXPECT_EQ(status_of([&] { rig.runtime.wait(events, 1ms); }), WEIR_STATUS_TIMEOUT);
  rig.gate.open();
  rig.runtime.wait(events);
  EXPECT_EQ(rig.runtime.wait_any(events), 0u);
}

CONFORMANCE_TEST(Events, CallbacksOnKernelsAndUploads_RunOnceBeforeSynchronizeReturns) {
  const Rig rig(subject);
  const Buffer x = rig.numbers(64);
  std::atomic<int> told{0};
  for (std::size_t i = 0; i < 64; ++i) {
    const Region cell = x.elements<std::int64_t>(i, 1);
    const auto note = [&](weir_status status, const char*) {
      if (status == WEIR_STATUS_OK) ++told;
    };
    rig.stream.compute(rig.kernels.fill, {write(cell)}, {1}).on_complete(note);
    rig.stream.upload(cell).on_complete(note);
  }
  rig.stream.synchronize();
  EXPECT_EQ(told, 128);
}

CONFORMANCE_TEST(Events, MarkerBehindAPendingWait_CompletesAfterItButBlocksNothing) {
  GatedRig rig(subject);
  const Buffer x = rig.numbers(8), y = rig.numbers(8);
  rig.stream.wait(rig.closed(), x.all());
  const Event mark = rig.stream.mark();
  rig.stream.compute(rig.kernels.fill, {write(y.all())}, {1}).wait();
  EXPECT_FALSE(mark.complete());
  rig.gate.open();
  mark.wait();
}

CONFORMANCE_TEST(Events, DeviceAndHostStreamsLinkedByEvents_ComputeTheSequentialResult) {
  GatedRig rig(subject);
  const Buffer x = rig.numbers(1);
  rig.gate.open();
  for (std::int64_t i = 0; i < 50; ++i) {
    rig.stream.upload(x.all());
    rig.stream.compute(rig.kernels.add, {readwrite(x.all())}, {i});
    rig.host_stream.wait(rig.stream.download(x.all()));
    const Event doubled = rig.host_stream.transfer({nullptr, x.handle(), x.all().region},
                                                   {nullptr, x.handle(), x.all().region});
    rig.stream.wait(doubled);
  }
  rig.runtime.synchronize();
  EXPECT_EQ(*x.data<std::int64_t>(), 50 * 49 / 2);
}

}  // namespace
}  // namespace weir::conformance
