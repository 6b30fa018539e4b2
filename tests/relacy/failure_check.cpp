// FailureRef: the last one out deletes what all of them read. FailureLog: a thread that finds
// an action complete finds how it ended.
#include "core/failure.hpp"

#include "core/action.hpp"
#include "core/event.hpp"
#include "core/failure_log.hpp"
#include "parts.hpp"

namespace weir::rt::checker {
namespace {

template <int kThreads>
struct Share : Check<Share<kThreads>, kThreads> {
  FailureRef own[kThreads];

  void before() {
    const FailureRef made = FailureRef::make(WEIR_STATUS_KERNEL_ERROR, "m", "a", "o", 5);
    for (FailureRef& each : own) each = made;
  }
  void thread(unsigned index) {
    FailureRef copy = own[index];
    own[index].reset();
    CHECK_THAT(copy->root_id == 5);
    FailureRef merged;
    merged.merge(copy);
    copy.reset();
    CHECK_THAT(merged->root_id == 5);
  }
};

/// Executor::retire() and AwaitedEvents::watch(): log, close; watch, find.
struct Log : Check<Log, 3> {
  FailureLog log;
  EventState state;
  sys::Plain<Waiter*> waiters = nullptr;
  Waiter watching[2];

  void before() { state.open(7); }
  void thread(unsigned index) {
    if (index == 2) {
      Action action;
      action.event.open(7);
      action.status = WEIR_STATUS_KERNEL_ERROR;
      action.failure = FailureRef::make(WEIR_STATUS_KERNEL_ERROR, "m", "a", "o", 7);
      CHECK_THAT(!log.add(action));
      state.close(7, waiters);
      return;
    }
    if (state.watch(7, waiters, watching[index])) return;
    const FailureLog::Entry entry = log.find(7);
    CHECK_THAT(entry.status == WEIR_STATUS_KERNEL_ERROR);
    CHECK_THAT(entry.failure && entry.failure->root_id == 7);
  }
};

}  // namespace

void check_failure(Run& run) {
  // Makes the preallocated failure, which is not part of a check.
  FailureRef::make(WEIR_STATUS_OK, {}, {}, {}, 0);
  run.full<Share<2>>("two share");
  run.random<Share<3>>("three share");
  run.random<Log>("two look for the outcome");
}

}  // namespace weir::rt::checker
