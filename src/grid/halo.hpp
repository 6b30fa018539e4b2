// The run-time part of a halo exchange.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <weir/grid.h>

#include "base/handle.hpp"
#include "base/threads.hpp"
#include "fabric/group_hub.hpp"
#include "grid/grid.hpp"
#include "grid/halo_check.hpp"
#include "grid/halo_plan.hpp"

namespace weir::rt {

/// Arguments for the creation of a halo.
struct HaloRequest {
  const Partition* grid;
  weir_halo_options options;
};

/// One rank's part of a halo exchange. Each step is started and finished by one thread, or started
/// by exchange() and finished by the thread that makes progress. Final, because it receives
/// messages before its constructor ends.
///
/// The thread that makes progress unpacks the cells of the current step into the halos. A neighbour
/// can be at most one step ahead, because it needs a message of this rank for each step; messages
/// of the next step are kept until it starts.
///
/// Example: rank 0 has the cells 0 to 3 and rank 1 the cells 4 to 7, with halos of one cell:
///
///     rank 0  start()    sends cell 3 of step 0; one message is missing
///     rank 1  start()    sends cell 4 of step 0
///     rank 1  receives cell 3 of step 0 and unpacks it; no message is missing
///     rank 1  finish()   returns
///     rank 1  start()    sends cell 4 of step 1
///     rank 0  receives cell 4 of step 0 and unpacks it
///     rank 0  receives cell 4 of step 1 and keeps it
///     rank 0  finish(), start()   sends cell 3 of step 1; unpacks the kept cell 4
class Halo final : private GroupHub::Member {
 public:
  /// Collective. Throws Error on all ranks if one fails, including what read() throws.
  Halo(GroupHub& hub, const std::function<HaloRequest()>& read);
  Halo(const Halo&) = delete;
  Halo& operator=(const Halo&) = delete;
  ~Halo();
  /// Ends the exchange before the memory of its cells does: notifies the ranks that wait for this
  /// one, and fails the step that has begun and those that others begin.
  void close() noexcept;

  /// Both throw Error, after which the exchange cannot be used.
  void start();
  void finish(std::int64_t timeout_ns);
  /// A step that no thread waits for.
  class Step {
   public:
    /// Called once, when all halos are filled, or with the failure after which the exchange cannot
    /// be used. May be called inside a listener.
    virtual void done(const Outcome& outcome) noexcept = 0;

   protected:
    ~Step() = default;
  };
  /// Starts a step; its end is notified, possibly before the call returns.
  void exchange(Step& step) noexcept;
  /// Ends the exchange: the steps of the ranks that need this rank's cells fail with the reason.
  void abandon(const char* why) noexcept;
  weir_halo_info info() const;

  /// The plan, for tests that corrupt it. Only between steps.
  HaloPlan& plan() noexcept { return layout_->plan; }

 private:
  enum Kind : GroupHub::Kind {
    hello,   ///< description of the sender's halo, in lines
    cells,   ///< cells of one step
    leave,   ///< the sender takes no more part
    failure  ///< why no rank can continue
  };
  /// State that depends on the options.
  struct Layout {
    Layout(const Partition& grid, const weir_halo_options& options, Rank rank);

    Partition grid;
    HaloShape shape;
    BlockArrays arrays;
    HaloPlan plan;
    bool check;
  };
  struct Peer {
    std::uint64_t next = 0;         ///< step of the next message
    std::size_t received = 0;       ///< number of messages of that step
    std::vector<std::byte> early;   ///< messages of a step that has not started
    std::size_t early_count = 0;    ///< number of messages in it
    std::vector<std::byte> taken;   ///< early messages of the started step
    std::vector<std::byte> packed;  ///< outgoing message whose cells are not contiguous
  };

  void check_arrays(const weir_halo_options& options) const;
  void agree(const weir_halo_options& options);
  void prepare_messages();
  std::string describe(const weir_halo_options& options) const;
  void compare(const std::string& mine) const;

