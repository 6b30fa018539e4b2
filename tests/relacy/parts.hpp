// The parts that are checked.
//
// Of the other atomics nothing follows about other data, so that there is no order to get wrong:
// - Pace::typical_ns_, Residency::used_ and bytes_moved_, the counters of a stream but its
// progress,
//   Recorder::budget_ and dropped_: estimates and statistics, relaxed.
// - serials_, places_made_, Recorder's serial: unique numbers.
// - Buffer::users_: bits that are only set, by the thread whose call uses the buffer. To destroy it
//   meanwhile is an error of the program.
// - Recorder::on_ and generation_, SimClock::now_: values; what belongs to them is under a mutex.
// - The address of an OpenMP function in WorkerTeam: every thread finds the same.
// Context::driving_ is a SpinLock.
#pragma once

#include "checker.hpp"

namespace weir::rt::checker {

void check_spin_lock(Run& run);
void check_parking(Run& run);
void check_signal(Run& run);
void check_event(Run& run);
void check_action_queue(Run& run);
void check_action_pool(Run& run);
void check_mailbox(Run& run);
void check_progress(Run& run);
void check_run_queue(Run& run);
void check_trace_chunk(Run& run);
void check_failure(Run& run);
void check_buffer(Run& run);
void check_worker_team(Run& run);
void check_ring(Run& run);
void check_tally(Run& run);
void check_bell(Run& run);
void check_reorder(Run& run);
void check_device_tunnel(Run& run);
void check_stencil(Run& run);
void check_applied_blocks(Run& run);
void check_worker_groups(Run& run);

struct Part {
  const char* name;
  void (*check)(Run&);
};
inline constexpr Part kParts[] = {
    {"spin_lock", check_spin_lock},
    {"parking", check_parking},
    {"signal", check_signal},
    {"event", check_event},
    {"action_queue", check_action_queue},
    {"action_pool", check_action_pool},
    {"mailbox", check_mailbox},
    {"progress", check_progress},
    {"run_queue", check_run_queue},
    {"trace_chunk", check_trace_chunk},
    {"failure", check_failure},
    {"buffer", check_buffer},
    {"worker_team", check_worker_team},
    {"ring", check_ring},
    {"tally", check_tally},
    {"bell", check_bell},
    {"reorder", check_reorder},
    {"device_tunnel", check_device_tunnel},
    {"stencil", check_stencil},
    {"applied_blocks", check_applied_blocks},
    {"worker_groups", check_worker_groups},
};

}  // namespace weir::rt::checker
