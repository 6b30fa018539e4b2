#include "hstreams/logical_domains.hpp"

#include <algorithm>
#include <utility>

#include <hstreams/hStreams_common.h>

#include "hstreams/error.hpp"

namespace weir::hs {

LogicalDomains::LogicalDomains(const PhysicalDomain& host) {
  domains_.emplace(HSTR_SRC_LOG_DOMAIN, LogicalDomain{&host, {}, {}});
}

const LogicalDomain& LogicalDomains::find(HSTR_LOG_DOM id, HSTR_RESULT otherwise) const {
  const auto found = domains_.find(id);
  if (found == domains_.end()) fail(otherwise, "there is no logical domain {}", id);
  return found->second;
}

std::vector<HSTR_LOG_DOM> LogicalDomains::ids(const PhysicalDomain* of) const {
  std::vector<HSTR_LOG_DOM> found;
  for (const auto& [id, each] : domains_) {
    if (id != HSTR_SRC_LOG_DOMAIN && (of == nullptr || each.physical == of)) found.push_back(id);
  }
  return found;
}

HSTR_LOG_DOM LogicalDomains::add(const PhysicalDomain& physical, const CpuMask& mask,
                                 HSTR_OVERLAP_TYPE& overlap) {
  HSTR_OVERLAP_TYPE found = HSTR_NO_OVERLAP;
  for (const auto& [id, other] : domains_) {
    if (other.physical != &physical || (other.mask & mask).none()) continue;
    found = other.mask == mask ? HSTR_EXACT_OVERLAP : HSTR_PARTIAL_OVERLAP;
    if (found != HSTR_PARTIAL_OVERLAP) continue;
    overlap = found;
    fail(HSTR_RESULT_OVERLAPPING_RESOURCES,
         "the mask shares some threads with logical domain {}, but not all", id);
  }
  domains_.emplace(next_, LogicalDomain{&physical, mask, {}});
  overlap = found;
  return next_++;
}

void LogicalDomains::undo_add(HSTR_LOG_DOM id) noexcept {
  domains_.erase(id);
  next_ = id;
}

std::vector<std::shared_ptr<Queue>> LogicalDomains::remove(HSTR_LOG_DOM id) {
  const auto found = domains_.find(id);
  if (found == domains_.end() || id == HSTR_SRC_LOG_DOMAIN) {
    fail(HSTR_RESULT_NOT_FOUND, "there is no logical domain {} to remove", id);
  }
  std::vector<std::shared_ptr<Queue>> queues;
  queues.reserve(found->second.streams.size());
  for (const HSTR_LOG_STR stream : found->second.streams) {
    queues.push_back(std::move(streams_.extract(stream).mapped().queue));
  }
  domains_.erase(found);
  return queues;
}

const LogicalStream& LogicalDomains::stream(HSTR_LOG_STR id) const {
  const auto found = streams_.find(id);
  if (found == streams_.end()) fail(HSTR_RESULT_NOT_FOUND, "there is no stream {}", id);
  return found->second;
}

LogicalStream& LogicalDomains::stream(HSTR_LOG_STR id) {
  return const_cast<LogicalStream&>(std::as_const(*this).stream(id));
}

std::shared_ptr<Queue> LogicalDomains::queue_for(HSTR_LOG_STR id, HSTR_LOG_DOM domain,
                                                 const CpuMask& mask) const {
  if (streams_.contains(id)) fail(HSTR_RESULT_ALREADY_FOUND, "there is a stream {} already", id);
  const LogicalDomain& there = find(domain, HSTR_RESULT_DOMAIN_OUT_OF_RANGE);
  if (!contains(there.mask, mask)) {
    fail(HSTR_RESULT_CPU_MASK_OUT_OF_RANGE, "the mask reaches beyond that of logical domain {}",
         domain);
  }
  for (const HSTR_LOG_STR other : there.streams) {
    if (const LogicalStream& alike = streams_.at(other); alike.mask == mask) return alike.queue;
  }
  return nullptr;
}

void LogicalDomains::add_stream(HSTR_LOG_STR id, HSTR_LOG_DOM domain, const CpuMask& mask,
                                std::shared_ptr<Queue> queue) {
  std::vector<HSTR_LOG_STR>& ids = domains_.at(domain).streams;
  ids.reserve(ids.size() + 1);
  LogicalStream& made = streams_[id];
  ids.push_back(id);
  made.domain = domain;
  made.mask = mask;
  made.queue = std::move(queue);
}

std::shared_ptr<Queue> LogicalDomains::remove_stream(HSTR_LOG_STR id) {
  const LogicalStream& ended = stream(id);
  std::erase(domains_.at(ended.domain).streams, id);
  return std::move(streams_.extract(id).mapped().queue);
}

std::vector<std::shared_ptr<Queue>> LogicalDomains::queues(const PhysicalDomain* of) const {
  std::vector<std::shared_ptr<Queue>> found;
  for (const auto& [id, stream] : streams_) {
    if (of == nullptr || &stream.queue->physical() == of) found.push_back(stream.queue);
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

}  // namespace weir::hs
