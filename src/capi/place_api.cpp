#include <weir/place.h>

#include "capi/guard.hpp"
#include "runtime/runtime.hpp"

using namespace weir::rt;
using namespace weir::rt::capi;

extern "C" {

weir_status weir_place_create(weir_domain* domain, const weir_place_options* options,
                              weir_place** out_place) {
  return guard([&] {
    weir_place*& result = out(out_place, "out_place");
    weir_domain& live = weir_domain::check(domain);
    const weir_place_options known =
        read_options(options, weir_place_options WEIR_PLACE_OPTIONS_INIT, "options");
    result = Registry::of(live.context()).create_place(live, known);
  });
}

weir_status weir_domain_partition(weir_domain* domain, size_t count, bool oversubscribe,
                                  weir_place** out_places) {
  return guard([&] {
    out(out_places, "out_places");
    weir_domain& live = weir_domain::check(domain);
    Registry::of(live.context()).partition(live, count, oversubscribe, out_places);
  });
}

void weir_place_destroy(weir_place* place) {
  if (place == nullptr) return;
  guard([&] {
    weir_place& live = weir_place::check(place);
    Registry::of(live.domain().context()).destroy_place(&live);
  });
}

weir_status weir_place_get_info(const weir_place* place, weir_place_info* out_info) {
  return guard([&] {
    const weir_place& live = weir_place::check(place);
    weir_place_info info = WEIR_PLACE_INFO_INIT;
    info.name = live.name().c_str();
    info.domain = static_cast<weir_domain*>(&live.domain());
    info.core_count = live.width();
    write_info(out_info, info, "out_info");
  });
}
}
