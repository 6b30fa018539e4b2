#include "backends/rank/rank_backend.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <future>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "backends/rank/rank_device.hpp"
#include "backends/rank/rank_wire.hpp"
#include "fleet.hpp"
#include "ranks.hpp"
#include "runtime/fabric.hpp"
#include "scripted_feed.hpp"
#include "surroundings.hpp"
#include "thrown.hpp"

namespace weir {
namespace {

using Numbers = std::vector<std::int64_t>;

void add_kernels(const Runtime& runtime) {
  runtime.kernel("add", [](const Call& call) {
    for (std::int64_t& x : call.span<std::int64_t>(0)) x += call.scalar<std::int64_t>(0);
  });
}

Runtime open(const Fleet& fleet, const std::string& domains) {
  weir_runtime_options options = WEIR_RUNTIME_OPTIONS_INIT;
  options.domains = domains.c_str();
  options.fabric = fleet.fabric();
  return Runtime(options);
}

void expect_in(const std::string& message, std::initializer_list<const char*> words) {
  for (const char* const word : words) {
    EXPECT_NE(message.find(word), std::string::npos) << message << "\nlacks: " << word;
  }
}

// ---- Specifications ----------------------------------------------------------------------------

TEST(RankDomains, RankWildcard_GivesOneDomainPerOtherRank) {
  const Fleet fleet(4);
  const Runtime runtime = open(fleet, "host:cores=1,rank:*/host:cores=1");
  ASSERT_EQ(runtime.domain_count(), 4u);
  EXPECT_EQ(runtime.domain(1).name(), "rank:1");
  EXPECT_EQ(runtime.domain(3).name(), "rank:3");
  const auto info = runtime.domain(3).info();
  EXPECT_STREQ(info.backend, "rank");
  EXPECT_EQ(info.cores, 1u);
  expect_in(info.description, {"rank 3: ", "(host)"});
}

TEST(RankDomains, TwoDomainsOfOneRank_GetDistinctNames) {
  const Fleet fleet(2);
  const Runtime runtime = open(fleet, "rank:1/sim:cores=1,gbps=3,memory=1MiB,rank:1/host:cores=1");
  ASSERT_EQ(runtime.domain_count(), 2u);
  EXPECT_EQ(runtime.domain(0).info().memory_bytes, 1u << 20);
  EXPECT_EQ(runtime.domain(1).name(), "rank:1#1");
}

TEST(RankDomains, InvalidRankDomains_AreRejectedWithReason) {
  const Fleet fleet(4);
  const auto refusal = [&](const char* domains, weir_status status) {
    return thrown_by([&] { open(fleet, domains); }, status);
  };
  expect_in(refusal("rank:9", WEIR_STATUS_NOT_FOUND), {"'rank:9'", "no rank 9", "has 4"});
  expect_in(refusal("rank:0", WEIR_STATUS_INVALID_ARGUMENT), {"rank 0 is this process", "'host'"});
  expect_in(refusal("rank", WEIR_STATUS_INVALID_ARGUMENT), {"does not say which rank"});
  expect_in(refusal("rank:99999999999", WEIR_STATUS_INVALID_ARGUMENT), {"not the number"});
  expect_in(refusal("rank:one", WEIR_STATUS_INVALID_ARGUMENT), {"'one' is not a setting"});
  expect_in(refusal("rank:1/nosuch", WEIR_STATUS_NOT_FOUND), {"no backend 'nosuch'"});
  expect_in(refusal("rank:1/sim:clock=virtual", WEIR_STATUS_UNSUPPORTED), {"virtual time"});
  expect_in(refusal("rank:1/rank:1", WEIR_STATUS_UNAVAILABLE), {"in no fabric"});
}

weir_status open_where_callers_progress(weir_fabric* fabric, void*) {
  if (weir_fabric_rank(fabric) != 0) return WEIR_STATUS_OK;
  weir_runtime_options options = WEIR_RUNTIME_OPTIONS_INIT;
  options.domains = "host:cores=1,rank:1/host:cores=1";
  options.fabric = fabric;
  expect_in(thrown_by([&] { const Runtime runtime(options); }, WEIR_STATUS_UNSUPPORTED),
            {"'rank:1/host:cores=1'", "'caller'", "'hybrid' or 'thread'"});
  return WEIR_STATUS_OK;
}

TEST(RankDomains, FabricWithCallerProgress_IsUnsupported) {
  weir_fabric_options options = WEIR_FABRIC_OPTIONS_INIT;
  options.progress = "caller";
  EXPECT_EQ(weir_fabric_simulate(&options, 2, open_where_callers_progress, nullptr), WEIR_STATUS_OK)
      << weir_last_error();
}

TEST(RankDomains, NoOtherRankOrNoFabric_IsUnavailable) {
  const Fleet alone(1);
  expect_in(thrown_by([&] { open(alone, "rank:*"); }, WEIR_STATUS_UNAVAILABLE),
            {"rank 0 is the only one", "mpirun -n 2"});
  expect_in(thrown_by([] { Runtime("rank:1"); }, WEIR_STATUS_UNAVAILABLE),
            {"in no fabric", "weir_runtime_options.fabric"});
}

TEST(RankDomains, ServeOnRankZeroOrWithoutFabric_ServesNothing) {
  const Fleet alone(1);
  EXPECT_FALSE(open(alone, "host").serve());
  EXPECT_FALSE(Runtime("host").serve());
  EXPECT_NE(weir_rank_serve(nullptr, nullptr), WEIR_STATUS_OK);
}

// ---- Work --------------------------------------------------------------------------------------

TEST(RankDomains, TransferBetweenTwoRanks_CopiesStridedRows) {
  const Fleet fleet(3, add_kernels);
  const Runtime runtime = open(fleet, "rank:*/host:cores=1");
  Numbers numbers(100'000);
  std::iota(numbers.begin(), numbers.end(), 0);
  const Buffer x = runtime.wrap(numbers);
  const Domain one = runtime.domain(0), two = runtime.domain(1);
  const Place here = one.place(), there = two.place();
  const Stream first = here.stream(), second = there.stream();
  const Kernel add = runtime.kernel("add", [](const Call&) { FAIL() << "it runs on rank 0"; });
  first.upload(x.all());
  first.compute(add, {readwrite(x.all())}, {1000});
  // Every other row of a hundred numbers, and then the rest in one piece.
  const Event rows = first.transfer({one.handle(), x.handle(), {0, {800, 500, 1}, {1600, 0}}},
                                    {two.handle(), x.handle(), {0, {800, 500, 1}, {1600, 0}}});
  second.wait(rows);
  second.compute(add, {readwrite(x.all())}, {7});
  second.download(x.all());
  runtime.synchronize();
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const bool copied = i / 100 % 2 == 0;
    ASSERT_EQ(numbers[i], copied ? static_cast<std::int64_t>(i) + 1007 : 7) << i;
  }
  EXPECT_EQ(runtime.stats().bytes_d2d, 400'000u);
}

TEST(RankDomains, KernelMissingOnRank_FailsItsActionAndIsNamed) {
  const Fleet fleet(3, add_kernels);
  const Runtime runtime = open(fleet, "rank:2/host:cores=1");
  const Kernel other = runtime.kernel("adds", [](const Call&) {});
  const Kernel add = runtime.kernel("add", [](const Call&) {});
  const Place place = runtime.domain(0).place();
  const Stream stream = place.stream();
  Numbers numbers(10);
  const Buffer x = runtime.wrap(numbers);
  stream.compute(other, {readwrite(x.all())});
  expect_in(thrown_by([&] { stream.synchronize(); }, WEIR_STATUS_NOT_FOUND),
            {"rank 2", "no kernel", "'adds'", "'add'"});
  stream.upload(x.all());  // it goes on
  stream.compute(add, {readwrite(x.all())}, {5});
  stream.download(x.all());
  stream.synchronize();
  EXPECT_EQ(numbers, Numbers(10, 5));
}

TEST(RankDomains, KernelMissingOnRank_ServeCallOfRankZeroNamesIt) {
  const Fleet fleet(3, add_kernels);
  const Runtime runtime = open(fleet, "host:cores=1,rank:*/host:cores=1,rank:1/host:cores=1");
  runtime.kernel("add", [](const Call&) {});
  EXPECT_FALSE(runtime.serve());
  runtime.kernel("adds", [](const Call&) {});
  expect_in(thrown_by([&] { runtime.serve(); }, WEIR_STATUS_NOT_FOUND),
            {"rank 1", "no kernel", "'adds'", "'add'"});
}

TEST(RankDomains, KernelMissingOnRankThatSkipsKernels_StillFailsItsAction) {
  const Fleet fleet(2, add_kernels);
  const Runtime runtime = open(fleet, "rank:1/sim:cores=1,kernels=skip,gflops=1");
  const Kernel other = runtime.kernel("adds", [](const Call&) {});
  const Place place = runtime.domain(0).place();
  const Stream stream = place.stream();
  stream.compute(other, {});
  expect_in(thrown_by([&] { stream.synchronize(); }, WEIR_STATUS_NOT_FOUND),
            {"rank 1", "no kernel", "'adds'"});
}

TEST(RankDomains, SuccessiveRuntimes_AreServedByTheSameRank) {
  Fleet fleet(2, add_kernels);
  for (int round = 1; round <= 5; ++round) {
    const Runtime runtime = open(fleet, "rank:1/host:cores=1");
    const Kernel add = runtime.kernel("add", [](const Call&) {});
    Numbers numbers(10);
    const Buffer x = runtime.wrap(numbers);
    const Place place = runtime.domain(0).place();
    const Stream stream = place.stream();
    for (int i = 0; i < 1000; ++i) stream.compute(add, {readwrite(x.all())}, {round});
    stream.download(x.all());
    stream.synchronize();
    EXPECT_EQ(numbers, Numbers(10, 1000 * round));
  }
  EXPECT_EQ(fleet.end(), "");
}

TEST(RankDomains, RuntimesOpenedAndClosedConcurrently_Succeed) {
  Fleet fleet(2, add_kernels);
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 30; ++round) open(fleet, "rank:1/host:cores=1");
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(fleet.end(), "");
}

/// Whether an event is complete within some microseconds, fewer than a thread looks before it
/// sleeps.
bool over_soon(const Event& event) {
  try {
    event.wait(std::chrono::microseconds(20));
    return true;
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), WEIR_STATUS_TIMEOUT) << error.what();
    return false;
  }
}

