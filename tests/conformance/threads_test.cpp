// Several threads of the program use one device.
#include <algorithm>
#include <thread>

#include "suite.hpp"

namespace weir::conformance {
namespace {

constexpr std::size_t kThreads = 4;

CONFORMANCE_TEST(Threads, FourThreadsOnOneStream_EveryActionRunsOnce) {
  const Rig rig(subject);
  const Buffer x = rig.numbers(kThreads + 1);
  {
    std::vector<std::jthread> threads;
    for (std::size_t thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, thread] {
        for (int i = 0; i < 300; ++i) {
          rig.stream.compute(
              rig.kernels.add,
              {readwrite(x.elements<std::int64_t>(i % 2 == 0 ? kThreads : thread, 1))}, {1});
        }
      });
    }
  }
  rig.stream.download(x.all());
  rig.stream.synchronize();
  EXPECT_EQ(x.data<std::int64_t>()[kThreads], 150 * static_cast<std::int64_t>(kThreads));
  EXPECT_EQ(std::count(x.data<std::int64_t>(), x.data<std::int64_t>() + kThreads, 150),
            static_cast<std::ptrdiff_t>(kThreads));
}

CONFORMANCE_TEST(Threads, FourThreadsWithOwnStreamsAndBuffers_GetCorrectResults) {
  const Rig rig(subject);
  std::vector<std::int64_t> sums(kThreads);
  {
    std::vector<std::jthread> threads;
    for (std::size_t thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, thread] {
        for (int round = 0; round < 10; ++round) {
          const Stream stream = rig.place.stream();
          const Buffer x = rig.numbers(100);
          stream.compute(rig.kernels.fill, {write(x.all())}, {thread});
          stream.compute(rig.kernels.add, {readwrite(x.all())}, {1});
          stream.download(x.all());
          stream.synchronize();
          sums[thread] += x.data<std::int64_t>()[99];
        }
      });
    }
  }
  for (std::size_t thread = 0; thread < kThreads; ++thread) {
    EXPECT_EQ(sums[thread], 10 * (static_cast<std::int64_t>(thread) + 1));
  }
}

}  // namespace
}  // namespace weir::conformance
