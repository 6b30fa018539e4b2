#include "runtime/stream_messages.hpp"

#include <memory>
#include <string>
#include <utility>

#include "runtime/fabric_action.hpp"
#include "stream/completion_listener.hpp"

namespace weir::rt {

namespace {

/// The send or receive of an action, to whose event it listens.
class StreamMessage final : public TaggedMessages::Operation, public CompletionListener {
 public:
  StreamMessage(Context& context, weir_communicator& group, const StreamMessageRequest& request)
      : CompletionListener(context.listeners()),
        messages_(group.messages()),
        completion_(context, group.fabric().port()),
        is_send_(request.is_send) {
    peer = request.peer;
    key = {request.tag, group.next_message(request.is_send, request.peer, request.tag)};
  }

  static weir_status start(const weir_external_call* started) {
    StreamMessage& own = *static_cast<StreamMessage*>(started->payload);
    const weir_view& view = started->operands[0];
    own.memory = {.first = static_cast<std::byte*>(view.address),
                  .row_bytes = view.extent[0],
                  .rows = view.extent[1],
                  .planes = view.extent[2],
                  .row = static_cast<std::ptrdiff_t>(view.stride[0]),
                  .plane = static_cast<std::ptrdiff_t>(view.stride[1])};
    own.completion_.event = started->event;
    own.is_started_ = true;
    own.is_send_ ? own.messages_->send(own) : own.messages_->receive(own);
    return WEIR_STATUS_OK;
  }

  void done(const Outcome& outcome) noexcept override { completion_.complete(outcome); }

  void completed(weir_status status, const FailureRef& failure) noexcept override {
    if (is_started_) return;
    std::string room;
    refuse(describe(status, failure, room));
  }
  /// Tells the other rank that the message will not come, or is not received.
  void refuse(const char* why) noexcept {
    is_send_ ? messages_->refuse_send(peer, key, why) : messages_->refuse_receive(peer, key, why);
  }

 private:
  const std::shared_ptr<TaggedMessages> messages_;
  FabricCompletion completion_;
  const bool is_send_;
  bool is_started_ = false;
};

}  // namespace

weir_event enqueue_message(Stream& stream, weir_communicator& group,
                           const StreamMessageRequest& request) {
  check_same_fabric(stream, group.fabric().port(), "communicator");
  if (request.peer >= group.size()) {
    fail_argument("there is no rank {} in the group: it has the ranks 0 to {}", request.peer,
                  group.size() - 1);
  }
  auto message = std::make_unique<StreamMessage>(stream.context(), group, request);
  try {
    FabricAction action(stream, FabricAction::Rows::any);
    action.add(request.buffer, request.region,
               request.is_send ? WEIR_ACCESS_READ : WEIR_ACCESS_WRITE);
    return action.enqueue(request.is_send ? "send" : "receive", StreamMessage::start, message);
  } catch (...) {
    if (message) message->refuse(current_exception_outcome(WEIR_STATUS_INTERNAL).message.c_str());
    throw;
  }
}

}  // namespace weir::rt
