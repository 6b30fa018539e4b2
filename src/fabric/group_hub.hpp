// Routes messages to objects that all ranks create together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/threads.hpp"
#include "fabric/port.hpp"

namespace weir::rt {

/// Numbers, of which most follow each other.
class NumberSet {
 public:
  bool contains(std::uint32_t number) const noexcept {
    const auto after = ends_.upper_bound(number);
    return after != ends_.begin() && number < std::prev(after)->second;
  }
  /// Throws std::bad_alloc.
  void insert(std::uint32_t number);

 private:
  std::map<std::uint32_t, std::uint32_t> ends_;  ///< of ranges, by their first number
};

/// Routes messages to objects of one kind (halos, shares, conveyors) that all ranks create in the
/// same order and that therefore have the same number on all ranks. Each kind has a channel.
class GroupHub : public Listener {
 public:
  /// The type of a message, defined by the kind of member.
  using Kind = std::uint16_t;
  /// In a Kind: not kept for a member that has not entered.
  static constexpr Kind kNotKept = 1u << 15;
  enum class Numbering : bool {
    in_order,  ///< all ranks create all objects in the same order
    given,     ///< the ranks of an object have agreed on a number that none of them has used
  };
  /// The front of each message.
  struct Head {
    std::uint32_t number;  ///< of the member
    Kind kind;
    std::uint16_t magic;
    std::uint64_t step;  ///< or another number, as the kind says
  };
  /// Maximum bytes per rank that are kept for members that have not entered yet. The hub drops a
  /// rank that sends more: the protocol of each kind keeps members within one step of each other.
  static constexpr std::size_t kMostEarly = 64u << 20;

  /// An object that receives messages, one at a time, on the thread that makes progress.
  class Member {
   public:
    virtual void received(Rank from, Kind kind, std::uint64_t step,
                          std::span<const std::byte> body) noexcept = 0;
    virtual void lost(Rank rank, const std::string& why) noexcept = 0;

   protected:
    ~Member() = default;
  };

  GroupHub(Port& port, Channel channel, Numbering numbering = Numbering::in_order)
      : GroupHub(port, channel, numbering, Derived()) {
    start_listening();
  }
  GroupHub(const GroupHub&) = delete;
  GroupHub& operator=(const GroupHub&) = delete;
  /// All members must have left. A derived class stops listening first, in its destructor.
  ~GroupHub();

  Port& port() noexcept { return port_; }

  /// Sets `number` to the next number, also when it throws. Delivers the messages that arrived
  /// earlier for this number before it returns.
  void enter(Member& member, std::uint32_t& number);
  /// The same with a given number.
  void enter_as(Member& member, std::uint32_t number);
  /// Takes the next number for an object that this rank could not create; its messages are dropped.
  std::uint32_t skip() noexcept;
  /// Drops the messages for a given number whose member this rank could not create.
  void refuse(std::uint32_t number) noexcept;
  /// When it returns, the member receives no more messages.
  void leave(std::uint32_t number) noexcept;

  static Head head(std::uint32_t number, Kind kind, std::uint64_t step) noexcept {
    return {number, kind, kMagic, step};
  }
  /// Sends a message to the member with that number on another rank. The body, which may have two
  /// parts, is copied once. post() does not wait for room: such messages are few. Throws Error.
  void send(Rank to, std::uint32_t number, Kind kind, std::uint64_t step,
            std::span<const std::byte> body);
  void send(Rank to, std::uint32_t number, Kind kind, std::uint64_t step,
            std::span<const std::byte> first, std::span<const std::byte> rest);
  void post(Rank to, std::uint32_t number, Kind kind, std::uint64_t step,
            std::span<const std::byte> body = {});
  void post(Rank to, std::uint32_t number, Kind kind, std::uint64_t step,
            std::span<const std::byte> first, std::span<const std::byte> rest);
  /// The same with a body in memory from Port::reserve(), which it gives back.
  void send_reserved(Rank to, std::uint32_t number, Kind kind, std::uint64_t step,
                     std::span<std::byte> body);

 protected:
  /// Returns whether a member with a given number has left.
  bool has_left(std::uint32_t number) noexcept {
    const sys::Lock lock(mutex_);
    return ended_.contains(number);
  }
  /// A message for a member that has left, or that is not kept. Called without a lock.
  virtual void on_stray(Rank, const Head&, std::span<const std::byte>) noexcept {}

  struct Derived {};
  /// Of a derived class, which starts listening in its constructor: messages need its virtual
  /// functions.
  GroupHub(Port& port, Channel channel, Numbering numbering, Derived);

  void start_listening() { port_.listen(channel_, this); }
  /// No message and no loss arrives afterwards.
  void stop_listening() noexcept { port_.listen(channel_, nullptr); }

 private:
  static constexpr std::uint16_t kMagic = 0x7267;

  struct Early {
    Rank from;
    Kind kind;
    std::uint64_t step;
    std::vector<std::byte> body;
  };

  void on_message(Rank from, std::span<const std::byte> message) noexcept override;
  void on_rank_lost(Rank rank, const std::string& why) noexcept override;
  void enter_inside(Member& member, std::uint32_t number) WEIR_REQUIRES(mutex_);
  bool is_early(const Head& head) const WEIR_REQUIRES(mutex_);
  void note_end(std::uint32_t number) noexcept WEIR_REQUIRES(mutex_);
  bool keep(Rank from, const Head& head, std::span<const std::byte> body) noexcept
      WEIR_REQUIRES(mutex_);
  Early take_early(std::multimap<std::uint32_t, Early>::iterator early) noexcept
      WEIR_REQUIRES(mutex_);
  /// Waits until no delivery is running.
  void wait_for_delivery(sys::Lock& lock) WEIR_REQUIRES(mutex_);
  /// Calls use(member) without the lock. No other member receives messages meanwhile.
  template <class Use>
  void deliver(Member& member, const Use& use) WEIR_REQUIRES(mutex_);

  Port& port_;
  const Channel channel_;
  const Numbering numbering_;
  sys::Mutex mutex_;
  sys::Condition delivered_;
  std::uint32_t next_ WEIR_GUARDED_BY(mutex_) = 0;
  std::map<std::uint32_t, Member*> members_ WEIR_GUARDED_BY(mutex_);
  NumberSet ended_ WEIR_GUARDED_BY(mutex_);  ///< given numbers of members that have left
  std::multimap<std::uint32_t, Early> early_
      WEIR_GUARDED_BY(mutex_);  ///< for numbers that no member has yet
  std::vector<std::size_t> early_bytes_ WEIR_GUARDED_BY(mutex_);  ///< by rank
  /// The member that is receiving a message, without the lock.
  Member* receiving_ WEIR_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace weir::rt
