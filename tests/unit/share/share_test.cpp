// Shares through the public interface.
#include <weir/share.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <weir/weir.hpp>

#include "fleet.hpp"
#include "forwarding_link.hpp"
#include "random_share.hpp"
#include "ranks.hpp"
#include "runtime/fabric.hpp"
#include "thrown.hpp"

namespace weir {
namespace {

constexpr const char* kAllChunks[] = {"static",    "one",     "fixed:7",           "guided",
                                      "factoring", "learned", "weighted-factoring"};

weir_status add_one(const weir_call* call) {
  const Call wrapped(call);
  for (int& value : wrapped.span<int>(0)) ++value;
  return WEIR_STATUS_OK;
}

/// A kernel that adds 1 to each item and takes a millisecond for it on a device of 1 gflops.
Kernel make_kernel(const Runtime& runtime) {
  const weir_implementation code = {"host", add_one, nullptr};
  weir_kernel_options options = WEIR_KERNEL_OPTIONS_INIT;
  options.name = "add one";
  options.implementations = &code;
  options.implementation_count = 1;
  options.cost = [](const weir_call* call) {
    return weir_cost{1e6 * static_cast<double>(call->operands[0].extent[0] / sizeof(int)), 0};
  };
  weir_kernel* made = nullptr;
  check(weir_kernel_register(runtime.handle(), &options, &made));
  return Kernel(made);
}

/// Items that count how often they were done.
struct Counting {
  explicit Counting(const std::string& domains, std::size_t count)
      : runtime(domains), kernel(make_kernel(runtime)), items(count), buffer(runtime.wrap(items)) {}

  Event enqueue(const Chunk& chunk) const {
    const Region part = buffer.elements<int>(chunk.first, chunk.count);
    chunk.stream.upload(part);
    chunk.stream.compute(kernel, {readwrite(part)});
    return chunk.stream.download(part);
  }
  Share share(const ShareOptions& options = {}) const {
    return runtime.share(
        items.size(), [this](const Chunk& chunk) { return enqueue(chunk); }, options);
  }
  bool each_once() const {
    return std::all_of(items.begin(), items.end(), [](int times) { return times == 1; });
  }

