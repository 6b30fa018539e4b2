// The logical domains and streams of a program.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "hstreams/queue.hpp"

namespace weir::hs {

struct LogicalDomain {
  const PhysicalDomain* physical;
  CpuMask mask;                       ///< empty for domain 0, the program's own
  std::vector<HSTR_LOG_STR> streams;  ///< in the order of their creation
};

struct LogicalStream {
  HSTR_LOG_DOM domain;
  CpuMask mask;
  std::shared_ptr<Queue> queue;  ///< that of all streams of the domain with the same mask
  std::atomic<std::uint64_t> downloads{0};
};

/// The logical domains of a program and their streams. The masks of two domains of a device are
/// equal or disjoint. A session guards them by its mutex. Functions throw Error and then change
/// nothing.
class LogicalDomains {
 public:
  /// Begins with the program's own domain.
  explicit LogicalDomains(const PhysicalDomain& host);

  /// Throws Error with the result `otherwise` if there is no such domain.
  const LogicalDomain& find(HSTR_LOG_DOM id, HSTR_RESULT otherwise) const;
  /// Returns the domains of a device, by default those of all devices.
  std::vector<HSTR_LOG_DOM> ids(const PhysicalDomain* of = nullptr) const;
  /// Sets `overlap` if the mask only shares some threads with that of another domain, and if it
  /// returns the id of the new domain.
  HSTR_LOG_DOM add(const PhysicalDomain& physical, const CpuMask& mask, HSTR_OVERLAP_TYPE& overlap);
  /// Removes the domain that was added last.
  void undo_add(HSTR_LOG_DOM id) noexcept;
  /// Removes a domain and its streams, whose queues it returns.
  std::vector<std::shared_ptr<Queue>> remove(HSTR_LOG_DOM id);

  const LogicalStream& stream(HSTR_LOG_STR id) const;
  LogicalStream& stream(HSTR_LOG_STR id);
  /// Checks the arguments of add_stream(). Returns the queue of a stream with the same mask, null
  /// if there is none.
  std::shared_ptr<Queue> queue_for(HSTR_LOG_STR id, HSTR_LOG_DOM domain, const CpuMask& mask) const;
  void add_stream(HSTR_LOG_STR id, HSTR_LOG_DOM domain, const CpuMask& mask,
                  std::shared_ptr<Queue> queue);
  /// Removes a stream, whose queue it returns.
  std::shared_ptr<Queue> remove_stream(HSTR_LOG_STR id);
  /// Returns each queue of a device once, by default those of all devices and of the host.
  std::vector<std::shared_ptr<Queue>> queues(const PhysicalDomain* of = nullptr) const;

 private:
  std::map<HSTR_LOG_DOM, LogicalDomain> domains_;
  std::map<HSTR_LOG_STR, LogicalStream> streams_;
  HSTR_LOG_DOM next_ = 1;
};

}  // namespace weir::hs
