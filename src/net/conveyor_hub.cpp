#include "net/conveyor_hub.hpp"

#include <iterator>
#include <utility>

#include "net/conveyor.hpp"
#include "net/wire.hpp"

namespace weir::rt {

void send(Port& port, Rank to, const ConveyorEnvelope& envelope, std::span<const std::byte> body) {
  port.post(to, Channel::conveyor, std::as_bytes(std::span(&envelope, 1)), body);
}

ConveyorHub::ConveyorHub(Port& port) : port_(port) { port_.listen(Channel::conveyor, this); }

ConveyorHub::~ConveyorHub() { port_.listen(Channel::conveyor, nullptr); }

std::uint32_t ConveyorHub::enter(Conveyor& conveyor) {
  const sys::Lock lock(mutex_);
  const std::uint32_t number = next_++;
  conveyors_.emplace(number, &conveyor);
  for (const auto& [rank, why] : lost_) conveyor.lost(rank, why);
  return number;
}

void ConveyorHub::leave(std::uint32_t number) noexcept {
  sys::Lock lock(mutex_);
  const auto found = conveyors_.find(number);
  const Conveyor* const leaving = found->second;
  conveyors_.erase(found);
  while (receiving_ == leaving) delivered_.wait(lock);
}

void ConveyorHub::release_later(std::uint32_t number, Rank rank, std::uint64_t blocks,
                                std::vector<std::byte*> memory) noexcept {
  try {
    {
      const sys::Lock lock(mutex_);
      lent_.push_back({number, rank, blocks, std::move(memory)});
    }
    return send(port_, rank, {number, ConveyorEnvelope::Kind::ask, true, 0, 0});
  } catch (...) {  // no memory, or the rank is lost: the port's destructor frees it
  }
}

/// Releases memory without holding mutex_: a thread that releases waits for the progress lock,
/// whose holder may wait for mutex_.
template <class IsOver>
void ConveyorHub::release(IsOver&& is_over) noexcept {
  std::list<Lent> over;
  {
    const sys::Lock lock(mutex_);
    for (auto at = lent_.begin(); at != lent_.end();) {
      const auto next = std::next(at);
      if (is_over(*at)) over.splice(over.end(), lent_, at);
      at = next;
    }
  }
  for (const Lent& lent : over) {
    for (std::byte* const memory : lent.memory) port_.release(memory);
  }
}

void ConveyorHub::on_message(Rank from, std::span<const std::byte> message) noexcept {
  ConveyorEnvelope envelope{.ask = true};
  try {
    envelope = cut_off<ConveyorEnvelope>(message);
    deliver(from, envelope, message);
  } catch (...) {
    const Outcome outcome = current_exception_outcome(WEIR_STATUS_INTERNAL);
    const bool waits = envelope.ask && from != port_.rank();  // which it could do forever
    if (waits)
      port_.drop(from, reason("cannot be answered about a conveyor: ", outcome.message.c_str()));
  }
}

void ConveyorHub::deliver(Rank from, const ConveyorEnvelope& envelope,
                          std::span<const std::byte> body) {
  using Kind = ConveyorEnvelope::Kind;
  sys::Lock lock(mutex_);
  const auto found = conveyors_.find(envelope.conveyor);
  if (found != conveyors_.end()) {
    Conveyor* const receiving = receiving_ = found->second;
    lock.unlock();
    receiving->arrived(from, envelope, body);
    lock.lock();
    receiving_ = nullptr;
    delivered_.notify_all();
    return;
  }
  lock.unlock();
  if (envelope.kind == Kind::ack || envelope.kind == Kind::refusal) {
    const bool all = envelope.kind == Kind::refusal;
    release([&](const Lent& lent) {
      return lent.conveyor == envelope.conveyor && lent.to == from &&
             (all || lent.blocks <= envelope.value);
    });
  } else {
    static constexpr char why[] = "it has destroyed the conveyor";
    send(port_, from, {envelope.conveyor, Kind::refusal, false, 0, 0},
         std::as_bytes(std::span(why, sizeof why - 1)));
  }
}

void ConveyorHub::on_rank_lost(Rank rank, const std::string& why) noexcept {
  {
    const sys::Lock lock(mutex_);
    try {
      lost_.emplace(rank, why);
    } catch (...) {  // no memory: Port::alive() reports the loss too
    }
    for (const auto& [number, conveyor] : conveyors_) conveyor->lost(rank, why);
  }
}

}  // namespace weir::rt
