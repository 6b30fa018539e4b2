#include "net/conveyor_hub.hpp"

#include <cstring>

#include "net/conveyor.hpp"

namespace weir::rt {

void send(Port& port, Rank to, const ConveyorEnvelope& envelope, std::span<const std::byte> body) {
  port.send(to, Channel::conveyor, std::as_bytes(std::span(&envelope, 1)), body);
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

void ConveyorHub::arrived(Rank from, std::span<const std::byte> message) noexcept {
  ConveyorEnvelope envelope;
  if (message.size() < sizeof envelope) return;
  std::memcpy(&envelope, message.data(), sizeof envelope);
  try {
    deliver(from, envelope, message.subspan(sizeof envelope));
  } catch (...) {  // no memory, or `from` is gone, which comes as lost()
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
  } else if (envelope.kind == Kind::block || envelope.kind == Kind::ask) {
    lock.unlock();
    static constexpr char why[] = "it has destroyed the conveyor";
    send(port_, from, {envelope.conveyor, Kind::refusal, false, 0, 0},
         std::as_bytes(std::span(why, sizeof why - 1)));
  }
}

void ConveyorHub::lost(Rank rank, const std::string& why) noexcept {
  const sys::Lock lock(mutex_);
  try {
    lost_.emplace(rank, why);
  } catch (...) {  // no memory: alive() of the port knows it, too
  }
  for (const auto& [number, conveyor] : conveyors_) conveyor->lost(rank, why);
}

}  // namespace weir::rt
