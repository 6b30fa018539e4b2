// A place of a queue, with the stream that runs its tasks.
#pragma once

#include <cstdint>
#include <string>

#include <weir/queue.h>

#include "core/buffer.hpp"
#include "runtime/domain.hpp"
#include "runtime/place.hpp"
#include "runtime/stream.hpp"

namespace weir::rt {

struct Lane {
  std::uint32_t index = 0;
  weir_place* place = nullptr;
  weir_stream* stream = nullptr;
  std::string kind;  ///< of places on which tasks take as long
  double weight = 1;

  // What it has that is not over.
  std::uint64_t tasks = 0;
  std::uint64_t unmeasured = 0;   ///< of them, those of which nothing is known
  std::int64_t backlog_ns = 0;    ///< together, on one core; estimated
  bool full = false;              ///< has enough to do until half of it is done
  std::int64_t link_free_ns = 0;  ///< when its transfers so far are expected to be over

  weir_queue_share share{};

  Domain& domain() const noexcept { return place->domain(); }
  /// How long a copy to its memory takes on a link that is free.
  std::int64_t copy_ns(std::uint64_t bytes, double usual_gbps) const noexcept {
    const DeviceInfo& info = domain().info();
    const double gbps = info.link_gbps > 0 ? info.link_gbps : usual_gbps;
    return static_cast<std::int64_t>(info.link_latency_us * 1e3 +
                                     static_cast<double>(bytes) / gbps);
  }
  /// The memory its tasks find a buffer in.
  std::uint16_t memory_of(const Buffer& buffer) const noexcept {
    return domain().memory_of(buffer);
  }
};

}  // namespace weir::rt
