// A transport made of a link: frames, one-sided operations, and who is still there.
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

/// What a rank says about itself when it joins.
struct Membership {
  std::string build;                            ///< must be the same on all ranks
  bool sends_heartbeats = true;                 ///< progress() is called often, whatever happens
  std::int64_t lost_after_ns = 10'000'000'000;  ///< silence of a rank that beats; 0: for ever
  std::int64_t join_within_ns = 60'000'000'000;
  bool sends_checksums =
      false;  ///< what this rank sends carries a checksum, which receivers look at
};

/// Returns what tells builds of the program and of weir apart.
std::string build_id();

/// Puts headers before packets, and refuses what has a wrong one, or another checksum than its
/// bytes. One-sided operations that the
/// link cannot do directly are packets that the target's progress() carries out: big puts and gets
/// stream in pieces of a packet between the two memories, so that neither end keeps them.
///
/// A rank that sends nothing else sends heartbeats, eight within the shortest timeout of any rank.
/// A rank that leaves says so, and whether it has closed the fabric; to the others it is lost
/// without a failure of its own.
class LinkTransport final : public Transport, private PacketSink {
 public:
  /// Joins: waits until all ranks have said who they are. Throws Error.
  LinkTransport(std::unique_ptr<Link> link, Membership membership);
  LinkTransport(const LinkTransport&) = delete;
  LinkTransport& operator=(const LinkTransport&) = delete;
  ~LinkTransport() override;

  const TransportInfo& info() const noexcept override { return info_; }
  bool send(Rank to, Parts parts) override;
  /// Nothing where packets carry checksums, which come behind the last part.
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
  /// Nothing where packets carry checksums: what does not travel in one would have none.
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
  static constexpr std::size_t kSlots = 256;  ///< operations under way
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
    bool lost = false;  ///< nothing is sent or taken any more
    bool left = false;  ///< it is gone because it has said so
    std::string why;    ///< it is gone: "rank 1 has left the fabric"
  };
  struct Slot {
    OneSided operation;
    std::uint64_t cursor = 0;  ///< bytes that are done (direct, get) or sent (put)
    std::uint32_t generation = 0;
    bool live = false;
    bool direct = false;  ///< the link may do it; else packets do all of it
  };
  /// What is to be sent to a rank that asked for something.
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
  std::int64_t interval_ns_ = 0;  ///< from one beat to the next
  std::int64_t checked_ns_ = 0;
  sys::Atomic<std::int64_t> next_check_ns_{0};
  unsigned passes_ = 0;
  bool receiving_ = false;  ///< also while a handler runs, which may end the process
  bool has_left_ = false;

  std::vector<Peer> peers_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> unsent_;  ///< slots that have more to send or to do
  std::deque<Answer> answers_;
  std::map<WindowId, Window> windows_;
  std::vector<Ended> ended_, delivering_;  ///< with those under way not more than there are slots
  std::vector<Rank> lost_;                 ///< that are gone; room for all
  std::size_t reported_ = 0;               ///< of these
  std::deque<std::pair<Rank, std::vector<std::byte>>> early_;  ///< frames from before join() ended
  TransportSink* sink_ = nullptr;                              ///< of the progress() under way
};

}  // namespace weir::rt
