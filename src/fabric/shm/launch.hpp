// Starts ranks as processes of this machine.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "fabric/link.hpp"

namespace weir::rt {

/// What launch_ranks() reports and asks while ranks run, on its thread.
class LaunchObserver {
 public:
  /// Whether on_output() gets what the ranks write, instead of the output of this process.
  virtual bool takes_output() const noexcept { return false; }
  /// A rank has written to its standard output (stream 1) or error (2).
  virtual void on_output(Rank, int /*stream*/, std::span<const char>) noexcept {}
  /// A rank has ended with a status as launch_ranks() returns it; all of its output came before.
  virtual void on_end(Rank, int /*status*/) noexcept {}
  /// Asked ten times a second: a signal for all ranks that still run, 0 for none.
  virtual int next_signal() noexcept { return 0; }

 protected:
  ~LaunchObserver() = default;
};

/// Starts a program `ranks` times and waits until all processes have ended. Returns the exit status
/// of the lowest rank that failed, 128 plus the signal's number if a signal ended it; 0 if none
/// failed. Kills stopped ranks when all remaining ranks have been stopped for `lost_after_ns`. Only
/// rank 0 has the standard input of this process. Throws Error.
int launch_ranks(Rank ranks, const char* const* arguments, std::int64_t lost_after_ns,
                 LaunchObserver& observer);

/// Returns whether launch_ranks() started this process.
bool was_launched() noexcept;
/// Returns this process's rank as text; null if launch_ranks() did not start it.
const char* launched_rank() noexcept;
/// Returns the link of a process that launch_ranks() started. Throws Error.
std::unique_ptr<Link> launched_link();

}  // namespace weir::rt
