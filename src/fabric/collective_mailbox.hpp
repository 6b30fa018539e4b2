// The messages of the collective operations of a group of ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/threads.hpp"
#include "fabric/collective_call.hpp"
#include "fabric/group_hub.hpp"

namespace weir::rt {

/// The mailboxes of a port. Any thread.
class CollectiveHub final : public GroupHub {
 public:
  /// The port must outlive the hub.
  explicit CollectiveHub(Port& port)
      : GroupHub(port, Channel::communicator, Numbering::given, Derived()) {
    start_listening();
  }
  ~CollectiveHub() { stop_listening(); }

 private:
  /// Tells a rank that waits for this one that it has left the group.
  void on_stray(Rank from, const Head& head, std::span<const std::byte> body) noexcept override;
};

/// Sends and receives the messages of collective operations between the ranks of a group, which
/// have the numbers 0, 1, ... in it. One operation at a time, by one thread.
///
/// A message carries the call that it belongs to. A rank that receives a message of another call
/// than its own with the same number fails, and tells all ranks. Two ranks that wait for each other
/// in different calls detect that by probes: after a while a waiting rank sends its call to the
/// rank that it waits for.
class CollectiveMailbox final : private GroupHub::Member {
 public:
  /// `ranks`: the ranks of the fabric that are in the group, by their number in the group. This
  /// rank is one of them. All of them create the mailbox with the same hub number.
  CollectiveMailbox(CollectiveHub& hub, std::uint32_t number, std::vector<Rank> ranks);
  CollectiveMailbox(const CollectiveMailbox&) = delete;
  CollectiveMailbox& operator=(const CollectiveMailbox&) = delete;
  ~CollectiveMailbox();

  unsigned rank() const noexcept { return rank_; }
  unsigned size() const noexcept { return static_cast<unsigned>(ranks_.size()); }
  const std::vector<Rank>& ranks() const noexcept { return ranks_; }
  Port& port() const noexcept { return hub_.port(); }

  /// A message of the current operation that this rank receives.
  struct Message {
    std::uint64_t operation = 0;
    std::uint32_t round = 0;
    unsigned from = 0;
    std::span<std::byte> into{};     ///< where it goes; of an expected message
    std::size_t bytes = 0;           ///< of an arrived one
    CollectiveCall call{};           ///< of an early one
    std::vector<std::byte> early{};  ///< its contents, until it is expected
    sys::Atomic<bool> has_arrived{false};
  };

  /// Begins the next operation. Throws Error: {busy} inside a listener or if another thread is in
  /// an operation, {network_error} if an earlier operation has failed.
  void begin(const CollectiveCall& call, std::int64_t timeout_ns);
  /// Ends it. Messages that it expects are not written any more.
  void end() noexcept;
  /// Makes an operation and all later ones fail, on all ranks.
  void give_up(std::uint64_t operation, const Outcome& why) noexcept;
  std::uint64_t operation() const noexcept { return operation_; }

  /// Sends a message to a rank. Waits while the rank has not consumed what this rank sent before.
  void send(unsigned to, std::uint32_t round, std::span<const std::byte> data);
  /// Says where a message goes, which may have arrived already. The result is valid until end().
  Message& expect(unsigned from, std::uint32_t round, std::span<std::byte> into);
  /// Waits for an expected message.
  void await(Message& message);

  /// The ranks that are left of a group, and the hub number of a new group.
  struct Survivors {
    std::uint32_t number = 0;
    std::vector<Rank> ranks;
  };
  /// Agrees on the list of the ranks that are left. All of them call it; afterwards all
  /// operations of this group fail. `number`: for the new group; that of its first rank counts.
  /// After {timeout} the next call continues, with the number of the first one.
  Survivors agree(std::uint32_t number, std::int64_t timeout_ns);

