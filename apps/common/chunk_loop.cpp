#include "common/chunk_loop.hpp"

#include <algorithm>

namespace weir::apps {

ChunkLoop::ChunkLoop(const weir::Runtime& runtime, const Lanes& lanes)
    : runtime_(runtime), lanes_(lanes), kernel_(runtime.kernel("chunk", [this](weir::Call& call) {
        (*code_)({call.scalar<std::size_t>(0), call.scalar<std::size_t>(1),
                  call.scalar<std::size_t>(2)});
      })) {}

void ChunkLoop::begin(std::chrono::nanoseconds timeout) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point now = Clock::now();
  const bool endless = timeout < timeout.zero() || timeout > Clock::time_point::max() - now;
  deadline_ = endless ? Clock::time_point::max() : now + timeout;
  meetings_ = 0;
  stages_.clear();
}

std::chrono::nanoseconds ChunkLoop::remaining() const {
  using Clock = std::chrono::steady_clock;
  if (deadline_ == Clock::time_point::max()) return weir::forever;
  return std::max(std::chrono::nanoseconds(0), std::chrono::nanoseconds(deadline_ - Clock::now()));
}

void ChunkLoop::count(const char* stage, std::size_t items) {
  const auto named = [&](const Stage& known) { return known.name == stage; };
  auto found = std::find_if(stages_.begin(), stages_.end(), named);
  if (found == stages_.end()) found = stages_.insert(found, {stage});
  found->items += items;
  found->most = std::max<std::uint64_t>(found->most, items);
}

void ChunkLoop::enqueue(std::size_t count) {
  const std::vector<const Lane*> lanes = lanes_.spread(parts());
  for (std::size_t i = 0; i < parts(); ++i) {
    const std::size_t first = count * i / parts(), end = count * (i + 1) / parts();
    if (first < end) lanes[i]->run(kernel_, {}, {i, first, end});
  }
}

/// What was enqueued refers to what is about to go away.
void ChunkLoop::abandon() noexcept {
  for (std::size_t i = 0; i < lanes_.size(); ++i) weir_stream_cancel(lanes_[i].stream.handle());
  weir_runtime_synchronize(runtime_.handle(), weir::forever.count());
}

void ChunkLoop::run(const char* stage, std::size_t items,
                    const std::function<void(const ChunkPart&)>& code) {
  if (remaining() == std::chrono::nanoseconds(0)) {
    throw weir::Error(WEIR_STATUS_TIMEOUT, "the time was over before stage '" + std::string(stage) +
                                               "' got another chunk");
  }
  count(stage, items);
  ++meetings_;
  code_ = &code;
  try {
    enqueue(items);
    runtime_.synchronize(remaining());
  } catch (...) {
    abandon();
    throw;
  }
}

}  // namespace weir::apps
