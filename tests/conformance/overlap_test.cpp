// What may happen at the same time does.
#include "suite.hpp"

namespace weir::conformance {
namespace {

CONFORMANCE_TEST(Overlap, IndependentKernelsInOneStream_RunConcurrently) {
  const Rig rig(subject);
  const Buffer x = rig.numbers(2);
  for (std::size_t i = 0; i < 2; ++i) {
    rig.stream.compute(rig.kernels.meet, {readwrite(x.elements<std::int64_t>(i, 1))});
  }
  EXPECT_NO_THROW(rig.stream.synchronize());
}

CONFORMANCE_TEST(Overlap, KernelsInTwoStreamsOfOnePlace_RunConcurrently) {
  const Rig rig(subject);
  const Stream other = rig.place.stream();
  const Buffer x = rig.numbers(1), y = rig.numbers(1);
  rig.stream.compute(rig.kernels.meet, {readwrite(x.all())});
  other.compute(rig.kernels.meet, {readwrite(y.all())});
  EXPECT_NO_THROW(rig.runtime.synchronize());
}

CONFORMANCE_TEST(Overlap, KernelsOnTwoPlacesOfOneDevice_RunConcurrently) {
  Rig rig(subject);
  rig.stream = {};
  rig.place = {};
  const std::vector<Place> places = rig.domain.partition(2);
  const Stream left = places[0].stream(), right = places[1].stream();
  const Buffer x = rig.numbers(1), y = rig.numbers(1);
  left.compute(rig.kernels.meet, {readwrite(x.all())});
  right.compute(rig.kernels.meet, {readwrite(y.all())});
  EXPECT_NO_THROW(rig.runtime.synchronize());
}

CONFORMANCE_TEST(Overlap, UploadDuringARunningKernel_CompletesBeforeTheKernel) {
  const Rig rig(subject);
  const Buffer x = rig.numbers(1), y = rig.numbers(1000), z = rig.numbers(1);
  rig.stream.compute(rig.kernels.meet, {readwrite(x.all())});  // runs until the one below does
  const Event sent = rig.stream.upload(y.all());
  rig.stream.wait(sent, z.all());
  rig.stream.compute(rig.kernels.meet, {readwrite(z.all())});
  EXPECT_NO_THROW(rig.stream.synchronize());
}

}  // namespace
}  // namespace weir::conformance
