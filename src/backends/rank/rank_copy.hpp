// A copy that this rank makes for rank 0.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "backend/backend.hpp"
#include "backends/rank/served_device.hpp"
#include "base/threads.hpp"
#include "fabric/port.hpp"

namespace weir::rt {

/// Copies between two ends, at least one of them local. Remote bytes move by put and get in
/// contiguous runs, a bounded number at a time, staged through host memory if the network does not
/// reach the device. Deletes itself at the end.
class RankCopy final : private Completion, private CopySink {
 public:
  /// Starts a copy. Calls the sink when it is complete, possibly before it returns.
  static void start(Port& port, const ServedEnd& source, const ServedEnd& target, CopySink& sink,
                    void* token) noexcept;

 private:
  static constexpr std::uint64_t kAtOnce = 64;            ///< maximum runs in flight
  static constexpr std::uint64_t kDirectRuns = 256;       ///< maximum per call of move_runs()
  static constexpr std::uint64_t kDirectBytes = 4 << 20;  ///< maximum without a break

  RankCopy(Port& port, const ServedEnd& source, const ServedEnd& target, CopySink& sink,
           void* token) noexcept;

  const ServedEnd& far_end() const noexcept { return inward_ ? source_ : target_; }
  void begin();
  void begin_near();
  void begin_far();
  void copy_within(Device& device, const CopyEnd& source, const CopyEnd& target) noexcept;
  void move_runs() noexcept;
  bool move_directly() noexcept;
  WindowRun window_run(std::uint64_t run) const noexcept;
  void start_run(std::uint64_t run) noexcept;
  void note(const Outcome& outcome) noexcept;
  void moved() noexcept;
  void finish(Outcome outcome) noexcept;
  void completed(std::int64_t old, const Outcome& outcome) noexcept override;
  void copied(void* token, Outcome outcome, std::int64_t started_ns,
              std::int64_t ended_ns) noexcept override;

  Port& port_;
  const ServedEnd source_, target_;
  CopySink& sink_;
  void* const token_;
  const std::int64_t started_ns_;

  // The transfer between the network and this rank's memory.
  bool inward_ = false;
  std::byte* base_ = nullptr;
  Region here_, there_;
  std::unique_ptr<std::byte[]> staged_;  ///< if the network does not reach the device's memory
  std::uint64_t runs_ = 0, next_run_ = 0;
  sys::Atomic<std::uint64_t> open_{0};  ///< runs in flight, plus one while runs are being started
  sys::Mutex mutex_;
  /// The first failure of a run. Under mutex_ while runs are in flight; then of the thread that
  /// completed the last of them.
  Outcome outcome_;
};

}  // namespace weir::rt
