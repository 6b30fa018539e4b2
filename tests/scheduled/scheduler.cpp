#include "scheduler.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <random>
#include <semaphore>
#include <stdexcept>
#include <thread>
#include <utility>

namespace weir::schedule {

/// A thread, as the scheduler sees it.
struct Record {
  enum class State { runnable, blocked, ended };

  std::uint32_t number = 0;
  std::string name;
  State state = State::runnable;
  const void* address = nullptr;  ///< where it is blocked
  std::int64_t deadline_ns = INT64_MAX;
  std::int64_t priority = 0;
  Operation last = Operation::start;
  std::binary_semaphore baton{0};
  std::thread thread;
  std::thread* leaver = nullptr;  ///< ended as it handed on the baton: to be joined
};

namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kPointNs = 10;
constexpr std::int64_t kClockReadNs = 20;
constexpr std::int64_t kPauseNs = 500;
constexpr std::uint64_t kLonelyPauses = 64;           ///< then time jumps to the next deadline
constexpr std::uint64_t kHopelessPauses = 2'000'000;  ///< then no thread will ever go on
constexpr std::uint64_t kMishapOneIn = 64;

thread_local Record* self = nullptr;

class Scheduler {
 public:
  explicit Scheduler(const Options& options)
      : options_(options), random_(options.seed), luck_(~options.seed), replay_(options.switches) {
    // Seeds differ in how often threads switch: bugs hide at both ends.
    mean_ = std::uint64_t{1} << (random_() % 9);
    draw();
    if (options.strategy == Strategy::priorities) {
      const std::uint64_t length = std::uint64_t{1} << (3 + random_() % 14);
      for (std::uint64_t i = random_() % 6; i > 0; --i) drops_.push_back(random_() % length);
      std::sort(drops_.rbegin(), drops_.rend());
    }
  }

  Record& add(const std::string& name) {
    auto record = std::make_unique<Record>();
    record->number = static_cast<std::uint32_t>(threads_.size());
    record->name = name;
    record->priority = static_cast<std::int64_t>(random_() >> 2);
    threads_.push_back(std::move(record));
    runnable_changed_ = true;
    return *threads_.back();
  }

  void point(Operation operation) noexcept {
    step(operation);
    if (wants_switch()) hand_on(choose(false));
  }

  void pause() noexcept {
    step(Operation::pause);
    now_ns_ += kPauseNs;
    self->priority = --lowest_;
    Record* const next =
        options_.strategy == Strategy::replay && !replay_due() ? self : choose(true);
    if (next != self) {
      lonely_ = 0;
      hand_on(next);
      return;
    }
    if (++lonely_ % kLonelyPauses == 0) jump();
    if (lonely_ > kHopelessPauses) give_up("a thread polls for ever and no other can go on");
  }

  void block(const void* address, std::int64_t deadline_ns) noexcept {
    step(Operation::wait);
    self->state = Record::State::blocked;
    self->address = address;
    self->deadline_ns = deadline_ns;
    hand_on(choose(false));
  }

  void unblock(const void* address, bool all) noexcept {
    std::vector<Record*> waiting;
    for (const auto& record : threads_) {
      if (record->state == Record::State::blocked && record->address == address) {
        waiting.push_back(record.get());
      }
    }
    if (!all && waiting.size() > 1) waiting = {waiting[luck_() % waiting.size()]};
    for (Record* record : waiting) release(*record);
  }

  void end() noexcept {
    step(Operation::end);
    self->state = Record::State::ended;
    unblock(self, true);
    Record& next = *choose(false);
    note(next);
    next.leaver = &self->thread;
    next.baton.release();
  }

  bool mishap() noexcept { return luck_() % kMishapOneIn == 0; }
  std::int64_t read_clock() noexcept { return now_ns_ += kClockReadNs; }

  static void await_baton() noexcept {
    self->baton.acquire();
    if (self->leaver != nullptr) std::exchange(self->leaver, nullptr)->join();
  }

  Summary summary() { return {hash_, points_, switches_, now_ns_, std::move(recorded_)}; }
  bool all_ended() const {
    return std::all_of(threads_.begin() + 1, threads_.end(),
                       [](const auto& record) { return record->state == Record::State::ended; });
  }

  [[noreturn]] void give_up(const char* reason) noexcept {
    static const char* const operations[] = {"load", "store", "change", "pause", "wait",
                                             "wake", "lock",  "start",  "end"};
    static const char* const states[] = {"runnable", "blocked", "ended"};
    std::fprintf(stderr, "stuck after %llu points, seed %llu: %s\n",
                 static_cast<unsigned long long>(points_),
                 static_cast<unsigned long long>(options_.seed), reason);
    for (const auto& record : threads_) {
      if (record->state == Record::State::ended) continue;
      std::fprintf(stderr, "  thread %u '%s': %s, last did: %s%s\n", record->number,
                   record->name.c_str(), states[static_cast<int>(record->state)],
                   operations[static_cast<int>(record->last)], record.get() == self ? " *" : "");
    }
    std::fprintf(stderr, "replay: %s\n", options_.replay_command.c_str());
    std::fflush(stderr);
    std::_Exit(kStuck);
  }

 private:
  void step(Operation operation) noexcept {
    self->last = operation;
    now_ns_ += kPointNs;
    hash_ = (hash_ ^ (self->number * 16 + static_cast<std::uint64_t>(operation))) * 0x100000001B3u;
    if (++points_ > options_.most_points) give_up("too many points");
  }

