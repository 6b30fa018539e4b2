// What waits in a port: messages for room or a listener, and operations for their completion.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/spin_lock.hpp"
#include "base/threads.hpp"
#include "fabric/lost_ranks.hpp"
#include "fabric/message_frames.hpp"
#include "fabric/transport.hpp"
#include "fabric/wait_registry.hpp"

namespace weir::rt {

/// Receives the messages of a channel.
class Listener {
 public:
  /// Receives a message, in the order in which `from` sent to this channel. The bytes are valid
  /// during the call only. Called on the thread that makes progress, one call at a time; may send,
  /// must not wait.
  virtual void on_message(Rank from, std::span<const std::byte> message) noexcept = 0;
  /// A rank is lost: it failed or left, and no message of it follows. Same thread. A new listener
  /// is called at once for ranks that are lost already.
  virtual void on_rank_lost(Rank rank, const std::string& why) noexcept = 0;

 protected:
  ~Listener() = default;
};

/// Sends messages when there is room, and delivers those that arrive.
class MessageQueues {
 public:
  /// Maximum size of a message that is sent in one frame.
  static constexpr std::size_t kFrameBytes = (64u << 10) + 512;

  struct Unreserve {
    Link* link;
    void operator()(std::byte* memory) const noexcept { link->unreserve(memory); }
  };
  /// Memory of the link with the body of a message.
  using Reserved = std::unique_ptr<std::byte, Unreserve>;
  struct Message {
    Rank rank;  ///< target, or source of a received message
    Channel channel;
    std::vector<std::byte> bytes;
    std::size_t sent = 0;        ///< sent bytes of `bytes`
    std::size_t before = 0;      ///< bytes of the message that were sent before `bytes`
    bool inside = false;         ///< a listener sent it
    Reserved body{};             ///< follows `bytes`; null: none
    std::size_t body_bytes = 0;  ///< size of `body`

    std::size_t size() const noexcept { return bytes.size() + body_bytes; }
    /// Copies the remainder of a message from an offset on. `bytes` has capacity for it.
    void fill(const MessageRest& rest, std::size_t from);
  };
  using Messages = std::list<Message>;  ///< nodes move between lists without allocation

  MessageQueues(Transport& transport, const LostRanks& lost_ranks, WaitRegistry& waits);

  /// Returns the maximum bytes of a message in a frame.
  std::size_t most() const noexcept { return most_; }

  // Any thread.
  /// Returns whether threads that may wait can queue a message for the rank.
  bool has_room(Rank to) const noexcept { return peers_[to].queued.load() <= kQueuedBytes; }
  /// Throws Error if too many messages wait for a listener of this rank.
  void check_room_here(Channel channel, std::size_t bytes) const;
  /// Throws Error if listeners, which must not wait, have queued too much for a rank. Messages of
  /// other threads and channels do not count, so that the program cannot make a subsystem of weir
  /// fail.
  void check_room_inside(Rank to, Channel channel, std::size_t bytes) const;
  /// Leaves a message to the holder of the progress lock.
  void submit(Messages one) noexcept;
  bool has_submissions() const noexcept { return submissions_.load() > 0; }

  // By the holder of the progress lock.
  /// Sets the listener of a channel, and gives it the messages that were kept for it.
  void listen(Channel channel, Listener* listener);
  /// Sends as much as the transport takes now, after earlier messages. If a part was sent, queues
  /// the rest, in `room`. Returns false if nothing was sent.
  bool send(Rank to, Channel channel, const MessageRest& message, Messages& room);
  /// The same with a body in reserved memory, which is sent as a whole; then the link owns it.
  bool send_reserved(Rank to, Channel channel, std::span<const std::byte> head, Reserved& body,
                     std::size_t body_bytes);
  /// Moves submitted messages to the queues. Returns whether there were any.
  bool take_submissions() noexcept;
  /// Sends queued messages and discards those for lost ranks. Returns whether something moved.
  bool push() noexcept;
  /// Delivers this rank's messages to itself.
  bool deliver_own() noexcept;
  /// Processes an arrived frame. Throws Error if it must be rejected.
  void arrived(Rank from, std::span<const std::byte> frame);
  void lost(Rank rank, const std::string& why) noexcept;
  /// Returns whether messages of this rank to itself are queued.
  bool unfinished() const noexcept { return !own_.empty(); }
  /// Returns whether no messages are queued.
  bool empty() const noexcept;
  /// Removes all listeners.
  void drop_listeners() noexcept { listeners_ = {}; }

