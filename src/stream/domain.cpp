#include "stream/domain.hpp"

#include <algorithm>

#include "base/counted.hpp"

namespace weir::rt {

Domain::Domain(Context& context, std::size_t index, std::unique_ptr<Device> device,
               void (*retry)(Action&))
    : context_(context),
      index_(index),
      device_(std::move(device)),
      shares_host_(device_->info().aliases_host),
      residency_(*device_, static_cast<std::uint16_t>(index + 1), retry),
      core_users_(device_->info().cores, 0) {}

std::size_t Domain::free_cores() const {
  sys::Lock lock(mutex_);
  return static_cast<std::size_t>(std::count(core_users_.begin(), core_users_.end(), 0u));
}

void Domain::require_cores() const {
  if (info().cores > 0) return;
  fail(WEIR_STATUS_UNSUPPORTED,
       "domain '{}' has no cores to make a place of: run kernels in another, such as host", name());
}

std::vector<unsigned> Domain::take_cores(const std::vector<unsigned>& wanted, std::size_t count,
                                         bool oversubscribe) {
  require_cores();
  sys::Lock lock(mutex_);
  std::vector<unsigned> cores = wanted;
  for (const unsigned core : wanted) {
    if (core >= core_users_.size()) {
      fail_argument("domain '{}' has no core {}: it has {}", name(), core, core_users_.size());
    }
    if (std::count(wanted.begin(), wanted.end(), core) > 1) {
      fail_argument("core {} is given twice for one place of domain '{}'", core, name());
    }
    if (core_users_[core] > 0 && !oversubscribe) {
      fail(WEIR_STATUS_BUSY,
           "core {} of domain '{}' is in another place; set oversubscribe to share", core, name());
    }
  }
  if (cores.empty()) {
    // Free cores first; with oversubscription those with the fewest places next.
    std::vector<unsigned> order(core_users_.size());
    for (unsigned i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(),
                     [this](unsigned a, unsigned b)
                         WEIR_REQUIRES(mutex_) { return core_users_[a] < core_users_[b]; });
    const auto free =
        static_cast<std::size_t>(std::count(core_users_.begin(), core_users_.end(), 0u));
    const std::size_t available = oversubscribe ? order.size() : free;
    if (count == 0) count = free > 0 ? free : available;
    if (count == 0 || count > available) {
      const bool busy = available < order.size();
      fail(busy ? WEIR_STATUS_BUSY : WEIR_STATUS_INVALID_ARGUMENT,
           "a place of {} does not fit in domain '{}': it has {}, of which {} {} free{}",
           counted(std::max<std::size_t>(count, 1), "core"), name(), counted(order.size(), "core"),
           free, is_or_are(free),
           busy ? "; destroy another place, or set oversubscribe to share cores" : "");
    }
    cores.assign(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count));
    std::sort(cores.begin(), cores.end());
  }
  for (const unsigned core : cores) ++core_users_[core];
  return cores;
}

void Domain::return_cores(const std::vector<unsigned>& cores) noexcept {
  sys::Lock lock(mutex_);
  for (const unsigned core : cores) --core_users_[core];
}

}  // namespace weir::rt
