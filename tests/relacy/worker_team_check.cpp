// WorkerTeam: workers sleep and wake, come together as a gang, pass its barrier and part again.
#include <cstdlib>
#include <optional>
#include <stdexcept>

// The source itself, for what its threads have of their own.
#include "backend/worker_team.cpp"
#include "base/signal.hpp"
#include "parts.hpp"
#include "stream/run_queue.hpp"

namespace weir::rt::checker {
namespace {

/// A job in the queue of a place.
struct Item {
  sys::Plain<Item*> next_in_queue = nullptr;
  std::size_t priority() const { return 1; }
  weir_host_function function = nullptr;
  bool parallel = false;
  sys::Plain<int> runs = 0;
  sys::Plain<int> status = -1;
  void* payload = nullptr;
};

/// A program that opens a team of workers, gives it jobs, waits for them and closes it.
template <class Derived, int kWorkers, int kJobs>
struct Program : Check<Derived, 1, kWorkers>, PlaceFeed {
  virtual ~Program() = default;

  RunQueue<Item> queue;
  Item items[kJobs + 1];
  Signal finished;

  bool next(Worker&, Job& job) noexcept override {
    Item* const item = queue.pop();
    if (item == nullptr) return false;
    job = {};
    job.token = item;
    job.function = item->function;
    job.parallel = item->parallel;
    job.call.payload = item;
    return true;
  }
  void finish(Worker&, Job& job, Outcome outcome) noexcept override {
    auto& item = *static_cast<Item*>(job.token);
    item.status = static_cast<int>(outcome.status);
    finished.deliver();
  }
  bool has_work() const noexcept override { return queue.any(); }

  void thread(unsigned) {
    std::vector<unsigned> processors(kWorkers);
    std::optional<WorkerTeam> team;
    team.emplace(WorkerTeamOptions{"w", processors, false, 1}, *this);
    for (int i = 0; i < kJobs; ++i) {
      static_cast<Derived*>(this)->prepare(items[i], i);
      queue.push(items[i], [&] { team->wake(); });
    }
    finished.sleep(kJobs, sys::kNever);
    queue.wait_until_left();
    team.reset();
    for (int i = 0; i < kJobs; ++i) static_cast<Derived*>(this)->check_item(items[i]);
  }
};

weir_status run_serial(const weir_call* call) {
  ++static_cast<Item*>(call->payload)->runs;
  return WEIR_STATUS_OK;
}

template <int kWorkers, int kJobs>
struct Serial : Program<Serial<kWorkers, kJobs>, kWorkers, kJobs> {
  void prepare(Item& item, int) { item.function = run_serial; }
  void check_item(Item& item) { CHECK_THAT(item.runs == 1 && item.status == WEIR_STATUS_OK); }
};

/// Indices of a loop that each are to be visited once.
constexpr int kIndices = 3;
struct Loop {
  sys::Plain<int> visits[kIndices];
};

weir_status run_loop(const weir_call* call) {
  Loop loop;
  for (auto& each : loop.visits) each = 0;
  const auto body = [](std::size_t begin, std::size_t end, std::size_t, void* payload) {
    for (; begin < end; ++begin) ++static_cast<Loop*>(payload)->visits[begin];
  };
  for (int round = 1; round <= 2; ++round) {
    call->team->for_each(kIndices, 1, body, &loop);
    for (auto& each : loop.visits) CHECK_THAT(each == round);
  }
  return run_serial(call);
}

template <int kWorkers, int kParallel, int kSerial>
struct Loops : Program<Loops<kWorkers, kParallel, kSerial>, kWorkers, kParallel + kSerial> {
  void prepare(Item& item, int i) {
    item.parallel = i < kParallel;
    item.function = item.parallel ? run_loop : run_serial;
  }
  void check_item(Item& item) { CHECK_THAT(item.runs == 1 && item.status == WEIR_STATUS_OK); }
};

/// What each member wrote before a barrier, for the others to read after it.
constexpr int kMost = 3;
struct Phases {
  sys::Plain<int> written[kMost];
};

weir_status run_phases(const weir_call* call) {
  Phases phases;
  for (auto& each : phases.written) each = 0;
  const auto member = [](weir_team* team, std::size_t own, void* payload) {
    auto& written = static_cast<Phases*>(payload)->written;
    for (int round = 1; round <= 2; ++round) {
      written[own] = round;
      team->barrier();
      for (std::size_t i = 0; i < team->size(); ++i) CHECK_THAT(written[i] == round);
      team->barrier();
    }
  };
  call->team->run(member, &phases);
  for (std::size_t i = 0; i < call->team->size(); ++i) CHECK_THAT(phases.written[i] == 2);
  return run_serial(call);
}

template <int kWorkers>
struct Barriers : Program<Barriers<kWorkers>, kWorkers, 1> {
  void prepare(Item& item, int) {
    item.parallel = true;
    item.function = run_phases;
  }
  void check_item(Item& item) { CHECK_THAT(item.runs == 1 && item.status == WEIR_STATUS_OK); }
};

/// A member that throws: those in the barrier leave it, and the next function runs as if nothing
/// had been.
weir_status run_broken(const weir_call* call) {
  const auto thrower = [](weir_team* team, std::size_t own, void*) {
    if (own == 0) throw std::runtime_error("x");
    team->barrier();
    team->barrier();
  };
  bool caught = false;
  try {
    call->team->run(thrower, nullptr);
  } catch (const std::runtime_error&) {
    caught = true;
  }
  CHECK_THAT(caught);
  return run_phases(call);
}

template <int kWorkers>
struct Broken : Program<Broken<kWorkers>, kWorkers, 1> {
  void prepare(Item& item, int) {
    item.parallel = true;
    item.function = run_broken;
  }
  void check_item(Item& item) { CHECK_THAT(item.runs == 1 && item.status == WEIR_STATUS_OK); }
};

}  // namespace

void check_worker_team(Run& run) {
  set_openmp_threads(1);  // looks for an OpenMP once, outside of the checks
  sys::FiberLocals::named = &duty;
  sys::FiberLocals::named_bytes = sizeof duty;
  static_assert(sizeof duty <= 32);
  for (const char* const polls : {"0", "1"}) {
    setenv("WEIR_SPIN_US", polls, 1);
    const std::string after = std::string(", polling ") + polls + " us";
    run.random<Serial<2, 0>>(("a team without work" + after).c_str(), 4);
    run.random<Serial<2, 3>>(("three jobs for two" + after).c_str(), 4);
    run.random<Loops<2, 1, 0>>(("a loop by two" + after).c_str(), 4);
    run.random<Loops<2, 2, 1>>(("two candidates for leader, and a job" + after).c_str(), 4);
    run.random<Loops<3, 1, 0>>(("a loop by three" + after).c_str(), 4);
    run.random<Barriers<2>>(("barriers of two" + after).c_str(), 4);
    run.random<Barriers<3>>(("barriers of three" + after).c_str(), 4);
    run.random<Broken<2>>(("a member of two throws" + after).c_str(), 4);
    run.random<Broken<3>>(("a member of three throws" + after).c_str(), 4);
  }
  unsetenv("WEIR_SPIN_US");
  sys::FiberLocals::named = nullptr;
}

}  // namespace weir::rt::checker
