#include <cstdarg>
#include <cstdio>

#include <weir/kernel.h>
#include <weir/opencl.h>

#include "backend/invoke.hpp"
#include "backend/team.hpp"
#include "capi/guard.hpp"
#include "kernels/builtin.hpp"
#include "runtime/backends.hpp"
#include "runtime/runtime.hpp"

using namespace weir::rt;
using namespace weir::rt::capi;

extern "C" {

weir_status weir_kernel_register(weir_runtime* runtime, const weir_kernel_options* options,
                                 weir_kernel** out_kernel) {
  return guard([&] {
    weir_runtime& live = weir_runtime::check(runtime);
    out(const_cast<weir_kernel_options*>(options), "options");
    weir_kernel& kernel = live.add_kernel(
        read_options(options, weir_kernel_options WEIR_KERNEL_OPTIONS_INIT, "options"));
    if (out_kernel != nullptr) *out_kernel = &kernel;
  });
}

weir_status weir_kernel_register_portable(weir_runtime* runtime,
                                          const weir_portable_options* options,
                                          weir_kernel** out_kernel) {
  return guard([&] {
    weir_runtime& live = weir_runtime::check(runtime);
    out(const_cast<weir_portable_options*>(options), "options");
    weir_kernel& kernel = live.add_kernel(
        read_options(options, weir_portable_options WEIR_PORTABLE_OPTIONS_INIT, "options"));
    if (out_kernel != nullptr) *out_kernel = &kernel;
  });
}

weir_status weir_kernel_find(const weir_runtime* runtime, const char* name,
                             weir_kernel** out_kernel) {
  return guard([&] {
    weir_kernel*& result = out(out_kernel, "out_kernel");
    if (name == nullptr) fail_argument("the name of the kernel is NULL");
    result = &weir_runtime::check(runtime).kernels().find(name);
    weir::kernels::prepare(name);
  });
}

weir_status weir_opencl_buffer(const void* address, void** out_buffer, uint64_t* out_offset) {
  return guard([&] {
    void*& buffer = out(out_buffer, "out_buffer");
    std::uint64_t& offset = out(out_offset, "out_offset");
    const DriverBuffer found = find_driver_buffer(address);
    buffer = found.buffer;
    offset = found.offset;
  });
}

weir_status weir_call_fail(const weir_call* call, weir_status status, const char* format, ...) {
  static_cast<void>(call);
  char message[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  guard([&] { set_call_failure(message); });
  return status == WEIR_STATUS_OK ? WEIR_STATUS_KERNEL_ERROR : status;
}

size_t weir_team_size(const weir_team* team) { return team ? team->size() : 1; }

void weir_team_for(weir_team* team, size_t count, size_t grain, weir_team_body body,
                   void* payload) {
  SingleTeam single;
  (team ? team : &single)->for_each(count, grain, body, payload);
}

void weir_team_run(weir_team* team, weir_team_function function, void* payload) {
  SingleTeam single;
  (team ? team : &single)->run(function, payload);
}

void weir_team_barrier(weir_team* team) {
  if (team != nullptr) team->barrier();
}
}