/// Brief jobs say together that they are over, but none waits for one that goes on.
TEST(RankDomains, BlockedKernel_DoesNotDelayCompletionOfEarlierJobs) {
  static std::atomic<int> gate;
  gate = 0;  // tests may be repeated
  const Fleet fleet(2, [](const Runtime& runtime) {
    runtime.kernel("tick", [](const Call& call) {
      const auto round = call.scalar<std::int64_t>(0);
      while (gate < round) std::this_thread::yield();
    });
  });
  const Runtime runtime = open(fleet, "rank:1/host:cores=1");
  const Kernel tick = runtime.kernel("tick", [](const Call&) {});
  const Place place = runtime.domain(0).place();
  const Stream stream = place.stream();
  for (std::int64_t round = 1; round <= 20; ++round) {
    for (int i = 0; i < 200; ++i) stream.compute(tick, {}, {std::int64_t{0}});
    const Event last = stream.compute(tick, {}, {std::int64_t{0}});
    const Event held = stream.compute(tick, {}, {round});
    if (round % 3 == 0) {
      last.wait(std::chrono::seconds(100));
    } else if (round % 3 == 1) {
      while (!last.complete()) std::this_thread::yield();
    } else {
      while (!over_soon(last)) {
      }
    }
    EXPECT_FALSE(held.complete());
    gate = static_cast<int>(round);
    stream.synchronize();
  }
}