 private:
  static constexpr std::size_t kHistory = 64;
  struct Began {
    std::uint64_t operation = UINT64_MAX;
    CollectiveCall call{};
  };
  /// Bytes to and from one rank.
  struct Traffic {
    std::uint64_t sent = 0, asked = 0;           ///< `asked`: of `sent`, before the last request
    sys::Atomic<std::uint64_t> acknowledged{0};  ///< of `sent`, consumed by the other rank
    std::uint64_t received = 0, consumed = 0;
    std::uint64_t owed = 0;  ///< the other rank waits until these are consumed; 0: it does not
  };

  struct VoteHead;
  /// An agreement that this rank has begun.
  struct Agreement {
    std::uint32_t round = 0;
    std::uint32_t number = 0;              ///< for the new group
    std::vector<std::byte> members{};      ///< in the vote of this round
    std::vector<std::uint32_t> numbers{};  ///< that the ranks have voted with
  };
  struct Vote {
    std::uint32_t agreement, round;
    unsigned from;
    std::uint32_t number;
    bool is_decided;
    std::vector<std::byte> members;  ///< by rank of the group: 1 for one that is alive
  };

  void received(Rank from, GroupHub::Kind kind, std::uint64_t step,
                std::span<const std::byte> body) noexcept override;
  void lost(Rank, const std::string&) noexcept override {}  // waits see it
  void take(unsigned from, std::uint64_t step, std::span<const std::byte> body, bool asks);
  void answer_probe(unsigned from, std::uint64_t operation, const CollectiveCall& theirs);
  std::string difference(unsigned from, std::uint64_t operation, const CollectiveCall& theirs) const
      WEIR_REQUIRES(mutex_);
  Message& add(std::uint64_t operation, std::uint32_t round, unsigned from) WEIR_REQUIRES(mutex_);
  Message* find(std::uint64_t operation, std::uint32_t round, unsigned from) WEIR_REQUIRES(mutex_);
  std::uint64_t consume(const Message& message, std::span<const std::byte> body)
      WEIR_REQUIRES(mutex_);
  bool mark_failed(std::uint64_t operation, const Outcome& why) noexcept;
  void post_failure(unsigned to, std::uint64_t operation, const Outcome& why);
  void throw_if_failed();
  [[noreturn]] void fail_lost(unsigned other);
  void take_vote(unsigned from, std::span<const std::byte> body);
  void vote(std::uint32_t agreement, std::uint32_t round, std::uint32_t number,
            std::span<const std::byte> members, bool is_decided);
  bool has_votes(std::uint32_t agreement, std::uint32_t round, std::span<const std::byte> members,
                 std::vector<Vote>& votes);
  void check_early();
  void wait(unsigned other, const sys::Atomic<bool>* arrived, std::uint64_t acknowledged);
  void acknowledge(unsigned to, std::uint64_t consumed) noexcept;
  void post(unsigned to, GroupHub::Kind kind, std::uint64_t step, std::span<const std::byte> body);
  std::optional<unsigned> number_of(Rank rank) const noexcept;

  CollectiveHub& hub_;
  const std::uint32_t number_;
  const std::vector<Rank> ranks_;
  unsigned rank_ = 0;
  std::uint64_t operation_ = 0;  ///< the current one, or the next one
  CollectiveCall call_{};
  std::string text_;  ///< of call_
  std::int64_t deadline_ns_ = 0;
  sys::Atomic<bool> is_in_use_{false};
  sys::Atomic<std::uint64_t> failed_at_{UINT64_MAX};  ///< the first operation that fails

  sys::Mutex mutex_;
  Outcome failure_ WEIR_GUARDED_BY(mutex_);
  std::vector<Began> history_ WEIR_GUARDED_BY(mutex_);
  std::list<Message> messages_ WEIR_GUARDED_BY(mutex_), free_ WEIR_GUARDED_BY(mutex_);
  std::vector<Vote> votes_ WEIR_GUARDED_BY(mutex_);
  std::uint32_t agreements_ = 0;  ///< that have ended
  std::optional<Agreement> agreement_;
  std::vector<Traffic> traffic_;  ///< by rank of the group
};

}  // namespace weir::rt
