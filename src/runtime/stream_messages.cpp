#include "runtime/stream_messages.hpp"

#include <memory>
#include <string>
#include <utility>

#include "stream/completion_listener.hpp"
#include "stream/domain.hpp"
#include "stream/executor.hpp"

namespace weir::rt {

namespace {

/// The send or receive of an action, to whose event it listens.
class StreamMessage final : public TaggedMessages::Operation, public CompletionListener {
 public:
  StreamMessage(Context& context, std::shared_ptr<TaggedMessages> messages,
                const StreamMessageRequest& request, std::uint32_t number)
      : CompletionListener(context.listeners()),
        context_(context),
        messages_(std::move(messages)),
        is_send_(request.is_send) {
    peer = request.peer;
    key = {request.tag, number};
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
    own.event_ = started->event;
    own.is_started_ = true;
    own.is_send_ ? own.messages_->send(own) : own.messages_->receive(own);
    return WEIR_STATUS_OK;
  }

  void done(const Outcome& outcome) noexcept override {
    complete_external(context_, event_, outcome.status, outcome.message.c_str());
  }

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
  Context& context_;
  const std::shared_ptr<TaggedMessages> messages_;
  const bool is_send_;
  bool is_started_ = false;
  weir_event event_ = WEIR_EVENT_INIT;
};

weir_event enqueue_external(Stream& stream, std::unique_ptr<StreamMessage>& message,
                            const weir_operand& operand, bool on_host) {
  weir_external external = WEIR_EXTERNAL_INIT;
  external.start = StreamMessage::start;
  external.payload = message.get();
  external.operands = &operand;
  external.operand_count = 1;
  external.name = operand.access == WEIR_ACCESS_READ ? "send" : "receive";
  const weir_event event = stream.external(external, on_host);
  stream.context().listen(event, std::move(message));
  return event;
}

/// Through a buffer in host memory.
weir_event enqueue_staged(Stream& stream, std::unique_ptr<StreamMessage>& message,
                          const StreamMessageRequest& request) {
  Runtime& runtime = Runtime::of(Registry::of(stream.context()));
  const weir_buffer& buffer = weir_buffer::check(request.buffer);
  const Region region = make_region(request.region, buffer.bytes(), buffer.name().c_str());
  const weir_region staged = packed(region);
  auto staging = runtime.staging().take(stream, region.bytes(), true);
  const weir_endpoint here{&static_cast<weir_domain&>(stream.domain()), request.buffer,
                           request.region};
  const weir_endpoint host{nullptr, &staging->buffer(), staged};
  weir_transfer transfer = WEIR_TRANSFER_INIT;
  transfer.source = request.is_send ? here : host;
  transfer.target = request.is_send ? host : here;
  const weir_operand operand{&staging->buffer(), staged,
                             request.is_send ? WEIR_ACCESS_READ : WEIR_ACCESS_WRITE};
  if (request.is_send) stream.transfer(transfer, false);
  weir_event event = enqueue_external(stream, message, operand, true);
  if (!request.is_send) event = stream.transfer(transfer, true);
  stream.context().listen(event, std::move(staging));
  return event;
}

}  // namespace

void check_same_fabric(const Stream& stream, weir_communicator& group) {
  const Runtime& runtime = Runtime::of(Registry::of(stream.context()));
  if (runtime.port() == &group.fabric().port()) return;
  fail_argument(
      "the runtime of stream '{}' is not in the fabric of the communicator: set "
      "weir_runtime_options.fabric",
      stream.name());
}

weir_event enqueue_message(Stream& stream, weir_communicator& group,
                           const StreamMessageRequest& request) {
  check_same_fabric(stream, group);
  if (request.peer >= group.size()) {
    fail_argument("there is no rank {} in the group: it has the ranks 0 to {}", request.peer,
                  group.size() - 1);
  }
  const weir_buffer& buffer = weir_buffer::check(request.buffer);
  const bool is_on_host = stream.domain().memory_of(buffer) == kHostMemory;
  auto message = std::make_unique<StreamMessage>(
      stream.context(), group.messages(), request,
      group.next_message(request.is_send, request.peer, request.tag));
  try {
    if (!is_on_host) return enqueue_staged(stream, message, request);
    const weir_operand operand{request.buffer, request.region,
                               request.is_send ? WEIR_ACCESS_READ : WEIR_ACCESS_WRITE};
    return enqueue_external(stream, message, operand, false);
  } catch (...) {
    if (message) message->refuse(current_exception_outcome(WEIR_STATUS_INTERNAL).message.c_str());
    throw;
  }
}

}  // namespace weir::rt