/// What is enqueued by threads that do not wait is done as well.
TEST(RankDomains, EventOnlyPolled_DownloadStillCompletes) {
  const Fleet fleet(2, add_kernels);
  const Runtime runtime = open(fleet, "rank:1/host:cores=1");
  const Kernel add = runtime.kernel("add", [](const Call&) {});
  Numbers numbers(10);
  const Buffer x = runtime.wrap(numbers);
  const Place place = runtime.domain(0).place();
  const Stream stream = place.stream();
  for (int round = 0; round < 20; ++round) {
    stream.compute(add, {readwrite(x.all())}, {1}).wait();
    const Event over = stream.download(x.all());
    while (!over.complete()) std::this_thread::yield();
    ASSERT_EQ(numbers.back(), round + 1);
  }
}

/// The sum that rank 1 computes for a runtime.
std::int64_t sum_of(const Runtime& runtime) {
  const Kernel add = runtime.kernel("add", [](const Call&) {});
  Numbers numbers(10);
  const Buffer x = runtime.wrap(numbers);
  const Place place = runtime.domain(0).place();
  const Stream stream = place.stream();
  stream.compute(add, {readwrite(x.all())}, {3});
  stream.download(x.all());
  stream.synchronize();
  return std::accumulate(numbers.begin(), numbers.end(), std::int64_t{0});
}