  void draw() noexcept { until_switch_ = 1 + random_() % (2 * mean_); }
  bool replay_due() const noexcept {
    return replayed_ < replay_.size() && replay_[replayed_].point <= points_;
  }

  bool wants_switch() noexcept {
    switch (options_.strategy) {
      case Strategy::replay: return replay_due();
      case Strategy::random:
        if (--until_switch_ > 0) return false;
        draw();
        return true;
      case Strategy::priorities: break;
    }
    if (!drops_.empty() && drops_.back() <= points_) {
      drops_.pop_back();
      self->priority = --lowest_;
      runnable_changed_ = true;
    }
    return std::exchange(runnable_changed_, false);
  }

  /// Returns the thread that goes on. A thread that polls stays only when no other can.
  Record* choose(bool polls) noexcept {
    for (;;) {
      std::vector<Record*>& able = able_;
      able.clear();
      for (const auto& record : threads_) {
        if (record->state == Record::State::blocked && record->deadline_ns <= now_ns_) {
          release(*record);
        }
        if (record->state == Record::State::runnable) able.push_back(record.get());
      }
      if (polls && able.size() > 1) std::erase(able, self);
      if (!able.empty()) return pick(able);
      if (!jump()) give_up("every thread waits");
    }
  }

  Record* pick(const std::vector<Record*>& able) noexcept {
    if (options_.strategy == Strategy::replay && replay_due()) {
      const std::uint32_t wanted = replay_[replayed_++].thread;
      for (Record* record : able) {
        if (record->number == wanted) return record;
      }
    }
    if (options_.strategy == Strategy::random) return able[random_() % able.size()];
    return *std::max_element(able.begin(), able.end(), [](const Record* a, const Record* b) {
      return a->priority < b->priority;
    });
  }

  /// Lets time pass until the next deadline. Returns false when no thread has one.
  bool jump() noexcept {
    std::int64_t next = kNever;
    for (const auto& record : threads_) {
      if (record->state == Record::State::blocked) next = std::min(next, record->deadline_ns);
    }
    if (next == kNever) return false;
    now_ns_ = std::max(now_ns_, next);
    return true;
  }

  void release(Record& record) noexcept {
    record.state = Record::State::runnable;
    record.address = nullptr;
    record.deadline_ns = kNever;
    runnable_changed_ = true;
  }

  void hand_on(Record* next) noexcept {
    if (next == self) return;
    note(*next);
    next->baton.release();
    await_baton();
  }

  void note(const Record& next) noexcept {
    ++switches_;
    if (options_.record) recorded_.push_back({points_, next.number});
  }

  const Options& options_;
  std::mt19937_64 random_;  ///< of the strategy
  std::mt19937_64 luck_;    ///< of everything that a replay must repeat
  std::vector<std::unique_ptr<Record>> threads_;
  std::vector<Record*> able_;
  std::int64_t now_ns_ = 1'000'000'000;
  std::uint64_t hash_ = 0xCBF29CE484222325u;
  std::uint64_t points_ = 0, switches_ = 0, lonely_ = 0;

  std::uint64_t mean_ = 1, until_switch_ = 1;  // random
  std::vector<std::uint64_t> drops_;           // priorities
  std::int64_t lowest_ = 0;
  bool runnable_changed_ = false;
  std::vector<Switch> replay_, recorded_;
  std::size_t replayed_ = 0;
};

Scheduler* active = nullptr;

/// Whether the calling thread is one of the run.
bool on() noexcept { return self != nullptr; }

}  // namespace

Summary run(const Options& options, const std::function<void()>& body) {
  if (active != nullptr) throw std::logic_error("a run inside a run");
  Scheduler scheduler(options);
  active = &scheduler;
  self = &scheduler.add("main");
  try {
    body();
  } catch (const std::exception& error) {
    scheduler.give_up(error.what());
  }
  if (!scheduler.all_ended()) scheduler.give_up("the body returned and left threads behind");
  self = nullptr;
  active = nullptr;
  return scheduler.summary();
}

void point(Operation operation) noexcept {
  if (on()) active->point(operation);
}

void pause() noexcept {
  if (on()) active->pause();
}

bool mishap() noexcept { return on() && active->mishap(); }

std::int64_t now_ns() noexcept { return on() ? active->read_clock() : 0; }

void block(const void* address, std::int64_t deadline_ns) noexcept {
  if (on()) active->block(address, deadline_ns);
}

void unblock(const void* address, bool all) noexcept {
  if (on()) active->unblock(address, all);
}

void wake(const void* address, bool all) noexcept {
  if (!on()) return;
  active->unblock(address, all);
  active->point(Operation::wake);
}

Thread::Thread(const std::string& name, std::function<void()> body) {
  if (!on()) throw std::logic_error("thread '" + name + "' outside of schedule::run()");
  record_ = &active->add(name);
  record_->thread = std::thread([record = record_, work = std::move(body)] {
    self = record;
    Scheduler::await_baton();
    work();
    active->end();
    self = nullptr;
  });
  active->point(Operation::start);
}

void Thread::join() noexcept {
  if (record_ == nullptr) return;
  Record* const record = std::exchange(record_, nullptr);
  while (record->state != Record::State::ended) active->block(record, kNever);
}

}  // namespace weir::schedule
