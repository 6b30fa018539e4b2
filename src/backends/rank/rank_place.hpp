// A place of another rank, as seen by rank 0.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.hpp"
#include "backend/job_queue.hpp"
#include "backend/job_window.hpp"
#include "backends/rank/rank_completions.hpp"
#include "backends/rank/rank_connection.hpp"
#include "base/parking.hpp"
#include "base/thread_role.hpp"
#include "base/threads.hpp"

namespace weir::rt {

class RankPlaces;

/// Takes jobs from the feed, sends them to the rank within a bounded window, and returns those that
/// the rank reports complete. The rank resolves the dependences. Waiting threads do this work, and
/// the thread of the place when none polls.
class RankPlace final : public PlaceDriver, private RankPlaceSink {
 public:
  /// Adds itself to `places`. Throws Error.
  RankPlace(RankConnection& connection, RankPlaces& places, const PlaceRequest& request,
            PlaceFeed& feed);
  ~RankPlace() override;

  void wake() noexcept override {
    // otherwise it checks again before it stops serving
    if (server_.load() != this_thread()) parking_.unpark_one();
  }

  /// See Device.
  bool poll() noexcept;
  void end_polling() noexcept { end_park(); }
  using RankPlaceSink::pin;
  using RankPlaceSink::unpin;
  using RankPlaceSink::wait_for_pins;

 private:
  static constexpr std::size_t kBatchBytes = 16 << 10;
  static constexpr std::int64_t kParkNs = 200'000;  ///< of the thread, while others poll

  /// A job that was sent to the rank, or an empty slot.
  struct Slot {
    Job job;
    std::optional<WindowId> window;  ///< of a copy's end in host memory
  };

  void done(WireReader& message) override;
  void on_progress() noexcept override;
  void on_rank_lost(const Outcome& why) noexcept override;

  bool try_serve() noexcept;
  void close() noexcept;
  void serve() noexcept;
  struct Moved {
    bool back, out;
    bool any() const noexcept { return back || out; }
  };
  Moved pass() noexcept;
  bool poll_once() noexcept;
  bool has_pollers() noexcept;
  void park_timed() noexcept;
  void end_park() noexcept;
  bool take_back() noexcept;
  bool hand_out() noexcept;
  void write(Slot& slot);
  void write_call(const Job& job);
  void write_copy(Slot& slot);
  void send_batch();
  bool owes_request() const noexcept;
  bool ask();
  void give_back(Slot& slot, Outcome outcome) noexcept;
  void fail_job(Slot& slot) noexcept;
  void abandon(Outcome why) noexcept;
  bool has_work() const noexcept;
  void idle() noexcept;

  RankConnection& connection_;
  RankPlaces& places_;
  PlaceFeed& feed_;
  const std::uint32_t number_;
  const std::int64_t spin_ns_;
  const std::int64_t clock_ahead_ns_;

  sys::Atomic<const void*> server_{nullptr};  ///< the serving thread; owns the members below
  sys::Atomic<std::uint32_t> polls_{0};       ///< number of calls of poll()
  std::uint32_t polls_seen_ = 0;              ///< by the thread of the place
  sys::Atomic<bool> asked_{true};  ///< all completions of the sent jobs have been requested

  Worker worker_;
  /// The jobs that were sent to the rank; other threads ask whether it is full.
  JobWindow<Slot, JobQueue::kWindow, std::memory_order_seq_cst> jobs_;
  WireWriter batch_;
  std::size_t batch_start_ = 0;  ///< bytes of batch_ before its first job
  sys::Atomic<std::uint64_t> last_brief_{0};

  RankCompletions completions_{JobQueue::kWindow};
  Parking parking_;
  sys::Atomic<std::uint32_t> parked_{0};  ///< the thread is, while others poll
  sys::Atomic<bool> stopping_{false};
  std::optional<sys::Thread> thread_;
};

/// The places of a device, for threads that poll them. Any thread.
class RankPlaces {
 public:
  void add(RankPlace& place);
  /// When it returns, no thread is in poll() of the place.
  void remove(RankPlace& place) noexcept;
  /// Calls visit(place) for all places. No place is destroyed while visit() uses it.
  template <class Visit>
  void each(const Visit& visit) noexcept {
    for (std::size_t index = 0; RankPlace* const place = pin(index); ++index) {
      visit(*place);
      place->unpin();
    }
  }

 private:
  /// Returns the place with that index and prevents its destruction; null for an unknown index.
  RankPlace* pin(std::size_t index) noexcept;

  sys::Mutex mutex_;  // held briefly
  std::vector<RankPlace*> places_ WEIR_GUARDED_BY(mutex_);
};

}  // namespace weir::rt