  Runtime runtime;
  Kernel kernel;
  std::vector<int> items;
  Buffer buffer;
};

std::string card(double speed, const std::string& more = "") {
  return "sim:clock=virtual,gflops=1,gbps=1000,latency_us=0,speed=" + std::to_string(speed) + more;
}

double in_ms(std::int64_t ns) { return static_cast<double>(ns) / 1e6; }

TEST(Shares, EachChunkPolicy_DoesEveryItemOnce) {
  for (const char* chunks : kAllChunks) {
    for (const char* domains : {"host", "host:cores=1,sim:cores=1,gbps=1000,latency_us=0"}) {
      Counting counting(domains, 500);
      const Share share = counting.share({.chunks = chunks});
      share.wait();
      EXPECT_TRUE(counting.each_once()) << chunks << " on " << domains;
      EXPECT_EQ(share.info().done, 500u);
      std::uint64_t items = 0;
      for (const weir_share_part& part : share.parts()) items += part.items;
      EXPECT_EQ(items, 500u);
    }
  }
}

TEST(Shares, RandomFaults_ShareDoesAllItemsOrReportsTheFailure) {
  const char* const only = std::getenv("WEIR_TEST_SEED");
  const std::uint64_t first = only != nullptr ? std::strtoull(only, nullptr, 10) : 1;
  for (std::uint64_t seed = first; seed < first + (only != nullptr ? 1 : 300); ++seed) {
    ASSERT_EQ(random_share::Trial(random_share::plan_of(seed)).run(), "")
        << "replay: WEIR_TEST_SEED=" << seed
        << " unit_share --gtest_filter=Shares.RandomFaults_ShareDoesAllItemsOrReportsTheFailure";
  }
}

TEST(Shares, ShareOfNoItems_Completes) {
  Runtime runtime("host");
  const Share share = runtime.share(0, [](const Chunk&) { return Event(); });
  share.wait();
  EXPECT_EQ(share.info().items, 0u);
}

TEST(Shares, DevicesOfUnequalSpeed_MakespanIsWithinTwoPercentOfIdeal) {
  for (const std::vector<double>& speeds :
       {std::vector<double>{1, 2}, {2, 1}, {1, 2, 4}, {4, 1, 2}}) {
    for (const std::size_t count : {300u, 301u, 1000u}) {
      std::string domains;
      double speed = 0;
      for (const double each : speeds) {
        domains += (domains.empty() ? "" : ",") + card(each);
        speed += each;
      }
      Counting counting(domains, count);
      const Share share = counting.share();
      share.wait();
      EXPECT_TRUE(counting.each_once());
      const double ideal = static_cast<double>(count) / speed;
      EXPECT_LE(in_ms(share.info().makespan_ns), 1.02 * ideal) << domains << " " << count;
      EXPECT_NEAR(share.info().ideal_ns / 1e6, ideal, 0.01 * ideal);
    }
  }
}

TEST(Shares, PlaceLost_IdealTimeStaysNearTheMakespan) {
  for (const std::size_t lost_at : {6u, 12u, 18u}) {
    Counting counting(card(1) + "," + card(1, ",lost_at=" + std::to_string(lost_at)), 100);
    const Share share = counting.share({.chunks = "fixed:2"});
    share.wait();
    ASSERT_TRUE(share.parts()[1].lost);
    const double makespan = in_ms(share.info().makespan_ns);
    EXPECT_NEAR(share.info().ideal_ns / 1e6, makespan, 0.1 * makespan) << lost_at;
  }
}

TEST(Shares, DeviceSlowsDownHalfWay_MakespanIsWithinTwoPercentOfIdeal) {
  for (const std::size_t count : {300u, 1000u}) {
    const double half = static_cast<double>(count) / 3 / 2;
    const std::string slow = ",slow_by=10,slow_at_ms=" + std::to_string(half);
    for (const bool fast_slows : {false, true}) {
      Counting counting(card(1, fast_slows ? "" : slow) + "," + card(2, fast_slows ? slow : ""),
                        count);
      const Share share = counting.share();
      share.wait();
      EXPECT_TRUE(counting.each_once());
      const double left = static_cast<double>(count) / 2;
      const double ideal = half + left / (fast_slows ? 1 + 0.2 : 0.1 + 2);
      EXPECT_GE(in_ms(share.info().makespan_ns), 0.999 * ideal);
      EXPECT_LE(in_ms(share.info().makespan_ns), 1.02 * ideal) << fast_slows << " " << count;
    }
  }
}

TEST(Shares, ItemsOfUnequalWork_MakespanIsWithinTwoPercentOfIdeal) {
  std::vector<double> work(400);
  for (std::size_t i = 0; i < work.size(); ++i) work[i] = static_cast<double>(1 + i % 7);
  Runtime runtime(card(1) + "," + card(3));
  const weir_implementation code = {"host", [](const weir_call*) { return WEIR_STATUS_OK; },
                                    nullptr};
  weir_kernel_options options = WEIR_KERNEL_OPTIONS_INIT;
  options.name = "spend";
  options.implementations = &code;
  options.implementation_count = 1;
  options.cost = [](const weir_call* call) { return weir_cost{call->scalars[0].value.f64, 0}; };
  weir_kernel* made = nullptr;
  check(weir_kernel_register(runtime.handle(), &options, &made));
  double all = 0;
  for (const double each : work) all += each;
  const Share share = runtime.share(work.size(),
                                    [&](const Chunk& chunk) {
                                      double flops = 0;
                                      for (std::uint64_t i = 0; i < chunk.count; ++i)
                                        flops += 1e6 * work[chunk.first + i];
                                      return chunk.stream.compute(Kernel(made), {}, {flops});
                                    },
                                    {.work = work});
  share.wait();
  EXPECT_LE(in_ms(share.info().makespan_ns), 1.02 * all / 4);
}

TEST(Shares, StaticPolicy_MakespanIsThatOfTheSlowestPlace) {
  for (const auto& [chunks, makespan] : {std::pair("static", 150.0), {"static:1,2", 100.0}}) {
    Counting counting(card(1) + "," + card(2), 300);
    const Share share = counting.share({.chunks = chunks});
    share.wait();
    EXPECT_NEAR(in_ms(share.info().makespan_ns), makespan, 1);
  }
}

TEST(Shares, CompletedShare_ReportsItemsVisitsAndIdleTimeOfEachPlace) {
  Counting counting(card(1) + "," + card(1), 100);
  const Share share = counting.share({.chunks = "static:1,3"});
  share.wait();
  const auto parts = share.parts();
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].items, 25u);
  EXPECT_EQ(parts[0].visits, 1u);
  EXPECT_NEAR(in_ms(parts[0].busy_ns), 25, 0.5);
  EXPECT_NEAR(in_ms(parts[0].idle_ns), 50, 0.5);
  EXPECT_EQ(parts[1].items, 75u);
  EXPECT_NEAR(in_ms(parts[1].idle_ns), 0, 0.5);
}

