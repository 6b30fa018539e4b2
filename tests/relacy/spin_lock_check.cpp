// SpinLock excludes, and what one holder wrote the next one sees.
#include "base/spin_lock.hpp"

#include "base/plain.hpp"
#include "parts.hpp"

namespace weir::rt::checker {
namespace {

template <int kThreads>
struct Count : Check<Count<kThreads>, kThreads> {
  SpinLock lock;
  sys::Plain<int> count = 0;
  sys::Plain<int> tried = 0;

  void thread(unsigned) {
    {
      const SpinGuard guard(lock);
      ++count;
    }
    if (lock.try_lock()) {
      ++tried;
      lock.unlock();
    }
  }
  void after() { CHECK_THAT(count == kThreads && tried <= kThreads); }
};

}  // namespace

void check_spin_lock(Run& run) {
  run.full<Count<2>>("two threads");
  run.random<Count<3>>("three threads");
}

}  // namespace weir::rt::checker