 private:
  static constexpr std::size_t kQueuedBytes = 512u << 10;  ///< per rank, before send() blocks
  static constexpr std::size_t kKeptBytes = 64u << 20;     ///< where no thread can wait for room

  struct Peer {
    sys::Atomic<std::size_t> queued{0};  ///< bytes that wait for room
    /// Of these, from listeners, by channel.
    std::array<sys::Atomic<std::size_t>, kChannels> inside{};
    Messages messages;
    MessageAssembly assembly;
  };

  bool send_with_body(Rank to, Channel channel, std::span<const std::byte> head, Reserved& body,
                      std::size_t body_bytes);
  bool send_rest(Message& message);
  void note_waiting(const Message& message, bool begins) noexcept;
  bool push_to(Rank to);
  void deliver(Rank from, Channel channel, std::span<const std::byte> message);

  Transport& transport_;
  const TransportInfo& info_;
  const LostRanks& lost_ranks_;
  WaitRegistry& waits_;
  const std::size_t most_;  ///< maximum bytes of a message in a frame

  sys::Mutex mutex_;  // held briefly, never during a callback
  Messages submitted_ WEIR_GUARDED_BY(mutex_);
  sys::Atomic<std::uint32_t> submissions_{0};

  // By the holder of the progress lock.
  std::vector<Peer> peers_;
  std::vector<std::byte> spare_;  ///< empty memory for a large message of any peer
  std::array<Listener*, kChannels> listeners_{};
  std::array<Messages, kChannels> kept_;  ///< for future listeners
  std::array<sys::Atomic<std::size_t>, kChannels> kept_bytes_{};
  Messages own_;  ///< from this rank to itself
};

/// Receives the completion of an operation.
class Completion {
 public:
  /// `old` is the previous value of an atomic operation. Called on the thread that makes progress;
  /// must not wait.
  virtual void completed(std::int64_t old, const Outcome& outcome) noexcept = 0;

 protected:
  ~Completion() = default;
};

/// Starts operations when the transport takes them, and completes them.
class OperationQueues {
 public:
  /// The operations of a thread.
  struct Account {
    explicit Account(Rank ranks) : pending(ranks), failures(ranks) {}
    std::uint64_t thread = 0;  ///< number of the owning thread: thread-local addresses are reused
    std::vector<sys::Atomic<std::uint32_t>> pending;
    SpinLock lock;
    std::vector<Outcome> failures WEIR_GUARDED_BY(lock);  ///< by rank: the first failure
  };
  struct Started {
    Account* account;
    Completion* done;
    OneSided operation;
    std::list<Started>::iterator self;
  };
  using Operations = std::list<Started>;  ///< nodes move between lists without allocation

  OperationQueues(Transport& transport, const LostRanks& lost_ranks)
      : transport_(transport),
        info_(transport.info()),
        lost_ranks_(lost_ranks),
        waiting_(info_.ranks) {}

  // Any thread.
  /// Leaves operations to the holder of the progress lock.
  void submit(Operations& some) noexcept;
  bool has_submissions() const noexcept { return submissions_.load() > 0; }
  /// Delivers the completion of an operation, or its failure to the account.
  static void finish(const Started& started, std::int64_t old, Outcome outcome) noexcept;

  // By the holder of the progress lock.
  /// Starts operations on one rank, if there are any, after those that threads have submitted.
  void start(Operations& some) noexcept;
  /// Moves submitted operations to the queues. Returns whether there were any.
  bool take_submissions() noexcept;
  /// Starts operations as far as the transport takes them, and completes those on lost ranks.
  /// Returns whether something moved.
  bool push() noexcept;
  /// Called when the transport has completed an operation.
  void completed(void* token, std::int64_t old, Outcome outcome) noexcept;
  /// Returns whether an operation is in flight that progresses without its target.
  bool unfinished() const noexcept { return info_.shares_memory && transport_.unfinished(); }
  /// Returns whether no operations are queued.
  bool empty() const noexcept;

 private:
  bool push_to(Rank to);

  Transport& transport_;
  const TransportInfo& info_;
  const LostRanks& lost_ranks_;

  sys::Mutex mutex_;  // held briefly
  Operations submitted_ WEIR_GUARDED_BY(mutex_);
  sys::Atomic<std::uint32_t> submissions_{0};

  // By the holder of the progress lock.
  std::vector<Operations> waiting_;  ///< by rank
  Operations under_way_;             ///< started by the transport
};

}  // namespace weir::rt
