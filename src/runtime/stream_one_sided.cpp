#include "runtime/stream_one_sided.hpp"

#include <memory>

#include "runtime/fabric_action.hpp"

namespace weir::rt {

namespace {

/// The operation of an action, to whose event it listens.
class StreamOneSided final : public Completion, public CompletionListener {
 public:
  StreamOneSided(Context& context, weir_window& window, const StreamOneSidedRequest& request)
      : CompletionListener(context.listeners()),
        port_(window.fabric().port()),
        completion_(context, port_),
        is_put_(request.is_put),
        rank_(request.rank),
        window_(window.id(request.rank)),
        offset_(request.offset) {}

  static weir_status start(const weir_external_call* started) {
    StreamOneSided& own = *static_cast<StreamOneSided*>(started->payload);
    own.completion_.event = started->event;
    const weir_view& view = started->operands[0];
    const std::span memory(static_cast<std::byte*>(view.address), view.extent[0]);
    try {
      own.is_put_ ? own.port_.put(own.rank_, own.window_, own.offset_, memory, &own)
                  : own.port_.get(own.rank_, own.window_, own.offset_, memory, &own);
    } catch (...) {
      own.completion_.complete(current_exception_outcome(WEIR_STATUS_INTERNAL));
    }
    return WEIR_STATUS_OK;
  }

  void completed(std::int64_t, const Outcome& outcome) noexcept override {
    completion_.complete(outcome);
  }
  void completed(weir_status, const FailureRef&) noexcept override {}

 private:
  Port& port_;
  FabricCompletion completion_;
  const bool is_put_;
  const Rank rank_;
  const WindowId window_;
  const std::size_t offset_;
};

}  // namespace

weir_event enqueue_one_sided(Stream& stream, weir_window& window,
                             const StreamOneSidedRequest& request) {
  check_same_fabric(stream, window.fabric().port(), "window");
  const weir_buffer& buffer = weir_buffer::check(request.buffer);
  const Region region = make_region(request.region, buffer.bytes(), buffer.name().c_str());
  window.check_range(request.rank, request.offset, region.bytes());
  auto operation = std::make_unique<StreamOneSided>(stream.context(), window, request);
  FabricAction action(stream, FabricAction::Rows::packed);
  action.add(request.buffer, request.region, request.is_put ? WEIR_ACCESS_READ : WEIR_ACCESS_WRITE);
  return action.enqueue(request.is_put ? "put" : "get", StreamOneSided::start, operation);
}

}  // namespace weir::rt
