#include <cstring>
#include <span>

#include <hstreams/hStreams_source.h>

#include "hstreams/call.hpp"

using namespace weir::hs;

namespace {

constexpr std::uint64_t kMostArguments = HSTR_ARGS_SUPPORTED;

void give(const HSTR_EVENT& event, HSTR_EVENT* out) {
  if (out != nullptr) *out = event;
}

void check_compute(const char* name, std::uint64_t count, const uint64_t* arguments,
                   const void* result, uint16_t result_bytes) {
  if (name == nullptr) fail(HSTR_RESULT_BAD_NAME, "the name of the sink function is NULL");
  if (result_bytes > HSTR_RETURN_SIZE_LIMIT) {
    fail(HSTR_RESULT_OUT_OF_RANGE, "a result of {} bytes: {} are the most", result_bytes,
         HSTR_RETURN_SIZE_LIMIT);
  }
  if (count > 0 && arguments == nullptr) fail(HSTR_RESULT_NULL_PTR, "the arguments are NULL");
  if ((result_bytes > 0) != (result != nullptr)) {
    fail(HSTR_RESULT_INCONSISTENT_ARGS, "a result of {} bytes at {}", result_bytes,
         fmt::ptr(result));
  }
  if (std::strlen(name) >= HSTR_MAX_FUNC_NAME_SIZE) {
    fail(HSTR_RESULT_BAD_NAME, "the name of a sink function is {} bytes long: {} are the most",
         std::strlen(name), HSTR_MAX_FUNC_NAME_SIZE - 1);
  }
  if (count > kMostArguments) {
    fail(HSTR_RESULT_TOO_MANY_ARGS, "{} arguments: {} are the most", count, kMostArguments);
  }
}

std::int64_t nanoseconds(int32_t milliseconds) {
  return milliseconds < 0 ? WEIR_FOREVER : std::int64_t{milliseconds} * 1'000'000;
}

void check_wait(uint32_t count, const HSTR_EVENT* events, bool all, bool with_indices) {
  if (count == 0) fail(HSTR_RESULT_OUT_OF_RANGE, "there is no event to wait for");
  check_pointers(events);
  if (count != 1 && !all && !with_indices) {
    fail(HSTR_RESULT_INCONSISTENT_ARGS, "which of {} events is complete has nowhere to go", count);
  }
}

/// Writes which events are complete.
void write_complete(const Session& session, std::span<const HSTR_EVENT> events, uint32_t* count,
                    uint32_t* indices) {
  uint32_t found = 0;
  for (uint32_t i = 0; i < events.size(); ++i) {
    if (!session.complete(events[i])) continue;
    if (indices != nullptr) indices[found] = i;
    ++found;
  }
  if (count != nullptr) *count = found;
}

}  // namespace

extern "C" {

HSTR_RESULT hStreams_EnqueueCompute(HSTR_LOG_STR stream, const char* name, uint32_t scalars,
                                    uint32_t addresses, uint64_t* arguments, HSTR_EVENT* event,
                                    void* result, uint16_t result_bytes) {
  const Call call(HSTR_INFO_TYPE_SINK_INVOKE, __func__, stream, name, scalars, addresses, arguments,
                  event, result, result_bytes);
  return call.in_session([&](Session& session) {
    check_compute(name, std::uint64_t{scalars} + addresses, arguments, result, result_bytes);
    give(session.compute(
             stream,
             {name, {arguments, scalars}, {arguments + scalars, addresses}, result, result_bytes}),
         event);
  });
}

HSTR_RESULT hStreams_EnqueueData1D(HSTR_LOG_STR stream, void* write, void* read, uint64_t bytes,
                                   HSTR_XFER_DIRECTION direction, HSTR_EVENT* event) {
  const Call call(HSTR_INFO_TYPE_MEM, __func__, stream, write, read, bytes, direction, event);
  return call.in_session([&](Session& session) {
    give(session.transfer(stream, write, read, bytes, direction), event);
  });
}

HSTR_RESULT hStreams_EnqueueDataXDomain1D(HSTR_LOG_STR stream, void* write, void* read,
                                          uint64_t bytes, HSTR_LOG_DOM target, HSTR_LOG_DOM source,
                                          HSTR_EVENT* event) {
  const Call call(HSTR_INFO_TYPE_MEM, __func__, stream, write, read, bytes, target, source, event);
  return call.in_session([&](Session& session) {
    give(session.transfer(stream, {write, read, bytes, target, source}), event);
  });
}

HSTR_RESULT hStreams_EventStreamWait(HSTR_LOG_STR stream, uint32_t count, HSTR_EVENT* events,
                                     int32_t addresses, void** address_list, HSTR_EVENT* event) {
  const Call call(HSTR_INFO_TYPE_SYNC, __func__, stream, count, events, addresses, address_list,
                  event);
  return call.in_session([&](Session& session) {
    if ((count > 0) != (events != nullptr)) {
      fail(HSTR_RESULT_INCONSISTENT_ARGS, "{} events, and their list is {}", count,
           events ? "given" : "NULL");
    }
    if (addresses == HSTR_WAIT_NONE && event == nullptr) {
      fail(HSTR_RESULT_INCONSISTENT_ARGS, "a wait that orders nothing and gives no event");
    }
    const HSTR_EVENT made =
        session.wait_in_stream(stream, {events, count}, addresses, address_list);
    if (Library::get().configuration().policy() != HSTR_DEP_POLICY_NONE) give(made, event);
  });
}

HSTR_RESULT hStreams_StreamSynchronize(HSTR_LOG_STR stream) {
  return Call(HSTR_INFO_TYPE_SYNC, __func__, stream).in_session([&](Session& session) {
    session.synchronize(stream);
  });
}

HSTR_RESULT hStreams_ThreadSynchronize(void) {
  return Call(HSTR_INFO_TYPE_SYNC, __func__).in_session([](Session& session) {
    session.synchronize_all();
  });
}

HSTR_RESULT hStreams_EventWait(uint32_t count, HSTR_EVENT* events, bool all, int32_t milliseconds,
                               uint32_t* out_count, uint32_t* out_indices) {
  const Call call(HSTR_INFO_TYPE_SYNC, __func__, count, events, all, milliseconds, out_count,
                  out_indices);
  return call.in_session([&](Session& session) {
    if (Library::get().configuration().policy() == HSTR_DEP_POLICY_NONE) return;
    check_wait(count, events, all, out_count != nullptr && out_indices != nullptr);
    try {
      session.wait({events, count}, all, nanoseconds(milliseconds));
    } catch (...) {
      write_complete(session, {events, count}, out_count, out_indices);
      throw;
    }
    write_complete(session, {events, count}, out_count, out_indices);
  });
}
}