TEST(RankDomains, FabricClosedEarly_OpenRuntimeKeepsWorking) {
  on_two_ranks([](weir_fabric* fabric) {
    weir_runtime_options options = WEIR_RUNTIME_OPTIONS_INIT;
    options.domains = "rank:*/host:cores=1";
    options.fabric = fabric;
    const Runtime runtime(options);
    if (weir_fabric_rank(fabric) > 0) {
      add_kernels(runtime);
      EXPECT_TRUE(runtime.serve());
      return;
    }
    weir_fabric_close(fabric);
    EXPECT_EQ(sum_of(runtime), 30);
    expect_in(thrown_by([&] { Runtime another(options); }, WEIR_STATUS_INVALID_ARGUMENT),
              {"the fabric of rank 0 has been closed"});
    weir_fabric_close(fabric);
    EXPECT_STREQ(weir_last_error(), "the fabric of rank 0 has been closed");
  });
}

TEST(RankDomains, RuntimeOutlivesSimulatedFabric_StillReportsItsDomains) {
  std::optional<Runtime> left;
  on_two_ranks([&](weir_fabric* fabric) {
    weir_runtime_options options = WEIR_RUNTIME_OPTIONS_INIT;
    options.domains = "rank:*/host:cores=1";
    options.fabric = fabric;
    Runtime runtime(options);
    if (!runtime.serve()) left = std::move(runtime);
  });
  EXPECT_EQ(left->domain_count(), 1u);
}

TEST(RankDomains, QueueOverHostAndRanks_RunsTasksOnEachPlace) {
  const Fleet fleet(3, add_kernels);
  const Runtime runtime = open(fleet, "host:cores=1,rank:*/host:cores=1");
  const Kernel add = runtime.kernel("add", [](const Call& call) {
    for (std::int64_t& x : call.span<std::int64_t>(0)) x += call.scalar<std::int64_t>(0);
  });
  Numbers numbers(64);
  const Buffer x = runtime.wrap(numbers);
  const Queue queue = runtime.queue("round-robin");
  for (int round = 0; round < 10; ++round) {
    for (std::size_t i = 0; i < 8; ++i) queue.submit(add, {readwrite(x.range(64 * i, 64))}, {1});
  }
  queue.synchronize();
  EXPECT_EQ(numbers, Numbers(64, 10));
  for (const weir_queue_share& share : queue.shares()) EXPECT_GT(share.tasks, 0u);
}

// ---- Losses ------------------------------------------------------------------------------------

/// A message on the channel of ranks that says nothing.
void send_nonsense(rt::Port& port, rt::Rank to) {
  const std::byte nonsense[] = {std::byte{250}, std::byte{1}};
  port.send(to, rt::Channel::rank, nonsense);
}

struct Holding {
  std::atomic<bool> begun{false}, over{false};
};
Holding holding;

