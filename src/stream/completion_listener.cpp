#include "stream/completion_listener.hpp"

#include <memory>

#include "base/error.hpp"
#include "base/thread_role.hpp"

namespace weir::rt {

CompletionListener::CompletionListener(sys::Atomic<std::uint64_t>& listeners) noexcept
    : listeners_(listeners) {
  deliver = run;
  listeners_.fetch_add(1);
}

CompletionListener::~CompletionListener() { listeners_.fetch_sub(1); }

void CompletionListener::run(Waiter& self, weir_status status, const FailureRef& failure) {
  const std::unique_ptr<CompletionListener> own(&static_cast<CompletionListener&>(self));
  const NoWaitScope no_wait;
  own->completed(status, failure);
}

const char* describe(weir_status status, const FailureRef& failure, std::string& room) noexcept {
  if (!failure) return status_name(status);
  try {
    room = failure->describe(status == WEIR_STATUS_POISONED);
    return room.c_str();
  } catch (...) {
    return failure->message.c_str();
  }
}

}  // namespace weir::rt
