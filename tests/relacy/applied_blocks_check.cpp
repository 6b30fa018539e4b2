// AppliedBlocks: a thread that sleeps on the port until blocks are applied is woken.
#include "conveyor/applied_blocks.hpp"

#include "base/plain.hpp"
#include "parts.hpp"

namespace weir::rt::checker {
namespace {

/// Sleeping as in PortProgress: a sleeper counts itself, checks, makes a pass without effect if it
/// gets the progress lock, and sleeps on the bell; another thread changes something under the lock,
/// unlocks, and looks for sleepers.
struct Port {
  sys::Atomic<bool> held{false};
  sys::Atomic<std::uint32_t> sleepers{0}, bell{0};

  bool try_lock() {
    bool free = false;
    return !held.load() && held.compare_exchange_strong(free, true);
  }
  void unlock() { held.store(false); }
  void notify() {
    if (sleepers.load() == 0) return;
    bell.fetch_add(1);
    sys::wake_all(bell);
  }
  template <class Done>
  void sleep_until(Done&& done) {
    sleepers.fetch_add(1);
    for (;;) {
      const std::uint32_t seen = bell.load();
      if (done()) break;
      if (try_lock()) unlock();
      sys::wait(bell, seen);
    }
    sleepers.fetch_sub(1);
  }
};

template <int kWaiting, bool fails>
struct Acknowledged : Check<Acknowledged<kWaiting, fails>, kWaiting + 1> {
  AppliedBlocks blocks;
  Port port;
  sys::Plain<int> reason = 0;

  void thread(unsigned index) {
    if (index < kWaiting) {
      port.sleep_until([this] { return blocks.is_complete(1); });
      CHECK_THAT(!blocks.failed() || reason == 1);
      CHECK_THAT(fails || blocks.count() == 1);
      return;
    }
    while (!port.try_lock()) sys::yield();
    if (fails) {
      reason = 1;
      blocks.fail();
    } else {
      blocks.acknowledge(1);
    }
    port.unlock();
    port.notify();
  }
};

}  // namespace

void check_applied_blocks(Run& run) {
  run.bounded<Acknowledged<1, false>>("a block is applied", 4);
  run.bounded<Acknowledged<1, true>>("the peer fails", 4);
  run.random<Acknowledged<2, false>>("two wait for a block");
}

}  // namespace weir::rt::checker