TEST(Shares, DeviceLost_OtherPlacesDoItsItemsOnce) {
  for (const char* chunks : kAllChunks) {
    for (const int lost_at : {1, 2, 3, 7, 20}) {
      Counting counting(card(1) + "," + card(2, ",lost_at=" + std::to_string(lost_at)), 300);
      const Share share = counting.share({.chunks = chunks});
      share.wait();
      EXPECT_TRUE(counting.each_once()) << chunks << " lost at " << lost_at;
      const auto parts = share.parts();
      EXPECT_FALSE(parts[0].lost);
      EXPECT_EQ(parts[0].items + parts[1].items, 300u);
      EXPECT_EQ(parts[1].lost, lost_at < 4 || std::string(chunks) != "static");
      counting.runtime.synchronize();  // nothing is left to report
    }
  }
}

TEST(Shares, FailWhenAllPlacesAreLost) {
  Counting counting(card(1, ",lost_at=9") + "," + card(2, ",lost_at=5"), 300);
  const Share share = counting.share();
  const std::string why = thrown_by([&] { share.wait(); });
  EXPECT_NE(why.find("is lost"), std::string::npos) << why;
  EXPECT_LT(share.info().done, 300u);
}

TEST(Shares, KernelThatThrows_FailsTheShare) {
  Runtime runtime("host");
  const Kernel bad = runtime.kernel("bad", [](const Call& call) {
    if (call.scalar<int>(0) > 40) throw std::runtime_error("item 41 is bad");
  });
  const Share share = runtime.share(100, [&](const Chunk& chunk) {
    return chunk.stream.compute(bad, {}, {static_cast<int>(chunk.first + chunk.count)});
  });
  const std::string why = thrown_by([&] { share.wait(); }, WEIR_STATUS_KERNEL_ERROR);
  EXPECT_NE(why.find("item 41 is bad"), std::string::npos) << why;
  runtime.synchronize();
}

TEST(Shares, FunctionThatThrows_WaitRethrowsItsException) {
  Runtime runtime("host");
  const Share share =
      runtime.share(100, [](const Chunk&) -> Event { throw std::out_of_range("no such item"); });
  EXPECT_THROW(share.wait(), std::out_of_range);
}

TEST(Shares, RecoveredDeviceError_DoesNotHideTheFinalFailure) {
  Runtime runtime("host:cores=1,sim:cores=1");
  {
    const Share failed = runtime.share(100, [](const Chunk& chunk) -> Event {
      if (chunk.place == 0) throw Error(WEIR_STATUS_DEVICE_ERROR, "the device is lost");
      throw std::out_of_range("no such item");
    });
    EXPECT_THROW(failed.wait(), std::out_of_range);
  }

  std::atomic<bool> cancelled{false};
  const Kernel blocking = runtime.kernel("blocking", [&](const Call&) {
    while (!cancelled) {
    }
  });
  const Share share = runtime.share(100, [&](const Chunk& chunk) {
    if (chunk.place == 0) throw Error(WEIR_STATUS_DEVICE_ERROR, "the device is lost");
    return chunk.stream.compute(blocking, {});
  });
  share.cancel();
  cancelled = true;
  EXPECT_NE(thrown_by([&] { share.wait(); }, WEIR_STATUS_CANCELLED), "");
}

TEST(Shares, FunctionThatReturnsAnEmptyEvent_CompletesItsChunk) {
  Runtime runtime("host");
  std::atomic<std::uint64_t> sum{0};
  const Share share = runtime.share(100000, [&](const Chunk& chunk) {
    for (std::uint64_t i = 0; i < chunk.count; ++i) sum += chunk.first + i;
    return Event();
  });
  share.wait();
  EXPECT_EQ(sum, std::uint64_t{99999} * 100000 / 2);
}

