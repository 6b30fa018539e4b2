#include <weir/rank.h>

#include "base/thread_role.hpp"
#include "capi/guard.hpp"
#include "runtime/rank_service.hpp"
#include "runtime/runtime.hpp"

using namespace weir::rt;
using namespace weir::rt::capi;

extern "C" {

weir_status weir_rank_serve(weir_runtime* runtime, bool* out_served) {
  return guard([&] {
    weir_runtime& live = weir_runtime::check(runtime);
    bool& served = out(out_served, "out_served");
    if (NoWaitScope::active()) {
      fail(WEIR_STATUS_BUSY, "a kernel or callback cannot serve: it would wait for rank 0");
    }
    served = live.port() != nullptr && live.port()->rank() > 0;
    if (served) return serve_rank(live, *live.port());
    check_ranks_know(live);
  });
}
}
