#include "hstreams/session.hpp"

#include <hstreams/hStreams_common.h>

#include "hstreams/error.hpp"
#include "hstreams/log.hpp"
#include "hstreams/machine.hpp"

namespace weir::hs {

namespace {

void check_mask(const CpuMask& mask) {
  if (mask.none()) fail(HSTR_RESULT_CPU_MASK_OUT_OF_RANGE, "the mask is empty");
}

}  // namespace

Session::Session(const Configuration& configuration)
    : configuration_(configuration),
      environment_(read_environment()),
      libraries_(configuration.sink_lists(), environment_, configuration.mkl() != HSTR_MKL_NONE),
      runtime_(open_machine(environment_)),
      sink_(runtime_),
      setup_(runtime_),
      checksums_(environment_.checksums, runtime_),
      default_openmp_(openmp_threads()),
      physical_(runtime_, environment_, configuration.options().phys_domains_limit),
      domains_(physical_.host()),
      device_queues_(runtime_) {
  log(HSTR_LOG_LEVEL_LOG, HSTR_INFO_TYPE_MISC, "opened the host and {} devices",
      physical_.devices().size());
}

CpuMask Session::available(HSTR_PHYS_DOM id) const {
  const PhysicalDomain& there = physical_.at(id);
  const std::shared_lock lock(mutex_);
  CpuMask free = there.max;
  for (const auto& queue : domains_.queues(&there)) free &= ~queue->mask();
  return free;
}

std::vector<std::uint32_t> Session::oversubscription(HSTR_PHYS_DOM id) const {
  const PhysicalDomain& there = physical_.at(id);
  const std::shared_lock lock(mutex_);
  std::vector<std::uint32_t> level(there.threads);
  for (const auto& queue : domains_.queues(&there)) {
    for (std::size_t thread = 0; thread < level.size(); ++thread) {
      level[thread] += queue->mask()[thread];
    }
  }
  return level;
}

LogicalDomain Session::domain(HSTR_LOG_DOM id, HSTR_RESULT otherwise) const {
  const std::shared_lock lock(mutex_);
  return domains_.find(id, otherwise);
}

std::vector<HSTR_LOG_DOM> Session::domains_of(HSTR_PHYS_DOM physical_id) const {
  const PhysicalDomain& there = physical_.at(physical_id);
  const std::shared_lock lock(mutex_);
  return domains_.ids(&there);
}

HSTR_LOG_DOM Session::add_domain(HSTR_PHYS_DOM physical_id, const CpuMask& mask,
                                 HSTR_OVERLAP_TYPE& overlap) {
  check_mask(mask);
  const PhysicalDomain& there = physical_.at(physical_id);
  if (!contains(there.max, mask)) {
    fail(HSTR_RESULT_CPU_MASK_OUT_OF_RANGE, "the mask reaches beyond the {} threads of domain {}",
         there.threads, physical_id);
  }
  const std::unique_lock lock(mutex_);
  const HSTR_LOG_DOM id = domains_.add(there, mask, overlap);
  try {
    for (auto& [base, buffer] : buffers_) {
      if (buffer.has(HSTR_BUF_PROP_INCREMENTAL)) instantiate(buffer, id);
    }
  } catch (...) {
    for (auto& [base, buffer] : buffers_) buffer.instances.erase(id);
    domains_.undo_add(id);
    throw;
  }
  log(HSTR_LOG_LEVEL_DEBUG3, HSTR_INFO_TYPE_MISC, "logical domain {} has {} threads of domain {}",
      id, mask.count(), physical_id);
  return id;
}

void Session::remove_domain(HSTR_LOG_DOM id) {
  // Destroyed without the lock, the queues first: they wait for actions that use the instances.
  std::vector<std::shared_ptr<Instance>> instances;
  std::vector<std::shared_ptr<Queue>> queues;
  const std::unique_lock lock(mutex_);
  for (const auto& [base, buffer] : buffers_) {
    const auto there = buffer.instances.find(id);
    if (there != buffer.instances.end()) instances.push_back(there->second);
  }
  queues = domains_.remove(id);
  for (auto& [base, buffer] : buffers_) buffer.instances.erase(id);
}

void Session::create_stream(HSTR_LOG_STR id, HSTR_LOG_DOM domain, const CpuMask& mask) {
  check_mask(mask);
  const std::unique_lock lock(mutex_);
  std::shared_ptr<Queue> queue = domains_.queue_for(id, domain, mask);
  if (queue == nullptr) {
    const LogicalDomain& there = domains_.find(domain, HSTR_RESULT_DOMAIN_OUT_OF_RANGE);
    queue = make_queue(*there.physical, mask, fmt::format("stream {}", id));
  }
  domains_.add_stream(id, domain, mask, std::move(queue));
  log(HSTR_LOG_LEVEL_DEBUG3, HSTR_INFO_TYPE_MISC, "stream {} has {} threads of logical domain {}",
      id, mask.count(), domain);
}

/// Creates a queue, and starts its OpenMP threads before its first sink function is called.
std::shared_ptr<Queue> Session::make_queue(const PhysicalDomain& physical, const CpuMask& mask,
                                           const std::string& name) {
  const bool on_demand = configuration_.options().openmp_policy == HSTR_OPENMP_ON_DEMAND;
  auto queue =
      std::make_shared<Queue>(runtime_, physical, mask, name, on_demand ? default_openmp_ : 0);
  if (!has_openmp()) return queue;
  census_.add(1);
  if (on_demand) return queue;
  try {
    wait_for(queue->run(setup_.start_openmp(), {}, {}, HSTR_DEP_POLICY_BUFFERS));
  } catch (const weir::Error& error) {
    if (error.status() != WEIR_STATUS_UNSUPPORTED) throw;  // it runs no sink functions
  }
  return queue;
}

void Session::destroy_stream(HSTR_LOG_STR id) {
  std::shared_ptr<Queue> queue;  // destroyed without the lock
  const std::unique_lock lock(mutex_);
  queue = domains_.remove_stream(id);
}

CpuMask Session::stream_mask(HSTR_LOG_STR id) const {
  const std::shared_lock lock(mutex_);
  return domains_.stream(id).mask;
}

}  // namespace weir::hs