TEST(Shares, SeveralWays_EachPlaceChoosesItsFastest) {
  Runtime runtime(card(1) + "," + card(1));
  const weir_implementation code = {"host", [](const weir_call*) { return WEIR_STATUS_OK; },
                                    nullptr};
  weir_kernel_options options = WEIR_KERNEL_OPTIONS_INIT;
  options.name = "spend";
  options.implementations = &code;
  options.implementation_count = 1;
  options.cost = [](const weir_call* call) { return weir_cost{call->scalars[0].value.f64, 0}; };
  weir_kernel* made = nullptr;
  check(weir_kernel_register(runtime.handle(), &options, &made));
  // Way 0 is the faster one on place 0, way 2 on place 1.
  const double flops[2][3] = {{1e6, 2e6, 3e6}, {3e6, 2e6, 1e6}};
  const Share share = runtime.share(300,
                                    [&](const Chunk& chunk) {
                                      const double all = flops[chunk.place][chunk.way] *
                                                         static_cast<double>(chunk.count);
                                      return chunk.stream.compute(Kernel(made), {}, {all});
                                    },
                                    {.ways = 3});
  share.wait();
  EXPECT_EQ(share.parts()[0].way, 0u);
  EXPECT_EQ(share.parts()[1].way, 2u);
  EXPECT_LE(in_ms(share.info().makespan_ns), 1.05 * 150);
}

TEST(Shares, WaitWithADeadline_TimesOutAndCancelEndsTheShare) {
  Runtime runtime("host:cores=1");
  std::atomic<bool> open{false};
  const Kernel held = runtime.kernel("held", [&](const Call&) { open.wait(false); });
  {
    const Share share =
        runtime.share(1000, [&](const Chunk& chunk) { return chunk.stream.compute(held, {}); });
    EXPECT_NE(thrown_by([&] { share.wait(std::chrono::milliseconds(1)); }, WEIR_STATUS_TIMEOUT),
              "");
    share.cancel();
    open = true;
    open.notify_all();
    EXPECT_NE(thrown_by([&] { share.wait(); }, WEIR_STATUS_CANCELLED), "");
    EXPECT_LT(share.info().done, 1000u);
  }
  runtime.synchronize();
}

TEST(Shares, RuntimeDestroyed_CompletesTheShareAndInvalidatesIt) {
  std::vector<int> items(200);
  weir_share* share = nullptr;
  {
    Runtime runtime("host");
    weir_share_options options = WEIR_SHARE_OPTIONS_INIT;
    options.items = items.size();
    options.payload = &items;
    options.enqueue = [](const weir_chunk* chunk, void* payload, weir_event*) {
      for (std::uint64_t i = 0; i < chunk->count; ++i) {
        ++(*static_cast<std::vector<int>*>(payload))[chunk->first + i];
      }
      return WEIR_STATUS_OK;
    };
    check(weir_share_start(runtime.handle(), &options, &share));
  }
  EXPECT_EQ(items, std::vector<int>(200, 1));
  EXPECT_EQ(weir_share_wait(share, 0), WEIR_STATUS_INVALID_ARGUMENT);
}

void start_without_function(weir_fabric* fabric) {
  Runtime runtime("host:cores=1");
  const bool lacks = weir_fabric_rank(fabric) == 1;
  weir_share_options options = WEIR_SHARE_OPTIONS_INIT;
  options.items = 2;
  options.fabric = fabric;
  if (!lacks) {
    options.enqueue = [](const weir_chunk*, void*, weir_event*) { return WEIR_STATUS_OK; };
  }
  weir_share* share = nullptr;
  EXPECT_EQ(weir_share_start(runtime.handle(), &options, &share),
            lacks ? WEIR_STATUS_INVALID_ARGUMENT : WEIR_STATUS_NETWORK_ERROR);
  const std::string why = weir_last_error();
  const char* const expected = lacks ? "function" : "rank 1 could not start";
  EXPECT_NE(why.find(expected), std::string::npos) << why;
}

