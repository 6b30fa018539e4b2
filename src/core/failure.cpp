#include "core/failure.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"

namespace weir::rt {

std::string Failure::describe(bool poisoned) const {
  if (poisoned) {
    return one_line(
        fmt::format("not run because it depends on action '{}' of {}, which ended as {}: {}",
                    action, origin, status_name(status), message));
  }
  return one_line(fmt::format("action '{}' of {}: {}", action, origin, message));
}

FailureRef FailureRef::make(weir_status status, std::string message, std::string action,
                            std::string origin, std::uint64_t root_id) noexcept {
  static Failure no_memory{.status = WEIR_STATUS_OUT_OF_MEMORY,
                           .message = "out of memory",
                           .action = "?",
                           .origin = "?"};
  try {
    return FailureRef(new Failure{.status = status,
                                  .message = std::move(message),
                                  .action = std::move(action),
                                  .origin = std::move(origin),
                                  .root_id = root_id});
  } catch (...) {
    no_memory.references.fetch_add(1, std::memory_order_relaxed);
    return FailureRef(&no_memory);
  }
}

}  // namespace weir::rt