  void received(Rank from, GroupHub::Kind kind, std::uint64_t step,
                std::span<const std::byte> body) noexcept override;
  void lost(Rank rank, const std::string& why) noexcept override;
  void take_message(Rank from, GroupHub::Kind kind, std::uint64_t step,
                    std::span<const std::byte> body) noexcept;
  void note_loss(Rank rank, const std::string& why) noexcept;
  void receive_cells(Rank from, std::uint64_t step, std::span<const std::byte> body);
  void fail_with(weir_status status, const char* message) noexcept;
  /// Throws the failure that ended the exchange, or one that names a lost rank whose cells are
  /// missing.
  void throw_failure() const WEIR_REQUIRES(mutex_);
  /// Returns whether another rank has announced a failure.
  bool has_failed();
  /// Waits until a counter is 0. Returns false at the deadline. Throws the failure that ended the
  /// exchange.
  bool await_none(std::size_t Halo::*missing, std::int64_t timeout_ns, const char* what);

  std::optional<std::size_t> peer_index(Rank rank) const noexcept;
  void begin_step();
  void end_step(std::int64_t timeout_ns);
  /// Ends the step of exchange() if nothing is missing, or if it has failed.
  void end_exchanged_step() noexcept;
  /// Calls body(). If that ends the exchange, notifies the ranks that need this rank's cells.
  template <class Body>
  void attempt(const Body& body);
  void abort_exchange(std::string_view why) noexcept;
  using Parts = std::span<const HaloPlan::Part>;
  static Parts parts_of(const std::vector<HaloPlan::Part>& all,
                        const HaloPlan::Message& message) noexcept {
    return Parts(all).subspan(message.first, message.last - message.first);
  }
  static bool is_packed(Parts parts) noexcept;
  void send_to(std::size_t index);
  bool send_reserved(Rank to, Parts parts, std::size_t bytes);
  /// Returns the end of the written bytes.
  static std::byte* pack_all(Parts parts, std::byte* to);
  void copy_own();
  void take(Parts parts, std::span<const std::byte> message);
  /// Unpacks the early messages of a peer.
  void take_early(std::size_t index, std::size_t count);
  std::size_t wire_bytes(Parts parts) const noexcept;
  void mark_failure_announced() noexcept;
  void send_to_all(Kind kind, std::string_view message) noexcept;

  GroupHub& hub_;
  const Rank rank_, ranks_;
  std::uint32_t number_ = 0;
  /// Every rank has received, or will receive, what it needs to compare.
  bool all_hellos_sent_ = false;
  /// The other ranks have been notified that this one sends nothing more.
  sys::Atomic<bool> has_left_{false}, closed_{false};
  std::optional<Layout> layout_;
  std::vector<Peer> peers_;  ///< in the order of the plan

  mutable sys::Mutex mutex_;
  std::vector<std::string> hellos_;  ///< by rank; "": not received yet
  std::size_t hellos_missing_ WEIR_GUARDED_BY(mutex_) = 0;
  std::vector<std::string> why_lost_
      WEIR_GUARDED_BY(mutex_);                ///< why a rank sends no more messages; "": it does
  std::uint64_t started_ = 0, finished_ = 0;  ///< number of steps
  std::size_t missing_ WEIR_GUARDED_BY(mutex_) = 0;  ///< missing messages of the started step
  Outcome failure_ WEIR_GUARDED_BY(mutex_);
  /// The other ranks know of a failure, or will.
  bool failure_announced_ WEIR_GUARDED_BY(mutex_) = false;
  Step* step_ WEIR_GUARDED_BY(mutex_) =
      nullptr;  ///< of exchange(), when this rank has sent its cells
  std::int64_t wait_began_ns_ WEIR_GUARDED_BY(mutex_) = 0;
  weir_halo_info info_ = WEIR_HALO_INFO_INIT;
};

}  // namespace weir::rt
