#include <algorithm>
#include <vector>

#include <hstreams/hStreams_source.h>

#include "hstreams/call.hpp"

using namespace weir::hs;

namespace {

constexpr HSTR_INFO_TYPE kKind = HSTR_INFO_TYPE_MISC;

/// Copies as many elements as fit, and reports when the numbers differ.
template <class Id>
void copy_ids(const std::vector<Id>& ids, std::uint32_t room, Id* out) {
  std::copy_n(ids.begin(), std::min<std::size_t>(ids.size(), room), out);
  if (ids.size() != room) {
    fail(ids.size() < room ? HSTR_RESULT_NOT_FOUND : HSTR_RESULT_INCONSISTENT_ARGS,
         "there are {}, not {}", ids.size(), room);
  }
}

}  // namespace

extern "C" {

HSTR_RESULT hStreams_GetNumPhysDomains(uint32_t* count, uint32_t* active, bool* homogeneous) {
  return Call(kKind, __func__, count, active, homogeneous).in_session([&](Session& session) {
    check_pointers(count, active, homogeneous);
    *count = *active = static_cast<uint32_t>(session.physical().devices().size());
    *homogeneous = session.physical().homogeneous();
  });
}

HSTR_RESULT hStreams_GetPhysDomainDetails(HSTR_PHYS_DOM id, uint32_t* threads, HSTR_ISA_TYPE* isa,
                                          uint32_t* mhz, HSTR_CPU_MASK max, HSTR_CPU_MASK avoid,
                                          uint64_t* memory_types,
                                          uint64_t bytes[HSTR_MEM_TYPE_SIZE]) {
  return Call(kKind, __func__, id).in_session([&](Session& session) {
    check_pointers(threads, isa, mhz, memory_types, bytes);
    const PhysicalDomain& domain = session.physical().at(id);
    *threads = static_cast<uint32_t>(domain.threads);
    *isa = domain.isa;
    *mhz = domain.mhz;
    write_mask(domain.max, max);
    write_mask(domain.avoid, avoid);
    *memory_types = 1 << HSTR_MEM_TYPE_NORMAL;
    bytes[HSTR_MEM_TYPE_NORMAL] = domain.bytes;
    bytes[HSTR_MEM_TYPE_HBW] = 0;
  });
}

HSTR_RESULT hStreams_GetAvailable(HSTR_PHYS_DOM id, HSTR_CPU_MASK mask) {
  return Call(kKind, __func__, id, mask).in_session([&](Session& session) {
    write_mask(session.available(id), mask);
  });
}

HSTR_RESULT hStreams_GetOversubscriptionLevel(HSTR_PHYS_DOM id, uint32_t threads, uint32_t* out) {
  return Call(kKind, __func__, id, threads, out).in_session([&](Session& session) {
    check_pointers(out);
    const std::vector<std::uint32_t> level = session.oversubscription(id);
    if (level.size() != threads) {
      fail(HSTR_RESULT_NOT_FOUND, "domain {} has {} thread{}, not {}", id, level.size(),
           level.size() == 1 ? "" : "s", threads);
    }
    std::copy(level.begin(), level.end(), out);
  });
}

HSTR_RESULT hStreams_AddLogDomain(HSTR_PHYS_DOM physical, HSTR_CPU_MASK mask, HSTR_LOG_DOM* id,
                                  HSTR_OVERLAP_TYPE* overlap) {
  return Call(kKind, __func__, physical, mask).in_session([&](Session& session) {
    check_pointers(id, overlap, mask);
    *id = session.add_domain(physical, read_mask(mask), *overlap);
  });
}

HSTR_RESULT hStreams_RmLogDomains(uint32_t count, HSTR_LOG_DOM* ids) {
  return Call(kKind, __func__, count, ids).in_session([&](Session& session) {
    check_pointers(ids);
    if (count == 0) fail(HSTR_RESULT_OUT_OF_RANGE, "no logical domain is given");
    for (uint32_t i = 0; i < count; ++i) session.remove_domain(ids[i]);
  });
}

HSTR_RESULT hStreams_GetNumLogDomains(HSTR_PHYS_DOM physical, uint32_t* count) {
  return Call(kKind, __func__, physical, count).in_session([&](Session& session) {
    check_pointers(count);
    *count = static_cast<uint32_t>(session.domains_of(physical).size());
  });
}

HSTR_RESULT hStreams_GetLogDomainIDList(HSTR_PHYS_DOM physical, uint32_t count, HSTR_LOG_DOM* ids) {
  return Call(kKind, __func__, physical, count, ids).in_session([&](Session& session) {
    check_pointers(ids);
    copy_ids(session.domains_of(physical), count, ids);
  });
}

HSTR_RESULT hStreams_GetLogDomainDetails(HSTR_LOG_DOM id, HSTR_PHYS_DOM* physical,
                                         HSTR_CPU_MASK mask) {
  return Call(kKind, __func__, id, physical, mask).in_session([&](Session& session) {
    check_pointers(physical);
    const LogicalDomain domain = session.domain(id, HSTR_RESULT_NOT_FOUND);
    *physical = domain.physical->id;
    write_mask(domain.mask, mask);
  });
}

HSTR_RESULT hStreams_StreamCreate(HSTR_LOG_STR id, HSTR_LOG_DOM domain, const HSTR_CPU_MASK mask) {
  return Call(kKind, __func__, id, domain, mask).in_session([&](Session& session) {
    check_pointers(mask);
    session.create_stream(id, domain, read_mask(mask));
  });
}

HSTR_RESULT hStreams_StreamDestroy(HSTR_LOG_STR id) {
  return Call(kKind, __func__, id).in_session([&](Session& session) {
    session.destroy_stream(id);
  });
}

HSTR_RESULT hStreams_GetNumLogStreams(HSTR_LOG_DOM domain, uint32_t* count) {
  return Call(kKind, __func__, domain, count).in_session([&](Session& session) {
    check_pointers(count);
    const LogicalDomain found = session.domain(domain, HSTR_RESULT_DOMAIN_OUT_OF_RANGE);
    *count = static_cast<uint32_t>(found.streams.size());
  });
}

HSTR_RESULT hStreams_GetLogStreamIDList(HSTR_LOG_DOM domain, uint32_t count, HSTR_LOG_STR* ids) {
  return Call(kKind, __func__, domain, count, ids).in_session([&](Session& session) {
    check_pointers(ids);
    copy_ids(session.domain(domain, HSTR_RESULT_NOT_FOUND).streams, count, ids);
  });
}

HSTR_RESULT hStreams_GetLogStreamDetails(HSTR_LOG_STR id, HSTR_LOG_DOM, HSTR_CPU_MASK mask) {
  return Call(kKind, __func__, id, mask).in_session([&](Session& session) {
    write_mask(session.stream_mask(id), mask);
  });
}
}
