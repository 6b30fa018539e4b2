// The part of the walk that shares work out: task queues, shares and pipelines.
#pragma once

#include "walk.hpp"

#include <weir/status.h>

namespace faults {

/// What nothing here takes, in nanoseconds.
constexpr std::int64_t kLong = INT64_C(15'000'000'000);

constexpr unsigned only(weir_status status) { return 1u << status; }

/// Takes the outcome of a call that may end as one of `expected`, and as what a fault makes of it;
/// only OK is true.
bool took(const Route& route, Report& report, weir_status status, const char* call,
          unsigned expected = only(WEIR_STATUS_OK));

/// In a runtime of its own, which is gone afterwards. Allocates nothing itself.
void walk_flows(const Route& route, Report& report);

}  // namespace faults
