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
#include "net/lost_ranks.hpp"
#include "net/message_frames.hpp"
#include "net/port_progress.hpp"
#include "net/transport.hpp"

namespace weir::rt {

/// Takes the messages of a channel.
class Listener {
 public:
  /// A message, in the order in which `from` sent to this channel. The bytes are gone when it
  /// returns. On the thread that makes progress, one at a time; may send, must not wait.
  virtual void on_message(Rank from, std::span<const std::byte> message) noexcept = 0;
  /// A rank is gone: it was lost, or it has left. Nothing of it comes afterwards. Same thread. Who
  /// begins to listen is told at once of those that are gone already.
  virtual void on_rank_lost(Rank rank, const std::string& why) noexcept = 0;

 protected:
  ~Listener() = default;
};

/// Sends messages, or keeps them until there is room, and hands over those that arrive.
class PortMessages {
 public:
  /// Most bytes of a message that travel in one frame.
  static constexpr std::size_t kFrameBytes = (64u << 10) + 512;

  PortMessages(Transport& transport, const LostRanks& lost_ranks, PortProgress& progress);

  // As in Port.
  void listen(Channel channel, Listener* listener);
  void send(Rank to, Channel channel, std::span<const std::byte> head,
            std::span<const std::byte> body);
  void post(Rank to, Channel channel, std::span<const std::byte> head,
            std::span<const std::byte> body);
  void send_reserved(Rank to, Channel channel, std::span<const std::byte> head,
                     std::span<std::byte> body);
  void post_reserved(Rank to, Channel channel, std::span<const std::byte> head,
                     std::span<std::byte> body);

  /// Whether other threads have left messages. Any thread.
  bool has_submissions() const noexcept { return submissions_.load() > 0; }

  // Whoever holds the turn.
  /// Takes over what others have left. Returns whether there was something.
  bool take_submissions() noexcept;
  /// Sends what can be sent, and forgets what is for a rank that is gone. Returns whether something
  /// moved.
  bool push() noexcept;
  /// Hands this rank's messages to itself over.
  bool deliver_own() noexcept;
  /// A frame has arrived. Throws Error when it is to be refused.
  void arrived(Rank from, std::span<const std::byte> frame);
  void lost(Rank rank, const std::string& why) noexcept;
  /// Whether this rank has messages to itself.
  bool unfinished() const noexcept { return !own_.empty(); }
  /// Whether nothing waits to be sent.
  bool empty() const noexcept;
  /// Nobody listens from now on.
  void drop_listeners() noexcept { listeners_ = {}; }

 private:
  static constexpr std::size_t kQueuedBytes = 512u << 10;  ///< to one rank, before send() blocks
  static constexpr std::size_t kKeptBytes = 64u << 20;     ///< where nobody can wait for room

  struct Unreserve {
    Transport* transport;
    void operator()(std::byte* memory) const noexcept { transport->unreserve(memory); }
  };
  /// Memory of the transport's, with the body of a message.
  using Reserved = std::unique_ptr<std::byte, Unreserve>;
  struct Message {
    Rank rank;  ///< to which it goes, or that it is from
    Channel channel;
    std::vector<std::byte> bytes;
    std::size_t sent = 0;        ///< of these
    std::size_t before = 0;      ///< bytes of the message that went out before these
    bool inside = false;         ///< a listener has sent it
    Reserved body{};             ///< behind the bytes; null: none
    std::size_t body_bytes = 0;  ///< of it

    std::size_t size() const noexcept { return bytes.size() + body_bytes; }
  };
  using Messages = std::list<Message>;  ///< these go from list to list without memory
  struct Peer {
    sys::Atomic<std::size_t> queued{0};                        ///< bytes that wait for room
    std::array<sys::Atomic<std::size_t>, kChannels> inside{};  ///< of these, from listeners
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
  void note_waiting(const Message& message) noexcept;
  void note_over(const Message& message) noexcept;
  void submit(Messages one) noexcept;
  bool push_to(Rank to);
  void deliver(Rank from, Channel channel, std::span<const std::byte> message);

  Transport& transport_;
  const TransportInfo& info_;
  const LostRanks& lost_ranks_;
  PortProgress& progress_;
  const std::size_t most_;  ///< bytes of a message in a frame

  sys::Mutex mutex_;  // short, never across a call of others
  Messages submitted_ WEIR_GUARDED_BY(mutex_);
  sys::Atomic<std::uint32_t> submissions_{0};

  // Whoever holds the turn.
  std::vector<Peer> peers_;
  std::array<Listener*, kChannels> listeners_{};
  std::array<Messages, kChannels> kept_;  ///< for listeners that are to come
  std::array<sys::Atomic<std::size_t>, kChannels> kept_bytes_{};
  Messages own_;  ///< to this rank
};

}  // namespace weir::rt
