// Ends of life: what was enqueued is done, what was taken is given back.
#include <algorithm>

#include "suite.hpp"

namespace weir::conformance {
namespace {

CONFORMANCE_TEST(Shutdown, RuntimeDestroyedWithoutSynchronize_CompletesAllActions) {
  std::vector<std::int64_t> numbers(1000);
  {
    const Rig rig(subject);
    const Buffer x = rig.runtime.wrap(numbers);
    rig.stream.upload(x.all());
    for (int i = 0; i < 500; ++i) rig.stream.compute(rig.kernels.add, {readwrite(x.all())}, {1});
    rig.stream.download(x.all());
  }
  EXPECT_EQ(std::count(numbers.begin(), numbers.end(), 500), 1000);
}

CONFORMANCE_TEST(Shutdown, BufferDestroyedWithActionsInFlight_CompletesThemFirst) {
  const Rig rig(subject);
  std::vector<std::int64_t> numbers(1000);
  for (int round = 1; round <= 20; ++round) {
    const Buffer x = rig.runtime.wrap(numbers);
    rig.stream.upload(x.all());
    rig.stream.compute(rig.kernels.add, {readwrite(x.all())}, {1});
    rig.stream.download(x.all());
  }
  EXPECT_EQ(std::count(numbers.begin(), numbers.end(), 20), 1000);
}

CONFORMANCE_TEST(Shutdown, RuntimeCreatedAndDestroyed20Times_DoesNotHang) {
  for (int round = 0; round < 20; ++round) {
    const Rig rig(subject);
    const Buffer x = rig.numbers(10);
    rig.stream.compute(rig.kernels.fill, {write(x.all())}, {round});
    if (round % 2 == 0) rig.stream.synchronize();
  }
}

CONFORMANCE_TEST(Shutdown, TwoRuntimesOnOneDevice_BothComputeTheirResults) {
  const Rig one(subject), two(subject);
  const Buffer x = one.numbers(10), y = two.numbers(10);
  one.stream.compute(one.kernels.fill, {write(x.all())}, {1});
  two.stream.compute(two.kernels.fill, {write(y.all())}, {2});
  one.stream.download(x.all());
  two.stream.download(y.all());
  one.stream.synchronize();
  two.stream.synchronize();
  EXPECT_EQ(x.data<std::int64_t>()[9], 1);
  EXPECT_EQ(y.data<std::int64_t>()[9], 2);
}

}  // namespace
}  // namespace weir::conformance
