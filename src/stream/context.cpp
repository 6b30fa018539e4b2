#include "stream/context.hpp"

#include <algorithm>
#include <bit>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/config.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "base/thread_role.hpp"
#include "stream/completion_listener.hpp"

namespace weir::rt {

namespace {

std::uint64_t next_number() {
  static sys::Atomic<std::uint32_t> made{0};
  return made.fetch_add(1, std::memory_order_relaxed) + std::uint64_t{1};
}

/// The memories of an action's operands: calls act(memory) for each but the host's, in ascending
/// order, until it returns false.
class DeviceMemories {
 public:
  explicit DeviceMemories(const Action& action) noexcept {
    for (const Operand& operand : action.operands()) bits_ |= std::uint64_t{1} << operand.memory;
    bits_ &= ~std::uint64_t{1};
  }

  template <class Act>
  void each(Act&& act) const {
    for (std::uint64_t remaining = bits_; remaining != 0; remaining &= remaining - 1) {
      if (!act(static_cast<std::size_t>(std::countr_zero(remaining)))) return;
    }
  }

 private:
  std::uint64_t bits_ = 0;
};

}  // namespace

Context::Context()
    : number_(next_number()),
      machine_(read_machine()),
      watchdog_limit_ns_(config::watchdog_ns()),
      spin_ns_(config::spin_ns()),
      max_in_flight_(config::max_in_flight()) {}

void Context::add_domain(weir_domain& domain) {
  domains_.push_back(&domain);
  virtual_time_ = virtual_time_ || domain.info().virtual_time;
  if (domain.info().needs_polling) polled_devices_.push_back(&domain.device());
}

weir_domain& Context::find_domain(const std::string& name) const {
  weir_domain* found = nullptr;
  std::vector<std::string> names;
  std::size_t of_backend = 0;
  for (weir_domain* const domain : domains_) {
    if (domain->name() == name) return *domain;
    names.push_back(domain->name());
    if (domain->info().backend == name) {
      found = domain;
      ++of_backend;
    }
  }
  if (of_backend == 1) return *found;
  if (of_backend > 1) {
    fail_argument("{} domains are of backend '{}': name one, such as '{}'", of_backend, name,
                  found->name());
  }
  fail(WEIR_STATUS_NOT_FOUND, "no domain '{}'{}; there is: {}", name, did_you_mean(name, names),
       fmt::join(names, ", "));
}

weir_kernel& Context::service_kernel(const char* name, weir_host_function function) {
  if (const auto names = kernels_.names();
      std::find(names.begin(), names.end(), name) != names.end()) {
    return kernels_.find(name);
  }
  const weir_implementation implementation = {"host", function, nullptr};
  weir_kernel_options options = WEIR_KERNEL_OPTIONS_INIT;
  options.name = name;
  options.implementations = &implementation;
  options.implementation_count = 1;
  try {
    return add_kernel(options);
  } catch (const Error& error) {  // another thread may have added it
    if (error.status() != WEIR_STATUS_INVALID_ARGUMENT) throw;
    return kernels_.find(name);
  }
}

// ---- Events ------------------------------------------------------------------------------------

void Context::check_event(const weir_event& event) const {
  const auto [name, id] = event.opaque;
  if (id == 0) return;
  const std::uint64_t serial = id >> Action::kSequenceBits;
  // Large if the number of the runtime differs.
  const std::uint64_t slot = name - (number_ << kSlotBits);
  const bool known =
      serial != 0 && serial <= serials_.load(std::memory_order_acquire) &&
      (slot < Ticket::kMark ? actions_.at(slot) != nullptr : tickets_.at(slot) != nullptr);
  if (!known) fail_argument("not an event of this runtime (words {:#x} {:#x})", name, id);
}

void Context::listen(const weir_event& event,
                     std::unique_ptr<CompletionListener> listener) noexcept {
  const std::uint64_t id = event.opaque[1];
  if (id != 0 && slot_of(event).watch(id, *listener)) {
    static_cast<void>(listener.release());
    return;
  }
  const FailureLog::Entry entry = id != 0 ? failures_.find(id) : FailureLog::Entry{};
  const NoWaitScope no_wait;
  listener->completed(entry.status, entry.failure);
}

std::uint64_t Context::next_serial() {
  constexpr std::uint64_t kMost = (std::uint64_t{1} << (63 - Action::kSequenceBits)) - 1;
  std::uint64_t made = serials_.load(std::memory_order_relaxed);
  do {
    if (made == kMost) {
      fail(WEIR_STATUS_UNAVAILABLE,
           "{} streams and queues have been made: there are no ids for more", made);
    }
  } while (!serials_.compare_exchange_weak(made, made + 1, std::memory_order_acq_rel));
  return made + 1;
}

// ---- Device memory -----------------------------------------------------------------------------

Residency::Grant Context::acquire_memory(Action& action, Outcome& why) noexcept {
  const DeviceMemories memories(action);
  auto grant = Residency::Grant::ready;
  std::size_t stopped = 0;
  memories.each([&](std::size_t memory) {
    stopped = memory;
    grant = domains_[memory - 1]->residency().acquire(action, why);
    return grant == Residency::Grant::ready;
  });
  if (grant == Residency::Grant::ready) return grant;
  memories.each([&](std::size_t memory) {
    Residency& residency = domains_[memory - 1]->residency();
    if (memory < stopped) residency.release(action);
    // The action may have an earlier request in one of the later memories.
    if (memory > stopped && grant == Residency::Grant::refused) residency.cancel_request(action);
    return true;
  });
  return grant;
}

void Context::release_memory(Action& action) noexcept {
  DeviceMemories(action).each([&](std::size_t memory) {
    domains_[memory - 1]->residency().release(action);
    return true;
  });
}

void Context::cancel_memory_request(const Action& action) noexcept {
  DeviceMemories(action).each([&](std::size_t memory) {
    domains_[memory - 1]->residency().cancel_request(action);
    return true;
  });
}

std::string Context::awaited_memory(const Action& action) const {
  std::string name;
  DeviceMemories(action).each([&](std::size_t memory) {
    const Domain& domain = *domains_[memory - 1];
    if (domain.residency().is_waiting(action)) name = domain.name();
    return name.empty();
  });
  return name;
}

void Context::forget_instances_of(Buffer& buffer) noexcept {
  for (weir_domain* const domain : domains_) {
    while (!domain->residency().free_instance(buffer)) pass_time();
  }
}

// ---- Time --------------------------------------------------------------------------------------

void Context::pass_time() noexcept {
  constexpr std::int64_t kSleepNs = 50'000;
  if (!virtual_time_ || !drive()) sys::sleep_until(sys::now_ns() + kSleepNs);
}

bool Context::drive() noexcept {
  if (!driving_.try_lock()) return false;
  const bool moved = std::any_of(domains_.begin(), domains_.end(),
                                 [](weir_domain* domain) { return domain->device().drive(); });
  driving_.unlock();
  return moved;
}

}  // namespace weir::rt
