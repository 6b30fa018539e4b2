// A transport over a link: frames, one-sided operations and the liveness of ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/threads.hpp"
#include "net/link.hpp"
#include "net/transport.hpp"

namespace weir::rt {

/// What a rank announces when it joins.
struct Membership {
  std::string build;             ///< must be equal on all ranks
  bool sends_heartbeats = true;  ///< progress() is called often in all circumstances
  /// Maximum silence of a rank that sends heartbeats; 0: unlimited.
  std::int64_t lost_after_ns = 10'000'000'000;
  std::int64_t join_within_ns = 60'000'000'000;
  bool sends_checksums =
      false;  ///< this rank adds checksums to its packets, which receivers verify
};

/// Returns a text that identifies the build of the program and of weir.
std::string build_id();

/// Adds headers to packets and rejects packets with a wrong header or checksum. One-sided
/// operations that the link cannot do directly are packets that the target's progress() processes:
/// large puts and gets are streamed in packet-sized pieces between the two memories, so that
/// neither rank buffers them.
///
/// A rank that sends nothing else sends heartbeats, eight within the shortest timeout of any rank.
/// A rank that leaves announces it, and whether it has closed the fabric; to the other ranks it is
/// lost without a failure of its own.
class LinkTransport final : public Transport, private PacketSink {
 public:
  /// Joins: waits until all ranks have sent their hello. Throws Error.
  LinkTransport(std::unique_ptr<Link> link, Membership membership);
  LinkTransport(const LinkTransport&) = delete;
  LinkTransport& operator=(const LinkTransport&) = delete;
  ~LinkTransport() override;

  const TransportInfo& info() const noexcept override { return info_; }
  bool send(Rank to, Parts parts) override;
  /// Null where packets carry checksums, which follow the last part.
  std::byte* reserve(std::size_t bytes) noexcept override {
    return membership_.sends_checksums ? nullptr : link_->reserve(bytes);
  }
  void unreserve(std::byte* memory) noexcept override { link_->unreserve(memory); }
  bool send_reserved(Rank to, Parts parts) override;
  bool start(const OneSided& operation) override;
  void expose(WindowId window, void* memory, std::size_t bytes) override;
  bool withdraw(WindowId window) noexcept override;
  void settle(WindowId window) noexcept override { link_->settle(window); }
  void* allocate(std::size_t bytes) override { return link_->allocate(bytes); }
  weir_status commit(void* memory, std::size_t bytes, std::int64_t deadline_ns) noexcept override {
    return link_->commit(memory, bytes, deadline_ns);
  }
  bool release(void* memory) noexcept override { return link_->release(memory); }
  bool move_runs(OneSidedKind kind, Rank target, WindowId window,
                 std::span<const WindowRun> runs) noexcept override {
    return link_->move_runs(kind, target, window, runs);
  }
  /// Nothing where packets carry checksums: data read in place would have none.
  std::optional<std::uint64_t> place_of(const void* memory) const noexcept override {
    return membership_.sends_checksums ? std::nullopt : link_->place_of(memory);
  }
  const std::byte* memory_of(Rank owner, std::uint64_t place,
                             std::uint64_t bytes) const noexcept override {
    return link_->memory_of(owner, place, bytes);
  }
  bool progress(TransportSink& sink) noexcept override;
  bool unfinished() const noexcept override {
    return !unsent_.empty() || !ended_.empty() || reported_ < lost_.size();
  }
  void drop(Rank rank, const std::string& why) noexcept override;
  void leave_at_exit() noexcept override;
  std::uint64_t activity() const noexcept override { return link_->activity(); }
  void note_activity() noexcept override { link_->note_activity(); }
  void note_thread() noexcept override { link_->note_thread(); }
  std::optional<std::string> idle(IdleWait& wait, std::uint64_t since) override {
    return link_->idle(wait, since);
  }
  void resumed(IdleWait& wait) noexcept override { link_->resumed(wait); }
  std::uint32_t bell() const noexcept override { return link_->bell(); }
  void wait(std::uint32_t bell, std::int64_t deadline_ns) noexcept override;
  void wake() noexcept override { link_->wake(); }

 private:
  static constexpr std::size_t kSlots = 256;  ///< maximum operations in flight
  enum class Kind : std::uint8_t;
  struct Header;
  struct Hello;
  struct Put;
  struct Get;
  struct Change;
  struct Reply;