TEST(Shares, RankWithoutAFunction_FailsTheStartOnAllRanks) { on_two_ranks(start_without_function); }

void start_alone(weir_fabric* fabric) {
  if (weir_fabric_rank(fabric) == 1) {
    const auto ignore = [](unsigned, const void*, std::size_t, void*) {};
    check(weir_fabric_listen(fabric, ignore, nullptr));
    return check(weir_fabric_progress(fabric, WEIR_FOREVER));
  }
  Runtime runtime("host:cores=1");
  weir_share_options options = WEIR_SHARE_OPTIONS_INIT;
  options.items = 2;
  options.fabric = fabric;
  options.enqueue = [](const weir_chunk*, void*, weir_event*) { return WEIR_STATUS_OK; };
  options.timeout_ns = 1'000'000;
  weir_share* share = nullptr;
  EXPECT_EQ(weir_share_start(runtime.handle(), &options, &share), WEIR_STATUS_TIMEOUT);
  check(weir_fabric_send(fabric, 1, nullptr, 0));
}

TEST(Shares, OtherRankNeverJoins_StartTimesOut) { on_two_ranks(start_alone); }

/// What two ranks that share two items do: one of them cancels when the other is in its kernel, and
/// says so behind that.
struct Cancelling {
  unsigned who;
  std::atomic<bool> begun{false};  ///< the kernel of the other
};

void open_gate(unsigned, const void*, std::size_t, void* gate) {
  auto& open = *static_cast<std::atomic<bool>*>(gate);
  open = true;
  open.notify_all();
}

void cancel_for_all(weir_fabric* fabric, Cancelling& plan) {
  const bool cancels = weir_fabric_rank(fabric) == plan.who;
  std::atomic<bool> open{false}, followed{false};
  check(weir_fabric_listen(fabric, open_gate, &open));
  Runtime runtime("sim:cores=1,gbps=50,latency_us=1");
  std::vector<int> items(2);
  const Buffer buffer = runtime.wrap(items);
  const Kernel held = runtime.kernel("held", [&](const Call&) {
    if (!cancels) plan.begun = true;
    plan.begun.notify_all();
    open.wait(false);
  });
  const Kernel follow = runtime.kernel("follow", [&](const Call&) { followed = true; });
  const auto enqueue = [&](const Chunk& chunk) {
    const Region part = buffer.elements<int>(chunk.first, chunk.count);
    chunk.stream.compute(held, {write(part)});
    chunk.stream.compute(follow, {readwrite(part)});
    return chunk.stream.download(part);
  };
  const Share share = runtime.share(2, enqueue, {.chunks = "static", .fabric = fabric});
  if (cancels) {
    plan.begun.wait(false);
    share.cancel();
    check(weir_fabric_send(fabric, 1 - plan.who, nullptr, 0));
    open_gate(0, nullptr, 0, &open);
  }
  EXPECT_NE(thrown_by([&] { share.wait(std::chrono::seconds(60)); }, WEIR_STATUS_CANCELLED), "");
  EXPECT_FALSE(followed);
  open_gate(0, nullptr, 0, &open);
  check(weir_fabric_barrier(fabric, WEIR_FOREVER));
  check(weir_fabric_listen(fabric, nullptr, nullptr));
}

TEST(Shares, CancelOnOneRank_CancelsOnAllRanks) {
  for (const unsigned who : {0u, 1u}) {
    Cancelling plan{.who = who};
    on_two_ranks([&](weir_fabric* fabric) { cancel_for_all(fabric, plan); });
  }
}

/// Counts the bytes that a rank sends.
class CountingLink final : public rt::test::ForwardingLink {
 public:
  CountingLink(std::unique_ptr<rt::Link> link, std::uint64_t& sent)
      : ForwardingLink(std::move(link)), sent_(sent) {}
  bool send(rt::Rank to, rt::Parts parts) noexcept override {
    const bool went = ForwardingLink::send(to, parts);
    for (const auto part : parts) sent_ += went ? part.size() : 0;
    return went;
  }

 private:
  std::uint64_t& sent_;
};

