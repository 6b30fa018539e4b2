#include <algorithm>
#include <vector>

#include <hstreams/hStreams_source.h>

#include "hstreams/call.hpp"

using namespace weir::hs;

namespace {

constexpr HSTR_INFO_TYPE kKind = HSTR_INFO_TYPE_MEM;

}  // namespace

extern "C" {

HSTR_RESULT hStreams_Alloc1D(void* base, uint64_t bytes) {
  return Call(kKind, __func__, base, bytes).in_session([&](Session& session) {
    session.allocate(base, bytes, HSTR_BUFFER_PROPS_INITIAL_VALUES, -1, nullptr);
  });
}

HSTR_RESULT hStreams_Alloc1DEx(void* base, uint64_t bytes, HSTR_BUFFER_PROPS* props, int64_t count,
                               HSTR_LOG_DOM* domains) {
  const Call call(kKind, __func__, base, bytes, props, count, domains);
  return call.in_session([&](Session& session) {
    const HSTR_BUFFER_PROPS usual = HSTR_BUFFER_PROPS_INITIAL_VALUES_EX;
    session.allocate(base, bytes, props != nullptr ? *props : usual, count, domains);
  });
}

HSTR_RESULT hStreams_AddBufferLogDomains(void* address, uint64_t count, HSTR_LOG_DOM* domains) {
  return Call(kKind, __func__, address, count, domains).in_session([&](Session& session) {
    if (count == 0) fail(HSTR_RESULT_OUT_OF_RANGE, "no logical domain is given");
    check_pointers(address, domains);
    session.add_instances(address, {domains, count});
  });
}

HSTR_RESULT hStreams_RmBufferLogDomains(void* address, int64_t count, HSTR_LOG_DOM* domains) {
  return Call(kKind, __func__, address, count, domains).in_session([&](Session& session) {
    check_pointers(address);
    if (count == 0 || count < -1) fail(HSTR_RESULT_OUT_OF_RANGE, "{} logical domains", count);
    if ((count == -1) != (domains == nullptr)) {
      fail(HSTR_RESULT_INCONSISTENT_ARGS, "{} logical domains, and their list is {}", count,
           domains ? "given" : "NULL");
    }
    if (count == -1) return session.remove_instances(address, nullptr);
    const std::span<const HSTR_LOG_DOM> list(domains, static_cast<std::size_t>(count));
    session.remove_instances(address, &list);
  });
}

HSTR_RESULT hStreams_DeAlloc(void* address) {
  return Call(kKind, __func__, address).in_session([&](Session& session) {
    check_pointers(address);
    session.deallocate(address);
  });
}

HSTR_RESULT hStreams_GetBufferNumLogDomains(void* address, uint64_t* count) {
  return Call(kKind, __func__, address, count).in_session([&](Session& session) {
    check_pointers(address, count);
    *count = session.instances_of(address).size();
  });
}

HSTR_RESULT hStreams_GetBufferLogDomains(void* address, uint64_t room, HSTR_LOG_DOM* domains,
                                         uint64_t* count) {
  return Call(kKind, __func__, address, room, domains, count).in_session([&](Session& session) {
    check_pointers(address, domains, count);
    if (room == 0) fail(HSTR_RESULT_OUT_OF_RANGE, "there is no room for logical domains");
    const std::vector<HSTR_LOG_DOM> found = session.instances_of(address);
    std::copy_n(found.begin(), std::min<std::size_t>(found.size(), room), domains);
    *count = found.size();
    if (found.size() > room) {
      fail(HSTR_RESULT_INCONSISTENT_ARGS, "the buffer is in {} logical domains, not {}",
           found.size(), room);
    }
  });
}

HSTR_RESULT hStreams_GetBufferProps(void* address, HSTR_BUFFER_PROPS* props) {
  return Call(kKind, __func__, address, props).in_session([&](Session& session) {
    check_pointers(address, props);
    *props = session.props_of(address);
  });
}
}
