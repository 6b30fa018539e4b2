// A place in another rank, as rank 0 has it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.hpp"
#include "backends/rank/rank_client.hpp"
#include "base/parking.hpp"
#include "base/thread_role.hpp"
#include "base/threads.hpp"

namespace weir::rt {

class RankDevice;

/// Takes jobs from the feed, sends them to the rank, in a window of so many at once, and gives back
/// those that the rank says are over. What waits for what is decided there. Threads that wait do
/// it, and a thread of its own when nobody does.
class RankPlace final : public PlaceDriver, private RankPlaceSink {
 public:
  /// Throws Error.
  RankPlace(RankDevice& device, const PlaceRequest& request, PlaceFeed& feed);
  ~RankPlace() override;

  void wake() noexcept override {
    if (server_.load() != this_thread()) parking_.unpark_one();  // else it looks before it goes
  }

  /// As in Device.
  bool assist() noexcept;
  void assist_no_more() noexcept { end_nap(); }
  using RankPlaceSink::outlast_pins;
  using RankPlaceSink::pin;
  using RankPlaceSink::unpin;

 private:
  static constexpr std::size_t kBatchBytes = 16 << 10;
  static constexpr std::int64_t kNapNs = 200'000;  ///< of the thread, while others help

  /// A job that the rank has, or room for one.
  struct Slot {
    Job job;
    std::optional<WindowId> window;  ///< on the host's end of a copy
  };
  /// What the rank says of a job that is over.
  struct Ended {
    std::uint64_t number = 0;
    Outcome outcome;
    unsigned lane = 0;
    std::int64_t started_ns = 0, ended_ns = 0;  ///< by the rank's clock
  };

  void done(WireReader& message) override;
  void attend() noexcept override;
  void lost(const Outcome& why) noexcept override;

  bool try_serve() noexcept;
  void close() noexcept;
  Slot& slot_of(std::uint64_t number) noexcept;
  void serve() noexcept;
  struct Moved {
    bool back, out;
    bool any() const noexcept { return back || out; }
  };
  Moved pass() noexcept;
  bool help() noexcept;
  bool helped() noexcept;
  void nap() noexcept;
  void end_nap() noexcept;
  bool has_room() const noexcept;
  bool take_back() noexcept;
  bool hand_out() noexcept;
  void write(Slot& slot);
  void write_call(const Job& job);
  void write_copy(Slot& slot);
  void send_batch();
  bool unasked() const noexcept;
  bool ask();
  void give_back(Slot& slot, Outcome outcome) noexcept;
  void give_up() noexcept;
  void give_up(Slot& slot) noexcept;
  void abandon(Outcome why) noexcept;
  void break_off(Outcome why) noexcept;
  bool stirring() const noexcept;
  void idle() noexcept;

  RankDevice& device_;
  PlaceFeed& feed_;
  const std::uint32_t number_;
  const std::int64_t spin_ns_;
  const std::int64_t clock_ahead_ns_;

  sys::Atomic<const void*> server_{nullptr};  ///< who has the turn: what follows is theirs
  sys::Atomic<std::uint32_t> helps_{0};       ///< calls of assist()
  std::uint32_t helps_seen_ = 0;              ///< by the thread
  sys::Atomic<bool> asked_{true};  ///< for all that is over of the jobs that the rank has

  Worker worker_;
  std::vector<Slot> slots_;
  WireWriter batch_;
  std::size_t batch_start_ = 0;          ///< bytes before its first job
  sys::Atomic<std::uint64_t> first_{1};  ///< the oldest job in flight
  sys::Atomic<std::uint64_t> next_{1};   ///< the number of the next one
  sys::Atomic<std::uint64_t> last_brief_{0};
  std::vector<Ended> taken_;

  sys::Mutex mutex_;  // of what follows
  std::vector<Ended> ended_ WEIR_GUARDED_BY(mutex_);
  Outcome broken_;                      ///< why nothing can be sent any more
  sys::Atomic<std::uint32_t> news_{0};  ///< entries of ended_, and a broken_ not seen
  bool given_up_ = false;               ///< of whoever has the turn: broken_ has been seen

  Parking parking_;
  sys::Atomic<std::uint32_t> napping_{0};  ///< the thread, while others help
  sys::Atomic<bool> stopping_{false};
  std::optional<sys::Thread> thread_;
};

}  // namespace weir::rt
