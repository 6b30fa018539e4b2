// Failures: they are reported by name, poison what depends on them and nothing else, then end.
#include <string>

#include "suite.hpp"

namespace weir::conformance {
namespace {

CONFORMANCE_TEST(Errors, FailedKernel_PoisonsOnlyItsDependentsAndNamesActionAndStream) {
  const Rig rig(subject);
  const Buffer x = rig.numbers(8), y = rig.numbers(8);
  const Event root = rig.stream.compute(rig.kernels.fail, {readwrite(x.all())}, {}, "panel");
  const Event after = rig.stream.compute(rig.kernels.add, {readwrite(x.all())}, {1});
  const Event copied = rig.stream.download(x.all());
  const Event independent = rig.stream.compute(rig.kernels.fill, {write(y.all())}, {5});
  const Event fetched = rig.stream.download(y.all());
  EXPECT_EQ(status_of([&] { rig.stream.synchronize(); }), WEIR_STATUS_KERNEL_ERROR);
  EXPECT_EQ(root.info().status, WEIR_STATUS_KERNEL_ERROR);
  EXPECT_EQ(after.info().status, WEIR_STATUS_POISONED);
  EXPECT_EQ(copied.info().status, WEIR_STATUS_POISONED);
  EXPECT_EQ(independent.info().status, WEIR_STATUS_OK);
  EXPECT_EQ(fetched.info().status, WEIR_STATUS_OK);
  EXPECT_EQ(y.data<std::int64_t>()[0], 5);
  for (const Event& event : {root, after}) {
    const std::string message = event.info().message;
    EXPECT_NE(message.find("tile 7 is broken"), std::string::npos) << message;
    EXPECT_NE(message.find("panel"), std::string::npos) << message;
    EXPECT_NE(message.find("work"), std::string::npos) << "does not name the stream: " << message;
  }
}

CONFORMANCE_TEST(Errors, FailureReportedBySynchronize_LaterActionsSucceed) {
  const Rig rig(subject);
  const Buffer x = rig.numbers(8);
  for (int round = 0; round < 3; ++round) {
    rig.stream.compute(rig.kernels.fail, {readwrite(x.all())});
    EXPECT_EQ(status_of([&] { rig.stream.synchronize(); }), WEIR_STATUS_KERNEL_ERROR);
    rig.stream.compute(rig.kernels.fill, {write(x.all())}, {round});
    rig.stream.download(x.all());
    rig.stream.synchronize();
    EXPECT_EQ(x.data<std::int64_t>()[7], round);
  }
}

CONFORMANCE_TEST(Errors, EventOfAFailedKernel_PoisonsDependentsInAnotherStream) {
  const Rig rig(subject);
  const Stream other = rig.place.stream();
  const Buffer x = rig.numbers(8);
  const Event root = rig.stream.compute(rig.kernels.fail, {readwrite(x.all())});
  other.wait(root, x.all());
  const Event after = other.compute(rig.kernels.add, {readwrite(x.all())}, {1});
  EXPECT_EQ(status_of([&] { after.wait(); }), WEIR_STATUS_POISONED);
}

CONFORMANCE_TEST(Errors, RegionOutsideTheBuffer_IsRejectedAndNamesTheBuffer) {
  const Rig rig(subject);
  const Buffer x = rig.numbers(8, "vector");
  Region last = x.range(0, 2);
  last.region.offset = SIZE_MAX;
  for (const Region& wrong : {x.range(60, 5), x.range(0, 65), last}) {
    try {
      rig.stream.compute(rig.kernels.fill, {write(wrong)}, {1});
      FAIL() << "bytes from " << wrong.region.offset;
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), WEIR_STATUS_INVALID_ARGUMENT);
      EXPECT_NE(std::string(error.what()).find("'vector'"), std::string::npos) << error.what();
    }
  }
  rig.stream.synchronize();  // nothing was enqueued
}

CONFORMANCE_TEST(Errors, StreamCancelled_PendingActionIsCancelledAndLaterOneRuns) {
  GatedRig rig(subject);
  const Buffer x = rig.numbers(8);
  rig.stream.wait(rig.closed());
  const Event event = rig.stream.compute(rig.kernels.fill, {write(x.all())}, {1});
  rig.stream.cancel();
  EXPECT_EQ(status_of([&] { event.wait(); }), WEIR_STATUS_CANCELLED);
  rig.gate.open();
  rig.stream.synchronize();  // a cancellation is not a failure
  rig.stream.compute(rig.kernels.fill, {write(x.all())}, {2}).wait();
}

}  // namespace
}  // namespace weir::conformance
