#include <algorithm>

#include <hstreams/hStreams_common.h>

#include "hstreams/log.hpp"
#include "hstreams/session.hpp"

namespace weir::hs {

namespace {

void check_mask(const CpuMask& mask) {
  if (mask.none()) fail(HSTR_RESULT_CPU_MASK_OUT_OF_RANGE, "the mask is empty");
}

}  // namespace

const LogicalDomain& Session::find_domain(HSTR_LOG_DOM id, HSTR_RESULT otherwise) const {
  const auto found = domains_.find(id);
  if (found == domains_.end()) fail(otherwise, "there is no logical domain {}", id);
  return found->second;
}

LogicalDomain Session::domain(HSTR_LOG_DOM id, HSTR_RESULT otherwise) const {
  const std::shared_lock lock(mutex_);
  return find_domain(id, otherwise);
}

HSTR_LOG_DOM Session::add_domain(HSTR_PHYS_DOM physical_id, const CpuMask& mask,
                                 HSTR_OVERLAP_TYPE& overlap) {
  check_mask(mask);
  const PhysicalDomain& there = physical(physical_id);
  if (!contains(there.max, mask)) {
    fail(HSTR_RESULT_CPU_MASK_OUT_OF_RANGE, "the mask reaches beyond the {} threads of domain {}",
         there.threads, physical_id);
  }
  const std::unique_lock lock(mutex_);
  HSTR_OVERLAP_TYPE found = HSTR_NO_OVERLAP;
  for (const auto& [id, other] : domains_) {
    if (other.physical != &there || (other.mask & mask).none()) continue;
    found = other.mask == mask ? HSTR_EXACT_OVERLAP : HSTR_PARTIAL_OVERLAP;
    if (found != HSTR_PARTIAL_OVERLAP) continue;
    overlap = found;
    fail(HSTR_RESULT_OVERLAPPING_RESOURCES,
         "the mask shares some threads with logical domain {}, but not all", id);
  }
  const HSTR_LOG_DOM id = next_domain_;
  domains_.emplace(id, LogicalDomain{&there, mask, {}});
  try {
    for (auto& [base, buffer] : buffers_) {
      if (buffer.has(HSTR_BUF_PROP_INCREMENTAL)) instantiate(buffer, id);
    }
  } catch (...) {
    for (auto& [base, buffer] : buffers_) buffer.instances.erase(id);
    domains_.erase(id);
    throw;
  }
  ++next_domain_;
  overlap = found;
  log(HSTR_LOG_LEVEL_DEBUG3, HSTR_INFO_TYPE_MISC, "logical domain {} has {} threads of domain {}",
      id, mask.count(), physical_id);
  return id;
}

void Session::remove_domain(HSTR_LOG_DOM id) {
  std::vector<std::shared_ptr<Queue>> queues;
  std::vector<std::shared_ptr<Instance>> instances;
  {
    const std::unique_lock lock(mutex_);
    const auto found = domains_.find(id);
    if (found == domains_.end() || id == HSTR_SRC_LOG_DOMAIN) {
      fail(HSTR_RESULT_NOT_FOUND, "there is no logical domain {} to remove", id);
    }
    for (const HSTR_LOG_STR stream : found->second.streams) {
      queues.push_back(streams_.at(stream).queue);
    }
    for (const auto& [base, buffer] : buffers_) {
      const auto there = buffer.instances.find(id);
      if (there != buffer.instances.end()) instances.push_back(there->second);
    }
    // Nothing below fails.
    for (const HSTR_LOG_STR stream : found->second.streams) streams_.erase(stream);
    for (auto& [base, buffer] : buffers_) buffer.instances.erase(id);
    domains_.erase(found);
  }
  queues.clear();
}

std::vector<HSTR_LOG_DOM> Session::domains_of(HSTR_PHYS_DOM physical_id) const {
  const PhysicalDomain& there = physical(physical_id);
  const std::shared_lock lock(mutex_);
  std::vector<HSTR_LOG_DOM> found;
  for (const auto& [id, each] : domains_) {
    if (id != HSTR_SRC_LOG_DOMAIN && each.physical == &there) found.push_back(id);
  }
  return found;
}

const LogicalStream& Session::find_stream(HSTR_LOG_STR id) const {
  const auto found = streams_.find(id);
  if (found == streams_.end()) fail(HSTR_RESULT_NOT_FOUND, "there is no stream {}", id);
  return found->second;
}

LogicalStream& Session::find_stream(HSTR_LOG_STR id) {
  return const_cast<LogicalStream&>(std::as_const(*this).find_stream(id));
}

void Session::create_stream(HSTR_LOG_STR id, HSTR_LOG_DOM domain_id, const CpuMask& mask) {
  check_mask(mask);
  const std::unique_lock lock(mutex_);
  if (streams_.contains(id)) fail(HSTR_RESULT_ALREADY_FOUND, "there is a stream {} already", id);
  find_domain(domain_id, HSTR_RESULT_DOMAIN_OUT_OF_RANGE);
  LogicalDomain& there = domains_.at(domain_id);
  if (!contains(there.mask, mask)) {
    fail(HSTR_RESULT_CPU_MASK_OUT_OF_RANGE, "the mask reaches beyond that of logical domain {}",
         domain_id);
  }
  std::shared_ptr<Queue> queue = queue_for(id, there, mask);
  there.streams.reserve(there.streams.size() + 1);
  LogicalStream& made = streams_[id];
  there.streams.push_back(id);
  made.domain = domain_id;
  made.mask = mask;
  made.queue = std::move(queue);
  log(HSTR_LOG_LEVEL_DEBUG3, HSTR_INFO_TYPE_MISC, "stream {} has {} threads of logical domain {}",
      id, mask.count(), domain_id);
}

std::shared_ptr<Queue> Session::queue_for(HSTR_LOG_STR id, const LogicalDomain& domain,
                                          const CpuMask& mask) {
  for (const HSTR_LOG_STR other : domain.streams) {
    const LogicalStream& there = streams_.at(other);
    if (there.mask == mask) return there.queue;
  }
  return make_queue(*domain.physical, mask, fmt::format("stream {}", id));
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
  std::shared_ptr<Queue> queue;
  const std::unique_lock lock(mutex_);
  queue = find_stream(id).queue;
  std::erase(domains_.at(find_stream(id).domain).streams, id);
  streams_.erase(id);
}

CpuMask Session::stream_mask(HSTR_LOG_STR id) const {
  const std::shared_lock lock(mutex_);
  return find_stream(id).mask;
}

std::vector<std::shared_ptr<Queue>> Session::all_queues() const {
  const std::shared_lock lock(mutex_);
  std::vector<std::shared_ptr<Queue>> found;
  for (const auto& [id, stream] : streams_) found.push_back(stream.queue);
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

}  // namespace weir::hs
