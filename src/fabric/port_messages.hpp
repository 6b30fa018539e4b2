// The two-sided half of a port: messages to ranks, and to the listeners of channels.
#pragma once

#include <cstddef>
#include <span>

#include "fabric/port_progress.hpp"
#include "fabric/port_queues.hpp"

namespace weir::rt {

/// Sends messages of all threads, or queues them until there is room.
class PortMessages {
 public:
  PortMessages(MessageQueues& queues, Transport& transport, const LostRanks& lost_ranks,
               PortProgress& progress) noexcept
      : queues_(queues), transport_(transport), lost_ranks_(lost_ranks), progress_(progress) {}

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

 private:
  using Messages = MessageQueues::Messages;
  using Reserved = MessageQueues::Reserved;

  void wait_for_room(Rank to, Channel channel, std::size_t bytes);
  static Messages room_for(Rank to, Channel channel, std::size_t bytes);
  bool send_now(Rank to, Channel channel, const MessageRest& message, Messages& room);
  void post(Rank to, Channel channel, std::span<const std::byte> head, Reserved body,
            std::size_t body_bytes);
  void submit(Messages one) noexcept;

  MessageQueues& queues_;
  Transport& transport_;
  const LostRanks& lost_ranks_;
  PortProgress& progress_;
};

}  // namespace weir::rt
