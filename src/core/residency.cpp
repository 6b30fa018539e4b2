#include "core/residency.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"

namespace weir::rt {

namespace {

bool contains(const std::vector<Buffer*>& buffers, const Buffer* buffer) {
  return std::find(buffers.begin(), buffers.end(), buffer) != buffers.end();
}

Region whole(const Buffer& buffer) { return {.offset = 0, .row = buffer.bytes()}; }

}  // namespace

Residency::Residency(Device& device, std::uint16_t memory, std::function<void(Action&)> retry)
    : device_(device),
      memory_(memory),
      capacity_(device.info().memory_bytes),
      retry_(std::move(retry)) {}

const Residency::Buffers& Residency::needs_of(Action& action) {
  needs_.clear();
  for (Operand& operand : action.operands()) {
    if (operand.memory == memory_ && !contains(needs_, operand.buffer)) {
      operand.buffer->instance(memory_);
      needs_.push_back(operand.buffer);
    }
  }
  return needs_;
}

Residency::Grant Residency::acquire(Action& action, Outcome& why) noexcept {
  Action* next = nullptr;
  Grant result = Grant::refused;
  std::vector<CopyJob> copies;
  {
    sys::Lock lock(mutex_);
    const bool was_first = !waiting_.empty() && waiting_.front() == &action;
    if (was_first) front_notified_ = false;
    try {
      result = try_acquire(action, needs_of(action), why);
    } catch (...) {
      why = current_exception_outcome(WEIR_STATUS_INTERNAL);
    }
    if (was_first && result != Grant::waiting) {
      waiting_.pop_front();
      copy_failure_ = {};
      next = front_to_notify();
    }
    copies.swap(copies_);
  }
  for (const CopyJob& copy : copies) device_.copy(copy);
  if (next != nullptr) retry_(*next);
  return result;
}

/// Returns the first waiting action, nullptr if it was notified already.
Action* Residency::front_to_notify() noexcept {
  if (waiting_.empty() || std::exchange(front_notified_, true)) return nullptr;
  return waiting_.front();
}

Residency::Grant Residency::try_acquire(Action& action, const Buffers& needs, Outcome& why) {
  bool resident = true, moving = false;
  std::uint64_t wanted = 0, missing = 0;
  for (Buffer* buffer : needs) {
    const Instance& instance = instance_of(*buffer);
    if (instance.memory.adopted) continue;
    wanted += buffer->bytes();
    resident = resident && instance.state == Instance::State::resident;
    moving = moving || instance.state == Instance::State::evicting ||
             instance.state == Instance::State::restoring;
    if (instance.state == Instance::State::absent || instance.state == Instance::State::evicted) {
      missing += buffer->bytes();
    }
  }
  if (resident) {
    grant(action);
    return Grant::ready;
  }
  if (wanted > capacity_) {
    why = too_large(wanted);
    return Grant::refused;
  }
  const bool first = waiting_.empty() || waiting_.front() == &action;
  if (first && !copy_failure_.ok()) {
    why = std::exchange(copy_failure_, {});
    return Grant::refused;
  }
  if (!first || moving || !make_room(needs, missing)) return wait(action);
  allocate(needs);
  for (Buffer* buffer : needs) {
    if (instance_of(*buffer).state != Instance::State::resident) return wait(action);
  }
  grant(action);
  return Grant::ready;
}

void Residency::grant(Action& action) noexcept {
  ++uses_;
  for (const Operand& operand : action.operands()) {
    if (operand.memory != memory_) continue;
    Instance& instance = instance_of(*operand.buffer);
    assert(instance.state == Instance::State::resident);
    ++instance.users;
    instance.last_use = uses_;
    instance.dirty = instance.dirty || operand.writes();
  }
}

Residency::Grant Residency::wait(Action& action) {
  if (std::find(waiting_.begin(), waiting_.end(), &action) == waiting_.end()) {
    waiting_.push_back(&action);
  }
  return Grant::waiting;
}

/// Evicts until `missing` bytes are or will be free. Returns whether they are free now.
bool Residency::make_room(const Buffers& needs, std::uint64_t missing) {
  while (used() - evicting_bytes_ + missing > capacity_) {
    Buffer* victim = nullptr;
    for (Buffer* buffer : present_) {
      const Instance& instance = instance_of(*buffer);
      const bool free_to_go = instance.state == Instance::State::resident && instance.users == 0;
      if (!free_to_go || contains(needs, buffer)) continue;
      if (victim == nullptr || instance.last_use < instance_of(*victim).last_use) victim = buffer;
    }
    if (victim == nullptr) return false;
    evict(*victim);
  }
  return used() + missing <= capacity_;
}

void Residency::allocate(const Buffers& needs) {
  for (Buffer* buffer : needs) {
    Instance& instance = instance_of(*buffer);
    const bool was_here = instance.state == Instance::State::evicted;
    if (!was_here && instance.state != Instance::State::absent) continue;
    present_.reserve(present_.size() + 1);
    copies_.reserve(copies_.size() + 1);
    instance.memory = allocation_for(*buffer);
    present_.push_back(buffer);
    used_.fetch_add(buffer->bytes(), std::memory_order_relaxed);
    instance.state = Instance::State::resident;
    if (was_here) restore(*buffer);
  }
}

Memory Residency::allocation_for(const Buffer& buffer) const {
  try {
    return device_.allocate(buffer.bytes());
  } catch (const Error& error) {
    if (error.status() != WEIR_STATUS_OUT_OF_MEMORY) throw;
    fail(WEIR_STATUS_OUT_OF_MEMORY, "{}{}", error.what(), largest());
  }
}

void Residency::evict(Buffer& buffer) {
  Instance& instance = instance_of(buffer);
  assert(instance.state == Instance::State::resident && instance.users == 0);
  if (!instance.dirty) {
    drop(buffer);
    instance.state = instance.evicted ? Instance::State::evicted : Instance::State::absent;
    return;
  }
  copies_.reserve(copies_.size() + 1);
  if (!instance.evicted) instance.evicted.reset(new std::byte[buffer.bytes()]);
  instance.state = Instance::State::evicting;
  evicting_bytes_ += buffer.bytes();
  bytes_moved_.fetch_add(buffer.bytes(), std::memory_order_relaxed);
  copies_.push_back(
      {.source = device_end(buffer), .target = host_end(buffer), .sink = this, .token = &buffer});
}

void Residency::restore(Buffer& buffer) noexcept {
  Instance& instance = instance_of(buffer);
  instance.state = Instance::State::restoring;
  bytes_moved_.fetch_add(buffer.bytes(), std::memory_order_relaxed);
  copies_.push_back(
      {.source = host_end(buffer), .target = device_end(buffer), .sink = this, .token = &buffer});
}

CopyEnd Residency::device_end(const Buffer& buffer) const noexcept {
  auto* const base = static_cast<std::byte*>(instance_of(buffer).memory.address);
  return {&device_, base, whole(buffer)};
}

CopyEnd Residency::host_end(const Buffer& buffer) const noexcept {
  return {nullptr, instance_of(buffer).evicted.get(), whole(buffer)};
}

void Residency::adopt(Buffer& buffer, void* address) {
  const auto* const begin = static_cast<const std::byte*>(address);
  const sys::Lock lock(mutex_);
  for (const Buffer* other : adopted_) {
    const auto* const there = static_cast<const std::byte*>(instance_of(*other).memory.address);
    if (there < begin + buffer.bytes() && begin < there + other->bytes()) {
      fail_argument("buffer '{}' ({} bytes at {}) overlaps buffer '{}' ({} bytes at {})",
                    buffer.name(), buffer.bytes(), fmt::ptr(begin), other->name(), other->bytes(),
                    fmt::ptr(there));
    }
  }
  adopted_.reserve(adopted_.size() + 1);
  Instance& instance = buffer.instance(memory_);
  instance.memory = device_.adopt(address, buffer.bytes());
  instance.state = Instance::State::resident;
  adopted_.push_back(&buffer);
}

void Residency::drop(Buffer& buffer) noexcept {
  const bool adopted = instance_of(buffer).memory.adopted;
  device_.release(instance_of(buffer).memory);
  std::erase(adopted ? adopted_ : present_, &buffer);
  if (adopted) return;
  used_.fetch_sub(buffer.bytes(), std::memory_order_relaxed);
}

void Residency::copied(void* token, Outcome outcome, std::int64_t, std::int64_t) noexcept {
  Buffer& buffer = *static_cast<Buffer*>(token);
  Action* next = nullptr;
  {
    sys::Lock lock(mutex_);
    Instance& instance = instance_of(buffer);
    if (instance.state == Instance::State::evicting) {
      assert(evicting_bytes_ >= buffer.bytes());
      evicting_bytes_ -= buffer.bytes();
      instance.state = outcome.ok() ? Instance::State::evicted : Instance::State::resident;
      if (outcome.ok()) {
        instance.dirty = false;
        drop(buffer);
      }
    } else {
      assert(instance.state == Instance::State::restoring);
      instance.state = Instance::State::resident;
      if (!outcome.ok()) {
        drop(buffer);
        instance.state = Instance::State::evicted;
      }
    }
    if (!outcome.ok() && !waiting_.empty()) copy_failure_ = std::move(outcome);
    next = front_to_notify();
  }
  if (next != nullptr) retry_(*next);
}

void Residency::release(Action& action) noexcept {
  Action* next = nullptr;
  {
    sys::Lock lock(mutex_);
    for (const Operand& operand : action.operands()) {
      if (operand.memory != memory_) continue;
      Instance& instance = instance_of(*operand.buffer);
      assert(instance.users > 0 && instance.state == Instance::State::resident);
      --instance.users;
    }
    next = front_to_notify();
  }
  if (next != nullptr) retry_(*next);
}

void Residency::cancel_request(const Action& action) noexcept {
  Action* next = nullptr;
  {
    sys::Lock lock(mutex_);
    const auto found = std::find(waiting_.begin(), waiting_.end(), &action);
    if (found == waiting_.end()) return;
    if (found == waiting_.begin()) {
      front_notified_ = false;
      copy_failure_ = {};
    }
    waiting_.erase(found);
    next = front_to_notify();
  }
  if (next != nullptr) retry_(*next);
}

bool Residency::is_waiting(const Action& action) const noexcept {
  sys::Lock lock(mutex_);
  return std::find(waiting_.begin(), waiting_.end(), &action) != waiting_.end();
}

bool Residency::free_instance(Buffer& buffer) noexcept {
  sys::Lock lock(mutex_);
  Instance* const instance = buffer.find_instance(memory_);
  if (instance == nullptr) return true;
  if (instance->state == Instance::State::evicting ||
      instance->state == Instance::State::restoring) {
    return false;
  }
  assert(instance->users == 0);
  if (instance->state == Instance::State::resident) drop(buffer);
  instance->state = Instance::State::absent;
  return true;
}

/// Returns "; largest there: 'A' 8 MiB, 'B' 64 KiB", "" if no instance is there.
std::string Residency::largest() const {
  Buffers holders = present_;
  std::sort(holders.begin(), holders.end(),
            [](const Buffer* a, const Buffer* b) { return a->bytes() > b->bytes(); });
  std::string list;
  for (std::size_t i = 0; i < std::min<std::size_t>(3, holders.size()); ++i) {
    list += fmt::format("{} '{}' {}", list.empty() ? "; largest there:" : ",", holders[i]->name(),
                        format_size(holders[i]->bytes()));
  }
  return list;
}

Outcome Residency::too_large(std::uint64_t wanted) const {
  return {WEIR_STATUS_OUT_OF_MEMORY,
          fmt::format("its operands need {} of domain '{}', which has {} ({} free){}; use smaller "
                      "buffers or raise memory=",
                      format_size(wanted), device_.info().name, format_size(capacity_),
                      format_size(capacity_ - std::min(capacity_, used())), largest())};
}

}  // namespace weir::rt