/// Starts a share over ranks with so many places each, which take one chunk each. Returns the bytes
/// that rank 0 sends.
std::uint64_t bytes_of_static_share(rt::Rank ranks, std::size_t places) {
  rt::InprocHub hub(ranks, 1);
  std::uint64_t sent = 0;
  std::vector<std::thread> threads;
  for (rt::Rank rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      std::unique_ptr<rt::Link> link = hub.link(rank);
      if (rank == 0) link = std::make_unique<CountingLink>(std::move(link), sent);
      auto transport = std::make_unique<rt::Transport>(std::move(link), rt::test::membership());
      const rt::Owned<weir_fabric> fabric(
          new weir_fabric(std::move(transport), rt::ProgressBy::thread));
      std::string domains = "sim:cores=1";
      for (std::size_t i = 1; i < places; ++i) domains += ",sim:cores=1";
      weir_runtime_options options = WEIR_RUNTIME_OPTIONS_INIT;
      options.domains = domains.c_str();
      options.fabric = fabric.get();
      const Runtime runtime(options);
      const auto work = [](const Chunk&) { return Event(); };
      const Share share =
          runtime.share(ranks * places, work, {.chunks = "static", .fabric = fabric.get()});
      share.wait();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return sent;
}

TEST(Shares, StatusBroadcasts_GrowLinearlyWithTheNumberOfPlaces) {
  const std::uint64_t few = bytes_of_static_share(2, 4), many = bytes_of_static_share(2, 16);
  EXPECT_LT(many, 6 * few);  // 12 times where all places are reported for each chunk
}

TEST(Shares, InvalidOptions_AreRefusedWithTheReason) {
  Runtime runtime("host"), other("host");
  const auto refusal = [&](weir_share_options options) -> std::string {
    weir_share* share = nullptr;
    if (weir_share_start(runtime.handle(), &options, &share) == WEIR_STATUS_OK) return "";
    return weir_last_error();
  };
  weir_share_options options = WEIR_SHARE_OPTIONS_INIT;
  options.items = 2;
  EXPECT_NE(refusal(options).find("function"), std::string::npos);
  options.enqueue = [](const weir_chunk*, void*, weir_event*) { return WEIR_STATUS_OK; };
  options.chunks = "lerned";
  EXPECT_NE(refusal(options).find("did you mean 'learned'"), std::string::npos);
  options.chunks = nullptr;
  const double work[] = {1, -1};
  options.work = work;
  EXPECT_NE(refusal(options).find("item 1"), std::string::npos);
  options.work = nullptr;
  const Place foreign = other.domain(0).place();
  weir_place* const places[] = {foreign.handle()};
  options.places = places;
  options.place_count = 1;
  EXPECT_NE(refusal(options).find("another runtime"), std::string::npos);
}

TEST(Shares, ListLengthUnlikeTheItemCount_IsRefused) {
  Runtime runtime("host");
  const std::vector<double> work(3, 1);
  const std::vector<std::size_t> offsets = {0, 4, 8};
  std::vector<std::byte> results(8);
  const auto refusal = [&](std::uint64_t items, const ShareOptions& options) {
    const auto nothing = [](const Chunk&) { return Event(); };
    return thrown_by([&] { runtime.share(items, nothing, options).wait(); },
                     WEIR_STATUS_INVALID_ARGUMENT);
  };
  EXPECT_EQ(refusal(4, {.work = work}), "the work of 3 items is given for 4");
  EXPECT_NE(refusal(4, {.results = results.data(), .result_offsets = offsets}).find("3 result"),
            std::string::npos);
  EXPECT_NE(refusal(2, {.result_offsets = offsets}).find("results is NULL"), std::string::npos);
  EXPECT_NE(refusal(2, {.results = results.data()}).find("result_offsets is NULL"),
            std::string::npos);
  EXPECT_EQ(refusal(2, {.results = results.data(), .result_offsets = offsets}), "");
}

/// Time passes only while a thread waits: a share of devices must not need any thread.
TEST(Shares, VirtualTime_GivesTheSameMakespanInEachRun) {
  std::int64_t first = 0;
  for (int run = 0; run < 3; ++run) {
    Counting counting(card(1) + "," + card(2) + "," + card(5), 1000);
    const Share share = counting.share();
    share.wait();
    if (run == 0) first = share.info().makespan_ns;
    EXPECT_EQ(share.info().makespan_ns, first);
  }
}

}  // namespace
}  // namespace weir
