#include "hstreams/session.hpp"

#include <algorithm>
#include <string>

#include <hstreams/hStreams_common.h>

#include "hstreams/log.hpp"
#include "hstreams/machine.hpp"
#include "hstreams/openmp.hpp"

namespace weir::hs {

namespace {

bool is_host(const weir::Domain& domain) { return std::string(domain.info().backend) == "host"; }

}  // namespace

Session::Session(const Configuration& configuration)
    : configuration_(configuration),
      environment_(read_environment()),
      libraries_(configuration.sink_lists(), environment_, configuration.mkl() != HSTR_MKL_NONE),
      runtime_(open_machine(environment_)),
      sink_(runtime_),
      setup_(runtime_),
      checksums_(environment_.checksums, runtime_),
      default_openmp_(openmp_threads()) {
  const std::uint32_t limit = configuration.options().phys_domains_limit;
  for (std::size_t i = 0; i < runtime_.domain_count(); ++i) {
    const weir::Domain domain = runtime_.domain(i);
    if (is_host(domain) && !host_) {
      host_.emplace(HSTR_SRC_PHYS_DOMAIN, domain, environment_);
    } else if (cards_.size() < limit) {
      cards_.emplace_back(static_cast<HSTR_PHYS_DOM>(cards_.size()), domain, environment_);
    }
  }
  if (cards_.empty()) {
    fail(HSTR_RESULT_DEVICE_NOT_INITIALIZED,
         "there is no card in '{}', or phys_domains_limit is {}: WEIR_SIM_CARDS=1 simulates one",
         environment_.domains, limit);
  }
  domains_.emplace(HSTR_SRC_LOG_DOMAIN, LogicalDomain{&*host_, {}, {}});
  log(HSTR_LOG_LEVEL_LOG, HSTR_INFO_TYPE_MISC, "opened the host and {} cards", cards_.size());
}

bool Session::homogeneous() const {
  return std::all_of(cards_.begin(), cards_.end(),
                     [this](const PhysicalDomain& card) { return alike(card, cards_.front()); });
}

const PhysicalDomain& Session::physical(HSTR_PHYS_DOM id) const {
  if (id == HSTR_SRC_PHYS_DOMAIN) return *host_;
  if (id < 0 || static_cast<std::size_t>(id) >= cards_.size()) {
    fail(HSTR_RESULT_DOMAIN_OUT_OF_RANGE, "there is no physical domain {}: cards are 0 to {}", id,
         cards_.size() - 1);
  }
  return cards_[static_cast<std::size_t>(id)];
}

std::vector<const Queue*> Session::queues_on(const PhysicalDomain& physical) const {
  std::vector<const Queue*> found;
  for (const auto& [id, stream] : streams_) {
    if (&stream.queue->physical() == &physical) found.push_back(stream.queue.get());
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

CpuMask Session::available(HSTR_PHYS_DOM id) const {
  const PhysicalDomain& there = physical(id);
  const std::shared_lock lock(mutex_);
  CpuMask free = there.max;
  for (const Queue* queue : queues_on(there)) free &= ~queue->mask();
  return free;
}

std::vector<std::uint32_t> Session::oversubscription(HSTR_PHYS_DOM id) const {
  const PhysicalDomain& there = physical(id);
  const std::shared_lock lock(mutex_);
  std::vector<std::uint32_t> level(there.threads);
  for (const Queue* queue : queues_on(there)) {
    for (std::size_t thread = 0; thread < level.size(); ++thread) {
      level[thread] += queue->mask()[thread];
    }
  }
  return level;
}

}  // namespace weir::hs
