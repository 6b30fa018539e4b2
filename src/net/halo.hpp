// An exchange of halos at work.
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
#include "net/grid.hpp"
#include "net/group_hub.hpp"
#include "net/halo_check.hpp"
#include "net/halo_plan.hpp"

namespace weir::rt {

/// What a halo is to be made of.
struct HaloRequest {
  const Partition* grid;
  weir_halo_options options;
};

/// One rank's part of an exchange: what weir_halo does. start() and finish() from one thread.
///
/// Cells of the current step are unpacked into the halos on the progress thread. A neighbour can be
/// at most one step ahead, because it needs a message of this rank for each step; messages of the
/// next step are kept until it starts.
class Halo {
 public:
  /// Collective. Throws Error, on all ranks if on one, also what reading the request throws.
  Halo(GroupHub& hub, const std::function<HaloRequest()>& read);
  Halo(const Halo&) = delete;
  Halo& operator=(const Halo&) = delete;
  /// Tells those that wait for this rank.
  ~Halo();

  /// Throws Error, after which the exchange is over.
  void start();
  void finish(std::int64_t timeout_ns);
  weir_halo_info info() const;

  /// The plan, for tests that spoil it. Between steps.
  HaloPlan& plan() noexcept { return layout_->plan; }

 private:
  enum Kind : GroupHub::Kind {
    hello,   ///< what the sender's halo is, in lines
    cells,   ///< of one step
    left,    ///< the sender takes no part any more
    failure  ///< why nobody can go on
  };
  /// What is known once the options have been read.
  struct Layout {
    Layout(const Partition& grid, const weir_halo_options& options, Rank rank);

    Partition grid;
    HaloShape shape;
    BlockArrays arrays;
    HaloPlan plan;
    bool check;
  };
  /// Hears for it: an object that is whole before it is entered, as a class that others derive from
  /// is not.
  class MessageHandler final : public GroupHub::Member {
   public:
    explicit MessageHandler(Halo& halo) noexcept : halo_(halo) {}
    void received(Rank from, GroupHub::Kind kind, std::uint64_t step,
                  std::span<const std::byte> body) noexcept override {
      halo_.heard(from, kind, step, body);
    }
    void lost(Rank rank, const std::string& why) noexcept override { halo_.lost(rank, why); }

   private:
    Halo& halo_;
  };
  struct Peer {
    std::uint64_t next = 0;         ///< step of the next message
    std::size_t received = 0;       ///< messages of that step
    std::vector<std::byte> early;   ///< messages of a step that is not started
    std::size_t early_count = 0;    ///< of them
    std::vector<std::byte> taken;   ///< what was early, of the step that is started
    std::vector<std::byte> packed;  ///< a message that goes there and is not contiguous
  };

  void check_arrays(const weir_halo_options& options) const;
  void agree(const weir_halo_options& options);
  void prepare_messages();
  std::string describe(const weir_halo_options& options) const;
  void compare(const std::string& mine) const;

  void heard(Rank from, GroupHub::Kind kind, std::uint64_t step,
             std::span<const std::byte> body) noexcept;
  void lost(Rank rank, const std::string& why) noexcept;
  void receive_cells(Rank from, std::uint64_t step, std::span<const std::byte> body);
  void fail_with(weir_status status, const std::string& message) noexcept;
  /// Throws what ended the exchange, or that a rank is gone whose cells are missing.
  void throw_failure() const WEIR_REQUIRES(mutex_);
  /// Whether another rank has told all of a failure.
  bool has_failed();
  /// Waits until a number is 0. Returns false at the deadline. Throws what ended the exchange.
  bool await_none(std::size_t Halo::*missing, std::int64_t timeout_ns, const char* what);

  std::optional<std::size_t> peer_index(Rank rank) const noexcept;
  void begin_step();
  void end_step(std::int64_t timeout_ns);
  /// Calls step(). When that ends the exchange, those that need this rank's cells are told.
  template <class Step>
  void attempt(const Step& step);
  void abort_exchange(std::string_view why) noexcept;
  using Parts = std::span<const HaloPlan::Part>;
  static Parts parts_of(const std::vector<HaloPlan::Part>& all,
                        const HaloPlan::Message& message) noexcept {
    return Parts(all).subspan(message.first, message.last - message.first);
  }
  static bool is_packed(Parts parts) noexcept;
  void send_to(std::size_t index);
  bool send_reserved(Rank to, Parts parts, std::size_t bytes);
  /// Returns the end of what it has written.
  static std::byte* pack_all(Parts parts, std::byte* to);
  void copy_own();
  void take(Parts parts, std::span<const std::byte> message);
  /// Takes the messages of a peer that were early.
  void take_early(std::size_t index, std::size_t count);
  std::size_t wire_bytes(Parts parts) const noexcept;
  void mark_failure_announced() noexcept;
  void tell_all(Kind kind, std::string_view message) noexcept;

  GroupHub& hub_;
  MessageHandler handler_{*this};
  const Rank rank_, ranks_;
  std::uint32_t number_ = 0;
  bool all_hellos_sent_ = false;  ///< every rank has, or will have, what it needs to compare
  bool has_left_ = false;         ///< the others have been told that nothing more comes
  std::optional<Layout> layout_;
  std::vector<Peer> peers_;  ///< as in the plan

  sys::Mutex mutex_;
  std::vector<std::string> hellos_;  ///< of each rank, "": not yet
  std::size_t hellos_missing_ WEIR_GUARDED_BY(mutex_) = 0;
  std::vector<std::string> gone_
      WEIR_GUARDED_BY(mutex_);                ///< why nothing comes of a rank any more, "": it does
  std::uint64_t started_ = 0, finished_ = 0;  ///< steps
  std::size_t missing_ WEIR_GUARDED_BY(mutex_) = 0;  ///< messages of the step that was started
  Outcome failure_ WEIR_GUARDED_BY(mutex_);
  bool failure_announced_ WEIR_GUARDED_BY(mutex_) = false;  ///< of a failure, or will
  weir_halo_info info_ = WEIR_HALO_INFO_INIT;
};

}  // namespace weir::rt
