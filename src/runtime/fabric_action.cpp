#include "runtime/fabric_action.hpp"

#include "runtime/runtime.hpp"
#include "stream/domain.hpp"
#include "stream/executor.hpp"

namespace weir::rt {

void FabricCompletion::complete(const Outcome& outcome) noexcept {
  if (!outcome.ok()) outcome_ = failed_outcome(outcome.status, outcome.message.c_str());
  port_.run_without_lock(*this);
}

void FabricCompletion::run() noexcept {
  complete_external(context_, event, outcome_.status, outcome_.message.c_str());
}

FabricAction::FabricAction(Stream& stream, Rows rows)
    : stream_(stream), runtime_(Runtime::of(Registry::of(stream.context()))), rows_(rows) {}

void FabricAction::add(weir_buffer* buffer, const weir_region& region, weir_access access) {
  const weir_buffer& live = weir_buffer::check(buffer);
  const Region checked = make_region(region, live.bytes(), live.name().c_str());
  const bool is_on_host = stream_.domain().memory_of(live) == kHostMemory;
  if (is_on_host && (rows_ == Rows::any || checked.contiguous())) {
    operands_.push_back({buffer, region, access});
    return;
  }
  weir_buffer& staging = take(checked.bytes(), !is_on_host);
  const weir_endpoint here{&static_cast<weir_domain&>(stream_.domain()), buffer, region};
  const weir_endpoint host{nullptr, &staging, packed(checked)};
  if ((access & WEIR_ACCESS_READ) != 0) copy(here, host, false);
  if ((access & WEIR_ACCESS_WRITE) != 0) copies_.push_back({host, here});
  operands_.push_back({&staging, weir_region_range(0, checked.bytes()), access});
}

void FabricAction::add_scratch(std::size_t bytes) {
  operands_.push_back({&take(bytes, false), weir_region_range(0, bytes), WEIR_ACCESS_WRITE});
}

weir_event FabricAction::enqueue_external(weir_external& external) {
  external.operands = operands_.data();
  external.operand_count = operands_.size();
  return stream_.external(external, true);
}

void FabricAction::listen(const weir_event& event,
                          std::unique_ptr<CompletionListener> listener) noexcept {
  stream_.context().listen(event, std::move(listener));
}

weir_event FabricAction::enqueue_copies(weir_event event) {
  for (const auto& [host, here] : copies_) event = copy(host, here, true);
  for (auto& each : taken_) listen(event, std::move(each));
  return event;
}

weir_buffer& FabricAction::take(std::size_t bytes, bool is_pinned) {
  taken_.push_back(runtime_.staging().take(stream_, bytes, is_pinned));
  return taken_.back()->buffer();
}

weir_event FabricAction::copy(const weir_endpoint& from, const weir_endpoint& to, bool with_event) {
  weir_transfer transfer = WEIR_TRANSFER_INIT;
  transfer.source = from;
  transfer.target = to;
  return stream_.transfer(transfer, with_event);
}

void check_same_fabric(const Stream& stream, const Port& port, const char* what) {
  const Runtime& runtime = Runtime::of(Registry::of(stream.context()));
  if (runtime.port() == &port) return;
  fail_argument(
      "the runtime of stream '{}' is not in the fabric of the {}: set "
      "weir_runtime_options.fabric",
      stream.name(), what);
}

}  // namespace weir::rt
