// Windows over the memory of buffers, in the host and in domains with memory of their own.
#include <weir/fabric.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <weir/weir.hpp>

#include "fleet.hpp"
#include "thrown.hpp"

namespace weir {
namespace {

constexpr std::size_t kCount = 1000;

Kernel make_double(const Runtime& runtime) {
  return runtime.kernel("double", [](const Call& call) {
    for (std::int64_t& x : call.span<std::int64_t>(0)) x *= 2;
  });
}

/// The numbers that a rank puts into the other one's memory.
std::vector<std::int64_t> numbers_of(unsigned rank) {
  std::vector<std::int64_t> numbers(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    numbers[i] = static_cast<std::int64_t>(i) + 10'000 * (rank + 1);
  }
  return numbers;
}

void exchange(weir_fabric* fabric, const Window<std::int64_t>& window) {
  const unsigned rank = weir_fabric_rank(fabric), other = 1 - rank;
  const auto mine = numbers_of(rank);
  window.put(other, 0, mine);
  window.flush(other);
  check(weir_fabric_barrier(fabric, WEIR_FOREVER));
}

void expect_doubled(const std::int64_t* found, unsigned from) {
  const auto sent = numbers_of(from);
  for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(found[i], 2 * sent[i]) << i;
}

/// A device whose instance of a buffer is the memory of a window: what others put is there, without
/// an upload, and what kernels leave there others get, without a download.
void use_an_instance(weir_fabric* fabric) {
  const unsigned rank = weir_fabric_rank(fabric), other = 1 - rank;
  const Runtime runtime("sim:cores=1");
  const Kernel twice = make_double(runtime);
  const Domain card = runtime.domain(0);
  const Window<std::int64_t> window(fabric, kCount);
  {
    const Buffer x = runtime.adopt(card, window.memory().data(), kCount * sizeof(std::int64_t));
    exchange(fabric, window);
    const Place place = card.place();
    const Stream stream = place.stream();
    stream.compute(twice, {readwrite(x.all())}).wait();
    EXPECT_EQ(*x.data<std::int64_t>(), 0) << "the host instance";
    check(weir_fabric_barrier(fabric, WEIR_FOREVER));
    std::vector<std::int64_t> theirs(kCount);
    window.get(other, 0, theirs);
    window.flush(other);
    expect_doubled(theirs.data(), rank);  // what this rank has put there
    stream.download(x.all());
    stream.synchronize();
    expect_doubled(x.data<std::int64_t>(), other);
    check(weir_fabric_barrier(fabric, WEIR_FOREVER));
  }
}

TEST(Windows, WindowOverADeviceInstance_NeedsNoTransfers) { on_two_ranks(use_an_instance); }

/// A buffer of the host, which a window is made over.
void use_a_buffer(weir_fabric* fabric) {
  const unsigned other = 1 - weir_fabric_rank(fabric);
  const Runtime runtime("host:cores=1");
  const Kernel twice = make_double(runtime);
  const Buffer x = runtime.buffer(kCount * sizeof(std::int64_t));
  auto* const memory = x.data<std::int64_t>();
  const Window<std::int64_t> window(fabric, {memory, kCount});
  exchange(fabric, window);
  const Place place = runtime.domain(0).place();
  const Stream stream = place.stream();
  stream.compute(twice, {readwrite(x.all())}).wait();
  expect_doubled(memory, other);
  check(weir_fabric_barrier(fabric, WEIR_FOREVER));
}

TEST(Windows, WindowOverAHostBuffer_IsReachedByPeers) { on_two_ranks(use_a_buffer); }

/// Rank 1 does not make the window, and waits until rank 0 reports that it has given up.
void make_alone(weir_fabric* fabric) {
  if (weir_fabric_rank(fabric) == 1) {
    const auto ignore = [](unsigned, const void*, std::size_t, void*) {};
    check(weir_fabric_listen(fabric, ignore, nullptr));
    return check(weir_fabric_progress(fabric, WEIR_FOREVER));
  }
  const std::string why = thrown_by(
      [&] { const Window<std::int64_t> window(fabric, kCount, std::chrono::milliseconds(1)); },
      WEIR_STATUS_TIMEOUT);
  EXPECT_NE(why.find("in time"), std::string::npos) << why;
  check(weir_fabric_send(fabric, 1, nullptr, 0));
}

TEST(Windows, OneRankDoesNotCreateTheWindow_CreationTimesOut) { on_two_ranks(make_alone); }

}  // namespace
}  // namespace weir
