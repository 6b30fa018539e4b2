#include <weir/wisdom.h>

#include <cstring>

#include "capi/guard.hpp"
#include "runtime/runtime.hpp"

using namespace weir::rt;
using namespace weir::rt::capi;

namespace {

Wisdom wisdom_of(const weir_runtime* runtime, const char* problem, std::uint64_t size) {
  const weir_runtime& checked = weir_runtime::check(runtime);
  if (problem == nullptr) fail_argument("the name of the problem is NULL");
  return checked.wisdom(problem, size);
}

}  // namespace

extern "C" {

weir_status weir_wisdom_find(const weir_runtime* runtime, const char* problem, uint64_t size,
                             weir_wisdom* out_wisdom) {
  return guard([&] {
    out(out_wisdom, "out_wisdom");
    const auto found = wisdom_of(runtime, problem, size).find();
    weir_wisdom wisdom = WEIR_WISDOM_INIT;
    if (!found || found->policy.size() >= sizeof wisdom.policy) {
      fail(WEIR_STATUS_NOT_FOUND, "nothing is known of '{}' on these domains: keep it first",
           problem);
    }
    wisdom.places = found->places;
    wisdom.streams = found->streams;
    wisdom.tiles = found->tiles;
    wisdom.aspect = found->aspect;
    wisdom.seconds = found->seconds;
    found->policy.copy(wisdom.policy, sizeof wisdom.policy - 1);
    write_info(out_wisdom, wisdom, "out_wisdom");
  });
}

weir_status weir_wisdom_keep(const weir_runtime* runtime, const char* problem, uint64_t size,
                             const weir_wisdom* wisdom) {
  return guard([&] {
    const Wisdom entry = wisdom_of(runtime, problem, size);
    weir_wisdom copy = WEIR_WISDOM_INIT;
    const weir_wisdom& given = current(wisdom, copy, "wisdom");
    const std::size_t length = strnlen(given.policy, sizeof given.policy);
    if (length == sizeof given.policy) fail_argument("the name of the policy has no end");
    entry.keep({given.places, given.streams, given.tiles, given.aspect, given.seconds,
                std::string(given.policy, length)});
  });
}
}
