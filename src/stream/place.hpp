// Places: run the ready actions of their streams.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <weir/place.h>

#include "backend/backend.hpp"
#include "base/handle.hpp"
#include "base/threads.hpp"
#include "stream/place_base.hpp"
#include "stream/running_actions.hpp"

namespace weir::rt {

class Executor;

/// Feeds the workers of one place with the actions of its streams.
///
/// Streams with ready work wait in a run queue, by priority. The worker that takes a stream owns
/// it. On a place with one core it keeps the stream for up to a quantum of actions. Otherwise it
/// takes one action and reschedules the stream, unless the action is too brief for another worker
/// to start meanwhile. Drivers that allow it run such actions inline, without a job. A device that
/// resolves dependences gets consecutive actions of one stream without waiting for completions.
class Place : public PlaceBase {
 public:
  /// Takes over cores that the caller took from the domain. Throws Error if the device cannot open
  /// the place.
  Place(Domain& domain, std::string name, std::vector<unsigned> cores);
  ~Place();

  /// Returns the actions that workers run; none without a watchdog. Throws std::bad_alloc.
  std::vector<RunningActions::Entry> running() const {
    return running_ ? running_->list() : std::vector<RunningActions::Entry>();
  }

  std::uint32_t next_stream_number() noexcept {
    return streams_made_.fetch_add(1, std::memory_order_relaxed);
  }

 private:
  /// The feed of the place's driver.
  class Feed final : public PlaceFeed {
   public:
    explicit Feed(Place& place) noexcept : place_(place) {}
    bool next(Worker& worker, Job& job) noexcept override { return place_.next(worker, job); }
    void finish(Worker& worker, Job& job, Outcome outcome) noexcept override {
      place_.finish(worker, job, std::move(outcome));
    }
    bool has_work() const noexcept override { return place_.has_work(); }
    bool calls_back() const noexcept override;

   private:
    Place& place_;
  };

  bool next(Worker& worker, Job& job) noexcept;
  void finish(Worker& worker, Job& job, Outcome outcome) noexcept;
  bool has_work() const noexcept {
    return has_streams() || current_.load(std::memory_order_relaxed) != nullptr;
  }

  bool next_single_worker(Worker& worker, Job& job) noexcept;
  bool next_shared(Worker& worker, Job& job) noexcept;
  bool next_device_ordered(Worker& worker, Job& job) noexcept;
  Executor* current_stream() noexcept;
  /// Returns the index in `running_` for a worker; jobs of a device share some entries.
  unsigned running_slot(const Worker& worker, const Job& job) const noexcept {
    return device_ordered_ ? static_cast<unsigned>(job.id % kJobsListed) : worker.index;
  }
  /// Whether the duration of a job measures its kernel.
  bool learns_from(const Job& job) const noexcept {
    return paced_ && !job.is_copy && job.source == nullptr;
  }
  bool prepare(Worker& worker, Job& job, Executor& stream, Action& action) noexcept;
  bool fill(Worker& worker, Job& job, Executor& stream, Action& action);
  static std::uint8_t job_priority_of(const Executor& stream, const Action& action) noexcept;
  static void refuse(Executor& stream, Action& action, Outcome why) noexcept;
  void notify_submitted(const Action& action) noexcept;
  void fill_call(Worker& worker, Job& job, const Action& action);
  static weir_call call_of(Worker& worker, const Action& action);
  bool may_call_inline(const Worker& worker, const Action& action) const noexcept;
  static void call_inline(Worker& worker, Executor& stream, Action& action) noexcept;

  static constexpr std::size_t kJobsListed = 64;

  const bool paced_;                               ///< measures how long kernels take
  const std::unique_ptr<RunningActions> running_;  ///< null without a watchdog
  sys::Atomic<std::uint32_t> streams_made_{0};

  unsigned quantum_ = 16;
  unsigned budget_ = quantum_;  ///< actions that the worker may run before other streams run
  std::int64_t quantum_start_ns_ = 0;

  // With device ordering.
  sys::Atomic<Executor*> current_{nullptr};  ///< the stream that provides jobs
  unsigned streak_ = 0;                      ///< number of jobs it has provided in a row
  std::uint64_t submitted_ = 0;              ///< number of jobs so far
  std::vector<std::uint64_t> waits_;         ///< of the last job

  Feed feed_;
  // The last member: its threads use all of the above until they are joined.
  const std::unique_ptr<PlaceDriver> owned_driver_;
};

}  // namespace weir::rt

/// The public handle.
struct weir_place final : weir::rt::Handle<weir_place>, weir::rt::Place {
  static constexpr const char* kNoun = "place";
  using Place::Place;
};
