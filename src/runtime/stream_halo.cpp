#include "runtime/stream_halo.hpp"

#include <memory>
#include <string>

#include "runtime/fabric_action.hpp"

namespace weir::rt {

namespace {

/// The step of an action, to whose event it listens.
class StreamHalo final : public Halo::Step, public CompletionListener {
 public:
  StreamHalo(Context& context, weir_halo& halo)
      : CompletionListener(context.listeners()),
        halo_(halo.halo),
        completion_(context, halo.port) {}

  static weir_status start(const weir_external_call* started) {
    StreamHalo& own = *static_cast<StreamHalo*>(started->payload);
    own.completion_.event = started->event;
    own.is_started_ = true;
    own.halo_->exchange(own);
    return WEIR_STATUS_OK;
  }

  void done(const Outcome& outcome) noexcept override { completion_.complete(outcome); }

  void completed(weir_status status, const FailureRef& failure) noexcept override {
    if (is_started_) return;
    std::string room;
    halo_->abandon(describe(status, failure, room));
  }

 private:
  const std::shared_ptr<Halo> halo_;
  FabricCompletion completion_;
  bool is_started_ = false;
};

}  // namespace

weir_event enqueue_halo(Stream& stream, weir_halo& halo, std::span<const weir_operand> operands) {
  check_same_fabric(stream, halo.port, "halo");
  auto step = std::make_unique<StreamHalo>(stream.context(), halo);
  weir_external external = WEIR_EXTERNAL_INIT;
  external.start = StreamHalo::start;
  external.payload = step.get();
  external.operands = operands.data();
  external.operand_count = operands.size();
  external.name = "halo";
  const weir_event event = stream.external(external, true);
  stream.context().listen(event, std::move(step));
  return event;
}

}  // namespace weir::rt
