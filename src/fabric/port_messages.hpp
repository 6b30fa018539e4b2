// The two-sided half of a port: messages to ranks, and to the listeners of channels.
#pragma once

#include <array>
#include <cstddef>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/threads.hpp"
#include "fabric/lost_ranks.hpp"
#include "fabric/message_frames.hpp"
#include "fabric/port_progress.hpp"
#include "fabric/transport.hpp"

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

/// Sends messages, or queues them until there is room, and delivers those that arrive.
class PortMessages {
 public:
  /// Maximum size of a message that is sent in one frame.
  static constexpr std::size_t kFrameBytes = (64u << 10) + 512;

  PortMessages(Transport& transport, const LostRanks& lost_ranks, PortProgress& progress);

  // See Port.
  void listen(Channel channel, Listener* listener);
  void send(Rank to, Channel channel, std::span<const std::byte> head,
            std::span<const std::byte> body);
  void post(Rank to, Channel channel, std::span<const std::byte> head,
            std::span<const std::byte> body);
  void send_reserved(Rank to, Channel channel, std::span<const std::byte> head,
                     std::span<std::byte> body);
  void post_reserved(Rank to, Channel channel, std::span<const std::byte> head,
                     std::span<std::byte> body);

  /// Returns whether other threads have submitted messages. Any thread.
  bool has_submissions() const noexcept { return submissions_.load() > 0; }

  // By the holder of the progress lock.
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
  };
  using Messages = std::list<Message>;  ///< nodes move between lists without allocation
  struct Peer {
    sys::Atomic<std::size_t> queued{0};  ///< bytes that wait for room
    /// Of these, from listeners, by channel.
    std::array<sys::Atomic<std::size_t>, kChannels> inside{};
    Messages messages;
    MessageAssembly assembly;
  };

  void check_room_here(Channel channel, std::size_t bytes) const;
  void check_room_inside(Rank to, Channel channel, std::size_t bytes) const;
  void wait_for_room(Rank to, Channel channel, std::size_t bytes);
  static Messages room_for(Rank to, Channel channel, std::size_t bytes);
  static void fill(Message& message, const MessageRest& rest, std::size_t from);
  bool send_now(Rank to, Channel channel, const MessageRest& message, Messages& room);
  void post(Rank to, Channel channel, std::span<const std::byte> head, Reserved body,
            std::size_t body_bytes);
  bool send_reserved_now(Rank to, Channel channel, std::span<const std::byte> head, Reserved& body,
                         std::size_t body_bytes);
  bool send_reserved(Rank to, Channel channel, std::span<const std::byte> head, Reserved& body,
                     std::size_t body_bytes);
  bool send_rest(Message& message);
  void note_waiting(const Message& message, bool begins) noexcept;
  void submit(Messages one) noexcept;
  bool push_to(Rank to);
  void deliver(Rank from, Channel channel, std::span<const std::byte> message);

  Transport& transport_;
  const TransportInfo& info_;
  const LostRanks& lost_ranks_;
  PortProgress& progress_;
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

}  // namespace weir::rt
