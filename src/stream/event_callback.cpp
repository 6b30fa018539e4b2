#include "stream/event_callback.hpp"

#include <exception>
#include <memory>
#include <string>

#include "base/error.hpp"
#include "base/log.hpp"
#include "stream/completion_listener.hpp"
#include "stream/context.hpp"

namespace weir::rt {

namespace {

class Callback final : public CompletionListener {
 public:
  Callback(Context& context, weir_event_callback function, void* payload) noexcept
      : CompletionListener(context.listeners()), function_(function), payload_(payload) {}

  void completed(weir_status status, const FailureRef& failure) noexcept override {
    std::string room;
    const char* message = "";
    if (failure) {
      failure->mark_reported();
      message = describe(status, failure, room);
    }
    try {
      function_(status, message, payload_);
    } catch (const std::exception& error) {
      log::warning("a callback threw: {}", error.what());
    } catch (...) {
      log::warning("a callback threw");
    }
  }

 private:
  const weir_event_callback function_;
  void* const payload_;
};

}  // namespace

void on_complete(Context& context, const weir_event& event, weir_event_callback callback,
                 void* payload) {
  if (callback == nullptr) fail_argument("the callback is NULL");
  context.check_event(event);
  context.listen(event, std::make_unique<Callback>(context, callback, payload));
}

}  // namespace weir::rt