void add_held(const Runtime& runtime) {
  add_kernels(runtime);
  runtime.kernel("held", [](const Call&) {
    holding.begun = true;
    holding.begun.notify_all();
    holding.over.wait(false);
  });
}

std::atomic<int> called_back{0};

void add_following(const Runtime& runtime) {
  runtime.kernel("following", [](const Call& call) {
    for (int seen = called_back; seen < call.scalar<std::int64_t>(0); seen = called_back) {
      called_back.wait(seen);
    }
  });
}

TEST(RankDomains, CallbackThatWaitsForAnotherPlace_ProgressContinues) {
  constexpr std::chrono::seconds kPatience{10};
  const EnvironmentVariable spin("WEIR_SPIN_US", "0");  // threads of places sleep at once
  called_back = 0;
  std::array<std::promise<void>, 20> told;
  std::array<std::promise<bool>, 20> seen;
  const Fleet fleet(2, add_following);
  const Runtime runtime = open(fleet, "rank:1/host:cores=2");
  const Kernel following = runtime.kernel("following", [](const Call&) {});
  const Place one = runtime.domain(0).place(1), two = runtime.domain(0).place(1);
  const Stream first = one.stream(), second = two.stream();
  for (std::size_t round = 0; round < told.size(); ++round) {
    first.compute(following, {}, {round}).on_complete([&, round](weir_status, const char*) {
      second.compute(following, {}, {round + 1}).on_complete([&, round](weir_status, const char*) {
        told[round].set_value();
      });
      ++called_back;
      called_back.notify_all();
      seen[round].set_value(told[round].get_future().wait_for(kPatience) ==
                            std::future_status::ready);
    });
    ASSERT_TRUE(seen[round].get_future().get());  // which moves no fabric on
  }
  runtime.synchronize();
}

/// Loses rank 1 while it runs an action, and looks what becomes of the others.
void lose_rank_1(const Fleet& fleet) {
  holding.begun = holding.over = false;
  const Runtime runtime = open(fleet, "rank:*/host:cores=1");
  const Kernel add = runtime.kernel("add", [](const Call&) {});
  const Kernel held = runtime.kernel("held", [](const Call&) {});
  const Place lost = runtime.domain(0).place(), kept = runtime.domain(1).place();
  const Stream broken = lost.stream({.name = "broken"}), sound = kept.stream();
  Numbers theirs(10), mine(10);
  const Buffer x = runtime.wrap(theirs), y = runtime.wrap(mine);
  const Event first = broken.compute(held, {readwrite(x.all())});
  const Event second = broken.compute(add, {readwrite(x.all())}, {1});
  sound.compute(add, {readwrite(y.all())}, {1});
  holding.begun.wait(false);
  send_nonsense(weir_fabric::check(fleet.fabric()).port(), 1);  // ends its service
  expect_in(thrown_by([&] { first.wait(); }, WEIR_STATUS_NETWORK_ERROR), {"'held'", "rank 1"});
  expect_in(thrown_by([&] { second.wait(); }, WEIR_STATUS_NETWORK_ERROR), {"'add'", "rank 1"});
  holding.over = true;
  holding.over.notify_all();
  EXPECT_NE(thrown_by([&] { broken.synchronize(); }, WEIR_STATUS_NETWORK_ERROR), "");
  // What was there only is lost; others go on.
  broken.download(x.all());
  expect_in(thrown_by([&] { broken.synchronize(); }, WEIR_STATUS_NETWORK_ERROR), {"rank 1"});
  sound.compute(add, {readwrite(y.all())}, {1});
  sound.download(y.all());
  sound.synchronize();
  EXPECT_EQ(mine, Numbers(10, 2));
  expect_in(thrown_by([&] { open(fleet, "rank:1"); }, WEIR_STATUS_NETWORK_ERROR), {"rank 1"});
}

TEST(RankDomains, LostRank_FailsItsActionsAndOtherRanksContinue) {
  Fleet fleet(3, add_held);
  lose_rank_1(fleet);
  expect_in(fleet.end(), {"rank 1", "cannot be read"});
}

