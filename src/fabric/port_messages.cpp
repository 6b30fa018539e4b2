#include "fabric/port_messages.hpp"

#include <utility>

namespace weir::rt {

void PortMessages::listen(Channel channel, Listener* listener) {
  const PortProgress::ProgressLock progress_lock(progress_);
  queues_.listen(channel, listener);
}

/// Throws Error, also if the rank is lost.
void PortMessages::wait_for_room(Rank to, Channel channel, std::size_t bytes) {
  lost_ranks_.check_alive(to, "send to");
  if (to == transport_.info().rank) queues_.check_room_here(channel, bytes);
  if (progress_.is_held()) {
    queues_.check_room_inside(to, channel, bytes);
  } else if (!queues_.has_room(to)) {
    progress_.wait_until([&] { return queues_.has_room(to); }, -1, "room to send");
  }
}

void PortMessages::send(Rank to, Channel channel, std::span<const std::byte> head,
                        std::span<const std::byte> body) {
  wait_for_room(to, channel, head.size() + body.size());
  post(to, channel, head, body);
}

void PortMessages::post(Rank to, Channel channel, std::span<const std::byte> head,
                        std::span<const std::byte> body) {
  lost_ranks_.check_alive(to, "send to");
  const std::size_t bytes = head.size() + body.size();
  const bool inside = progress_.is_held();
  // After a part has been sent, the rest must be queued: allocate its memory first.
  Messages one = bytes > queues_.most() ? room_for(to, channel, bytes) : Messages();
  if (!one.empty()) one.front().inside = inside;
  if (to != transport_.info().rank && send_now(to, channel, {0, head, body}, one)) {
    const bool rest_waits = bytes > queues_.most() && one.empty();
    if (rest_waits) progress_.notify();
    return;
  }
  if (one.empty()) one = room_for(to, channel, bytes);
  one.front().fill({0, head, body}, 0);
  one.front().inside = inside;
  submit(std::move(one));
}

void PortMessages::send_reserved(Rank to, Channel channel, std::span<const std::byte> head,
                                 std::span<std::byte> body) {
  Reserved memory(body.data(), MessageQueues::Unreserve{&transport_.link()});
  wait_for_room(to, channel, head.size() + body.size());
  post(to, channel, head, std::move(memory), body.size());
}

void PortMessages::post_reserved(Rank to, Channel channel, std::span<const std::byte> head,
                                 std::span<std::byte> body) {
  post(to, channel, head, Reserved(body.data(), MessageQueues::Unreserve{&transport_.link()}),
       body.size());
}

void PortMessages::post(Rank to, Channel channel, std::span<const std::byte> head, Reserved body,
                        std::size_t body_bytes) {
  lost_ranks_.check_alive(to, "send to");
  {
    const PortProgress::ProgressLock progress_lock(progress_, std::try_to_lock);
    if (progress_lock && queues_.send_reserved(to, channel, head, body, body_bytes)) return;
  }
  Messages one = room_for(to, channel, head.size());
  MessageQueues::Message& message = one.front();
  message.bytes.assign(head.begin(), head.end());
  message.body = std::move(body);
  message.body_bytes = body_bytes;
  message.inside = progress_.is_held();
  submit(std::move(one));
}

/// Returns a list with one message, which has capacity but no bytes.
PortMessages::Messages PortMessages::room_for(Rank to, Channel channel, std::size_t bytes) {
  Messages one;
  one.push_back({to, channel, {}});
  one.front().bytes.reserve(bytes);
  return one;
}

bool PortMessages::send_now(Rank to, Channel channel, const MessageRest& message, Messages& room) {
  const PortProgress::ProgressLock progress_lock(progress_, std::try_to_lock);
  return progress_lock && queues_.send(to, channel, message, room);
}

void PortMessages::submit(Messages one) noexcept {
  queues_.submit(std::move(one));
  if (const PortProgress::ProgressLock progress_lock(progress_, std::try_to_lock); progress_lock) {
    queues_.take_submissions();
    queues_.push();
  }
  progress_.notify();
}

}  // namespace weir::rt
