// Progress: a thread that sees that actions are over sees what they did and whether they failed.
#include "core/progress.hpp"

#include "base/plain.hpp"
#include "parts.hpp"

namespace weir::rt::checker {
namespace {

struct Settle : Check<Settle, 2> {
  Progress progress;
  sys::Plain<int> effects[2];

  Settle() { effects[0] = effects[1] = 0; }
  void thread(unsigned index) {
    if (index == 0) {
      effects[0] = 1;
      progress.complete();
      effects[1] = 1;
      progress.set_failed(true);
      progress.complete();
      return;
    }
    const std::uint64_t completed = progress.completed();
    for (std::uint64_t i = 0; i < completed; ++i) CHECK_THAT(effects[i] == 1);
    CHECK_THAT(!progress.completed_without_failure(2));
  }
};

}  // namespace

void check_progress(Run& run) {
  run.full<Settle>("two actions");
  run.random<Settle>("two actions at random");
}

}  // namespace weir::rt::checker