TEST(RankDomains, TruncatedJobMessage_EndsServiceOfTheRankWithReason) {
  Fleet fleet(2);
  {
    const Runtime runtime = open(fleet, "rank:1/host:cores=1");
    const Place place = runtime.domain(0).place();
    constexpr std::uint32_t kPlace = 2;  // its number, after that of the device
    const rt::RankCopyEnd far{.remote = true, .region = {.row = 8}};
    rt::WireWriter message(rt::RankMessageKind::jobs);
    message.put(kPlace);
    message.put(std::uint64_t{1});
    message.put(static_cast<std::uint8_t>(rt::kJobCopies));
    message.put(std::uint8_t{0});
    message.put(std::uint16_t{0});
    message.put(far);
    message.put(far);
    message.put(std::uint64_t{2});  // and no more
    weir_fabric::check(fleet.fabric()).port().send(1, rt::Channel::rank, message.bytes());
  }
  expect_in(fleet.end(), {"rank 1", "it is cut short"});
}

/// Answers what a device asks for first, and nothing else.
class Opening final : public rt::Listener {
 public:
  explicit Opening(rt::Port& port) : port_(port) {}
  void on_message(rt::Rank, std::span<const std::byte> message) noexcept override {
    rt::WireReader reader(message);
    const auto word = reader.get<rt::RankMessageKind>();
    const bool opens = word == rt::RankMessageKind::open_device,
               greets = word == rt::RankMessageKind::hello;
    if (!opens && !greets && word != rt::RankMessageKind::open_place) return;
    rt::WireWriter answer(rt::RankMessageKind::answer);
    answer.put(reader.get<std::uint64_t>());
    answer.put(rt::Outcome{});
    if (opens) answer.put(rt::RankDeviceFacts{});
    if (greets) answer.put(std::int64_t{0});
    port_.post(0, rt::Channel::rank, answer.bytes());
    opened = !opens && !greets;
  }
  void on_rank_lost(rt::Rank, const std::string&) noexcept override {}

  std::atomic<bool> opened{false};

 private:
  rt::Port& port_;
};

/// Does not care how copies end.
class Unmoved final : public rt::CopySink {
 public:
  void copied(void*, rt::Outcome, std::int64_t, std::int64_t) noexcept override {}
};

/// Keeps how copies end.
class EndOfCopy final : public rt::CopySink {
 public:
  void copied(void*, rt::Outcome outcome, std::int64_t, std::int64_t) noexcept override {
    why = std::move(outcome.message);
    over = true;
  }

  std::string why;
  std::atomic<bool> over{false};
};

/// Rank 2 speaks of a copy that rank 1 was asked for.
TEST(RankDomains, CopyReplyFromWrongRank_LosesThatRankAndNotTheCopy) {
  constexpr std::int64_t kLong = 100'000'000'000;
  rt::InprocHub hub(3, 0);
  std::atomic<bool> loss_seen{false};
  const auto asked = [&](rt::Port& port) {
    Opening opening(port);
    port.listen(rt::Channel::rank, &opening);
    EXPECT_TRUE(port.barrier(kLong).ok());
    while (!loss_seen) std::this_thread::yield();
    port.listen(rt::Channel::rank, nullptr);
  };
  const auto other = [&](rt::Port& port) {
    EXPECT_TRUE(port.barrier(kLong).ok());
    rt::WireWriter message(rt::RankMessageKind::lent);
    message.put(std::uint64_t{1});
    message.put(rt::Outcome{});
    message.put(rt::WindowId{0});
    port.post(0, rt::Channel::rank, message.bytes());
  };
  const auto asks = [&](rt::Port& port) {
    EndOfCopy end;
    std::array<std::byte, 64> here{};
    rt::RankDevice device("rank:1", rt::RankClient::of(port), 1, "host");
    const rt::Memory memory = device.allocate(here.size());
    const rt::Region region{.offset = 0, .row = here.size()};
    device.copy({.source = {&device, static_cast<std::byte*>(memory.address), region},
                 .target = {nullptr, here.data(), region},
                 .sink = &end,
                 .token = nullptr});
    EXPECT_TRUE(port.barrier(kLong).ok());
    EXPECT_TRUE(port.wait_until([&] { return !port.alive(2); }, kLong, "the end of rank 2"));
    const std::string why = port.why_lost(2);
    EXPECT_NE(why.find("a copy of another rank"), std::string::npos) << why;
    EXPECT_FALSE(end.over) << end.why;
    loss_seen = true;
    EXPECT_TRUE(port.wait_until([&] { return end.over.load(); }, kLong, "the end of rank 1"));
    EXPECT_NE(end.why.find("rank 1"), std::string::npos) << end.why;
  };
  rt::test::on_ranks(hub, rt::ProgressBy::caller, {asks, asked, other});
}

