// Messages between two ranks of a group for which no thread waits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/threads.hpp"
#include "fabric/collective_call.hpp"
#include "fabric/group_hub.hpp"
#include "fabric/strided.hpp"

namespace weir::rt {

/// Messages between the ranks of a group, each of which matches one receive. Any thread; no call
/// waits.
///
/// The caller numbers the sends to a rank with a tag, and the receives from a rank with a tag:
/// those of the same number match. A short message is sent at once, and kept by its receiver until
/// it is received. For a long one, or if the receiver has kept much of this rank, the sender asks
/// first:
///
///     sender                       receiver
///     send(1, key, data)
///       request (key, bytes) ->
///                                  receive(0, key, into)
///                               <- ready (key)
///       data (key)             ->
///     done()                       done()
class TaggedMessages final : private GroupHub::Member {
 public:
  struct Key {
    std::uint32_t tag = 0, number = 0;
    auto operator<=>(const Key&) const = default;
  };
  /// In the number of a message of a collective operation, whose tag is the number of the
  /// operation.
  static constexpr std::uint32_t kOfCollective = 1u << 31;
  /// A send or receive. The caller owns it and its memory until done() is called, once.
  class Operation {
   public:
    unsigned peer = 0;  ///< rank in the group, not that of the caller
    Key key{};
    Strided memory{};  ///< must not be empty without a call
    /// Of a message of a collective operation: sent with it, and compared by its receiver.
    const CollectiveCall* call = nullptr;

    virtual void done(const Outcome& outcome) noexcept = 0;

   protected:
    ~Operation() = default;
  };

  /// `ranks`: of the fabric, by rank in the group. The hub has numbers that are given.
  TaggedMessages(GroupHub& hub, std::uint32_t number, std::vector<Rank> ranks);
  TaggedMessages(const TaggedMessages&) = delete;
  TaggedMessages& operator=(const TaggedMessages&) = delete;
  /// No operation may be incomplete. Those of other ranks with this one fail.
  ~TaggedMessages();

  void send(Operation& operation) noexcept;
  void receive(Operation& operation) noexcept;
  /// For a send or receive that will not be called: the other rank's operation fails.
  void refuse_send(unsigned to, Key key, const char* why) noexcept;
  void refuse_receive(unsigned from, Key key, const char* why) noexcept;
  /// Makes the operations in progress and all later ones fail, and so those of other ranks that
  /// match them.
  void fail_all(const Outcome& why) noexcept;
  /// The same on all ranks.
  void give_up(const Outcome& why) noexcept;

 private:
  static constexpr std::size_t kShort = 16u << 10;
  static constexpr std::size_t kMostKept = 1u << 20;  ///< by a receiver, of one sender
  static constexpr std::size_t kAckEvery = 64u << 10;

  enum class Kind : GroupHub::Kind {
    data,
    request,
    ready,
    send_refused,
    receive_refused,
    ack,
    destroyed,  ///< the rank has destroyed its end
    given_up,   ///< all messages fail
  };

  /// What a rank has received, or expects, under a key.
  struct Incoming {
    Operation* operation = nullptr;  ///< expects it
    bool is_requested = false;       ///< the sender waits for `ready`
    bool is_refused = false;         ///< by this rank
    Outcome failure{};               ///< of the sender, or why this rank refuses it
    std::vector<std::byte> data{};
  };
  struct Peer {
    std::map<Key, Incoming> incoming;
    std::map<Key, Operation*> outgoing;            ///< wait for `ready`
    std::uint64_t sent = 0, kept_until = 0;        ///< bytes of short messages; of these received
    std::uint64_t received = 0, acknowledged = 0;  ///< of this rank
    bool has_left = false;
  };

  void received(Rank from, GroupHub::Kind kind, std::uint64_t step,
                std::span<const std::byte> body) noexcept override;
  void lost(Rank rank, const std::string& why) noexcept override;
  void take(unsigned from, Key key, std::span<const std::byte> body);
  void take_request(unsigned from, Key key);
  void take_ready(unsigned from, Key key);
  void take_refusal(unsigned from, Key key, bool of_send, std::span<const std::byte> text);
  void fail_peer(unsigned peer, const Outcome& why) noexcept;
  Outcome why_not(unsigned peer) WEIR_REQUIRES(mutex_);
  bool note_received(Peer& peer, std::size_t bytes) WEIR_REQUIRES(mutex_);
  void post(unsigned to, Kind kind, std::uint64_t step, std::span<const std::byte> body = {});
  void complete_send(Operation& operation) noexcept;
  Outcome send_data(const Operation& operation) noexcept;
  unsigned rank_of(Rank rank) const noexcept;

  GroupHub& hub_;
  const std::uint32_t number_;
  const std::vector<Rank> ranks_;

  sys::Mutex mutex_;
  Outcome failure_ WEIR_GUARDED_BY(mutex_);
  std::vector<Peer> peers_ WEIR_GUARDED_BY(mutex_);
};

}  // namespace weir::rt
