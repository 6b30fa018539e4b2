#include <cstring>

#include <weir/runtime.h>
#include <weir/version.h>

#include "base/log.hpp"
#include "base/thread_role.hpp"
#include "capi/guard.hpp"
#include "kernels/builtin.hpp"
#include "runtime/runtime.hpp"

using namespace weir::rt;
using namespace weir::rt::capi;

extern "C" {

const char* weir_version(void) { return WEIR_VERSION_STRING; }

weir_status weir_runtime_create(const weir_runtime_options* options, weir_runtime** out_runtime) {
  return guard([&] {
    weir_runtime*& result = out(out_runtime, "out_runtime");
    if (NoWaitScope::active()) {
      fail(WEIR_STATUS_BUSY,
           "a kernel, callback or stage cannot create a runtime, as it could not wait for its end: "
           "create it before");
    }
    const weir_runtime_options known =
        read_options(options, weir_runtime_options WEIR_RUNTIME_OPTIONS_INIT, "options");
    Owned<weir_runtime> runtime(new weir_runtime(known));
    weir::kernels::register_builtin(*runtime, known.blas);
    result = runtime.release();
  });
}

void weir_runtime_destroy(weir_runtime* runtime) {
  if (runtime == nullptr) return;
  guard([&] {
    weir_runtime& live = weir_runtime::check(runtime);
    if (NoWaitScope::active()) {
      log::warning("the runtime is destroyed by a kernel or callback: ignored");
      return;
    }
    weir_runtime::bury(&live);
  });
}

weir_status weir_runtime_synchronize(weir_runtime* runtime, int64_t timeout_ns) {
  weir_status status = WEIR_STATUS_OK;
  const weir_status failed = guard(
      [&] { status = report_wait(weir_runtime::check(runtime).synchronize_all(timeout_ns)); });
  return failed != WEIR_STATUS_OK ? failed : status;
}

size_t weir_runtime_domain_count(const weir_runtime* runtime) {
  size_t count = 0;
  guard([&] { count = weir_runtime::check(runtime).domain_count(); });
  return count;
}

weir_domain* weir_runtime_get_domain(const weir_runtime* runtime, size_t index) {
  weir_domain* domain = nullptr;
  guard([&] { domain = weir_runtime::check(runtime).domain(index); });
  return domain;
}

weir_status weir_runtime_find_domain(const weir_runtime* runtime, const char* name,
                                     weir_domain** out_domain) {
  return guard([&] {
    weir_domain*& result = out(out_domain, "out_domain");
    if (name == nullptr) fail_argument("the name of the domain is NULL");
    result = &weir_runtime::check(runtime).find_domain(name);
  });
}

int64_t weir_runtime_now(const weir_runtime* runtime) {
  int64_t now = 0;
  guard([&] { now = weir_runtime::check(runtime).now_ns(); });
  return now;
}

weir_status weir_runtime_pass_time(weir_runtime* runtime, int64_t ns) {
  return guard([&] {
    weir_runtime& live = weir_runtime::check(runtime);
    if (ns < 0) fail_argument("{} ns cannot pass: give 0 or more", ns);
    if (NoWaitScope::active()) {
      fail(WEIR_STATUS_BUSY, "a kernel or callback cannot let time pass");
    }
    if (live.virtual_time()) pass_time(live, ns);
  });
}

weir_status weir_runtime_get_stats(const weir_runtime* runtime, weir_stats* out_stats) {
  return guard([&] {
    weir_stats stats = WEIR_STATS_INIT;
    weir_runtime::check(runtime).get_stats(stats);
    write_info(out_stats, stats, "out_stats");
  });
}

weir_status weir_runtime_describe(const weir_runtime* runtime, char* out_json, size_t capacity,
                                  size_t* out_size) {
  return guard([&] {
    const std::string text = weir_runtime::check(runtime).describe();
    if (out_size != nullptr) *out_size = text.size() + 1;
    if (capacity == 0) return;
    const size_t copied = std::min(capacity - 1, text.size());
    std::memcpy(&out(out_json, "out_json"), text.data(), copied);
    out_json[copied] = '\0';
  });
}

weir_status weir_domain_get_info(const weir_domain* domain, weir_domain_info* out_info) {
  return guard([&] {
    const weir_domain& live = weir_domain::check(domain);
    const DeviceInfo& facts = live.info();
    weir_domain_info info = WEIR_DOMAIN_INFO_INIT;
    info.name = facts.name.c_str();
    info.backend = facts.backend.c_str();
    info.description = facts.description.c_str();
    info.index = live.index();
    info.cores = facts.cores;
    info.memory_bytes = facts.memory_bytes;
    info.memory_used = live.residency().used();
    info.aliases_host = facts.aliases_host;
    info.virtual_time = facts.virtual_time;
    info.link_gbps = facts.link_gbps;
    info.link_latency_us = facts.link_latency_us;
    info.link_duplex = facts.link_duplex.c_str();
    info.threads_per_core = facts.threads_per_core;
    info.skips_kernels = facts.skips_kernels;
    write_info(out_info, info, "out_info");
  });
}
}