  struct Peer {
    std::uint32_t sent = 0, received = 0;  ///< packets
    std::int64_t received_ns = 0, sent_ns = 0;
    std::string build;
    bool joined = false, sends_heartbeats = false;
    bool lost = false;  ///< nothing is sent or received any more
    bool left = false;  ///< the rank has announced that it leaves
    std::string why;    ///< why the rank is lost: "rank 1 has left the fabric"
  };
  struct Slot {
    OneSided operation;
    std::uint64_t cursor = 0;  ///< bytes that are done (direct, get) or sent (put)
    std::uint32_t generation = 0;
    bool live = false;
    bool direct = false;  ///< the link may do it; otherwise packets do all of it
  };
  /// A reply to an operation of another rank.
  struct Answer {
    Rank to = 0;
    Kind kind;
    std::uint64_t token = 0;
    WindowId window = 0;
    std::uint64_t offset = 0, bytes = 0, cursor = 0;  ///< of a get
    std::int64_t old = 0;
    weir_status status = WEIR_STATUS_OK;
  };
  struct Window {
    std::byte* memory;
    std::size_t bytes;
  };
  struct Ended {
    void* token;
    std::int64_t old;
    Outcome outcome;
  };

  void join();
  void send_hellos(std::vector<bool>& sent);
  bool receive() noexcept;
  void receive_all() noexcept;
  void compare_builds() const;
  void leave(Kind farewell) noexcept;

  void packet(Rank from, std::span<const std::byte> bytes) noexcept override;
  void take(Rank from, Kind kind, std::span<const std::byte> rest);
  void take_put(Rank from, std::span<const std::byte> rest);
  void take_get(Rank from, std::span<const std::byte> rest);
  void take_change(Rank from, std::span<const std::byte> rest);
  void take_reply(Rank from, Kind kind, std::span<const std::byte> rest);
  void mark_lost(Rank rank, std::string why) noexcept;

  template <class Fixed>
  bool push(Rank to, Kind kind, const Fixed& fixed, std::span<const std::byte> body = {}) noexcept;
  using LinkSend = bool (Link::*)(Rank, Parts) noexcept;
  bool push_parts(Rank to, Kind kind, std::span<const std::byte> first, Parts others,
                  LinkSend send = &Link::send) noexcept;
  bool push_slots() noexcept;
  bool push_slot(Slot& slot, std::uint32_t index, bool& moved) noexcept;
  bool push_answers() noexcept;
  bool push_answer(Answer& answer) noexcept;
  static Kind answer_to(OneSidedKind operation) noexcept;
  Slot* find(std::uint64_t token, Rank from) noexcept;
  void end(Slot& slot, std::int64_t old, Outcome outcome) noexcept;
  std::byte* reach(WindowId window, std::uint64_t offset, std::uint64_t bytes) noexcept;
  std::string refusal(const OneSided& operation) const;

  bool progress_link() noexcept;
  bool deliver_ended(TransportSink& sink) noexcept;
  bool deliver_lost(TransportSink& sink) noexcept;
  void end_operations_on(Rank rank, TransportSink& sink) noexcept;
  void check_peers() noexcept;

  std::unique_ptr<Link> link_;
  Membership membership_;
  TransportInfo info_;
  std::int64_t interval_ns_ = 0;  ///< between heartbeats
  std::int64_t checked_ns_ = 0;
  sys::Atomic<std::int64_t> next_check_ns_{0};
  unsigned passes_ = 0;
  bool receiving_ = false;  ///< also during a handler, which may end the process
  bool has_left_ = false;

  std::vector<Peer> peers_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> unsent_;  ///< slots with packets to send or direct work to do
  std::deque<Answer> answers_;
  std::map<WindowId, Window> windows_;
  std::vector<Ended> ended_, delivering_;  ///< together with those in flight at most kSlots
  std::vector<Rank> lost_;                 ///< lost ranks; capacity for all
  std::size_t reported_ = 0;               ///< how many of lost_ have been reported
  /// Frames that arrived before join() ended.
  std::deque<std::pair<Rank, std::vector<std::byte>>> early_;
  TransportSink* sink_ = nullptr;  ///< of the running progress()
};

}  // namespace weir::rt