TEST(RankDomains, FullTransport_MemoryCallsJobsAndCopiesDoNotBlock) {
  constexpr std::int64_t kLong = 100'000'000'000;
  rt::InprocHub hub(2, 0);
  std::atomic<bool> told{false};
  const auto other = [&](rt::Port& port) {
    Opening opening(port);
    port.listen(rt::Channel::rank, &opening);
    EXPECT_TRUE(port.wait_until([&] { return opening.opened.load(); }, kLong, "the place"));
    const std::int64_t deadline = rt::sys::deadline_after(kLong / 10);
    while (!told && rt::sys::now_ns() < deadline) std::this_thread::yield();
    EXPECT_TRUE(told) << "rank 0 waits for room: with a lock of its caller, or a deadline";
    EXPECT_TRUE(port.barrier(kLong).ok());
    port.listen(rt::Channel::rank, nullptr);
  };
  const auto asks = [&](rt::Port& port) {
    Unmoved sink;
    std::array<std::byte, 64> here{};
    rt::RankDevice device("rank:1", rt::RankClient::of(port), 1, "host");
    rt::ScriptedFeed feed;
    auto place = device.open_place({.name = "place", .cores = {}}, feed);
    const std::vector<std::byte> much(4u << 20);  // more than is on the way to a rank
    port.post(1, rt::Channel::user, much);
    rt::Memory memory = device.allocate(here.size());
    const rt::Region region{.offset = 0, .row = here.size()};
    device.copy({.source = {&device, static_cast<std::byte*>(memory.address), region},
                 .target = {nullptr, here.data(), region},
                 .sink = &sink,
                 .token = nullptr});
    device.release(memory);
    rt::Job job;
    job.kernel = job.call.name = "any";
    job.kernel_number = 1;
    feed.add(job);
    place->wake();
    while (feed.has_work()) std::this_thread::yield();
    place.reset();  // it has sent the job, or waits for room
    told = true;
    EXPECT_TRUE(port.barrier(kLong).ok());
  };
  rt::test::on_ranks(hub, rt::ProgressBy::caller, {asks, other});
}

TEST(RankWire, MessageTruncatedAtAnyByte_ReadThrows) {
  rt::WireWriter message(rt::RankMessageKind::copied);
  message.put(std::uint64_t{7});
  message.put(rt::Outcome{WEIR_STATUS_KERNEL_ERROR, "broken"});
  message.put(rt::Region{.offset = 3, .row = 8, .row_stride = 16, .rows = 2});
  for (std::size_t size = 0; size <= message.bytes().size(); ++size) {
    rt::WireReader reader(message.bytes().first(size));
    const auto read = [&] {
      reader.get<rt::RankMessageKind>();
      EXPECT_EQ(reader.get<std::uint64_t>(), 7u);
      EXPECT_EQ(reader.outcome().message, "broken");
      EXPECT_EQ(reader.region().row_stride, 16u);
    };
    if (size < message.bytes().size()) {
      EXPECT_THROW(read(), rt::Error) << size;
    } else {
      EXPECT_NO_THROW(read());
      EXPECT_TRUE(reader.empty());
    }
  }
}

}  // namespace
}  // namespace weir
