// Count and balanced(): an end is never seen early; the end is seen when it is there.
#include "pipeline/tally.hpp"

#include "parts.hpp"
#include "pipeline/permit.hpp"

namespace weir::rt::checker {
namespace {

/// Two workers hand items to each other, each of which makes another until none is left; a third
/// thread looks for the end. `completed` is what the item's work left behind.
template <int kHops>
struct PingPong : Check<PingPong<kHops>, 3> {
  Count counts[2];
  Permit source;
  sys::Atomic<int> messages[2];
  sys::Plain<int> worked{0};
  sys::Atomic<bool> ended{false};

  void before() { source.limit(1); }

  void thread(unsigned index) {
    if (index == 2) return watch();
    if (index == 0) {
      CHECK_THAT(source.try_enter());
      counts[0].create(1);
      messages[1].store(kHops, std::memory_order_release);
      source.close();
      source.leave();
    }
    work(index);
  }
  void work(unsigned index) {
    while (!ended.load(std::memory_order_relaxed)) {
      const int hops = messages[index].exchange(0, std::memory_order_acquire);
      if (hops == 0) {
        sys::yield();
        continue;
      }
      ++worked;
      if (hops > 1) {
        counts[index].create(1);
        messages[1 - index].store(hops - 1, std::memory_order_release);
      }
      counts[index].complete(1);
    }
  }
  void watch() {
    for (;;) {
      const bool over = source.drained() && balanced([this](const auto& visit) {
                          visit(counts[0]);
                          visit(counts[1]);
                        });
      if (over) break;
      sys::yield();
    }
    CHECK_THAT(static_cast<int>(worked) == kHops);  // and no race: all of it happened before
    ended.store(true, std::memory_order_relaxed);
  }
};

/// No more threads are in a stage than it lets in.
struct Stage : Check<Stage, 3> {
  Permit permit;
  sys::Plain<int> inside{0};

  void before() { permit.limit(1); }
  void thread(unsigned) {
    while (!permit.try_enter()) sys::yield();
    ++inside;
    permit.leave();
  }
  void after() { CHECK_THAT(static_cast<int>(inside) == 3 && permit.free()); }
};

}  // namespace

void check_tally(Run& run) {
  run.random<PingPong<1>>("an item");
  run.random<PingPong<4>>("items that make others");
  run.random<Stage>("a permit");
}

}  // namespace weir::rt::checker
