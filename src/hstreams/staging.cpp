#include "hstreams/staging.hpp"

#include <algorithm>
#include <bit>

#include "hstreams/instance.hpp"

namespace weir::hs {

namespace {

constexpr std::uint64_t kLeast = 1 << 16;  // so that one stage serves many sizes

bool is_complete(const weir::Runtime& runtime, const weir_event& event) {
  weir_event_info info = WEIR_EVENT_INFO_INIT;
  return weir_event_get_info(runtime.handle(), &event, &info) != WEIR_STATUS_OK || info.complete;
}

}  // namespace

weir_event Staging::use(const weir::Runtime& runtime, std::uint64_t bytes,
                        const std::function<weir_event(const weir_endpoint& stage)>& enqueue) {
  const std::lock_guard lock(mutex_);
  Stage& stage = free_stage(runtime, bytes);
  const Region part = stage.memory.range(0, bytes);
  stage.failed = true;
  stage.last = enqueue({nullptr, part.buffer, part.region});
  stage.failed = false;
  return stage.last;
}

Staging::Stage& Staging::free_stage(const weir::Runtime& runtime, std::uint64_t bytes) {
  const auto fits = [&](const Stage& stage) {
    return stage.bytes >= bytes && !stage.failed && is_complete(runtime, stage.last);
  };
  const auto found = std::find_if(stages_.begin(), stages_.end(), fits);
  if (found != stages_.end()) return *found;
  const std::uint64_t size = std::bit_ceil(std::max(bytes, kLeast));
  stages_.push_back({make_host_memory(runtime, size), size, WEIR_EVENT_INIT, false});
  return stages_.back();
}

}  // namespace weir::hs
