#include <weir/buffer.h>

#include "capi/guard.hpp"
#include "runtime/runtime.hpp"

using namespace weir::rt;
using namespace weir::rt::capi;

namespace {

weir_buffer_options read_buffer_options(const weir_buffer_options* options) {
  return read_options(options, weir_buffer_options WEIR_BUFFER_OPTIONS_INIT, "options");
}

Registry& registry_of(const weir_buffer& buffer) { return Registry::of(*buffer.owner()); }

}  // namespace

extern "C" {

weir_status weir_buffer_create(weir_runtime* runtime, size_t bytes,
                               const weir_buffer_options* options, weir_buffer** out_buffer) {
  return guard([&] {
    weir_buffer*& result = out(out_buffer, "out_buffer");
    result = weir_runtime::check(runtime).buffers().create(bytes, read_buffer_options(options));
  });
}

weir_status weir_buffer_wrap(weir_runtime* runtime, void* address, size_t bytes,
                             const weir_buffer_options* options, weir_buffer** out_buffer) {
  return guard([&] {
    weir_buffer*& result = out(out_buffer, "out_buffer");
    result =
        weir_runtime::check(runtime).buffers().wrap(address, bytes, read_buffer_options(options));
  });
}

weir_status weir_buffer_adopt(weir_domain* domain, void* address, void* host_address, size_t bytes,
                              const weir_buffer_options* options, weir_buffer** out_buffer) {
  return guard([&] {
    weir_domain& live = weir_domain::check(domain);
    weir_buffer*& result = out(out_buffer, "out_buffer");
    result = Registry::of(live.context())
                 .buffers()
                 .adopt(live, address, host_address, bytes, read_buffer_options(options));
  });
}

void weir_buffer_destroy(weir_buffer* buffer) {
  if (buffer == nullptr) return;
  guard([&] {
    weir_buffer& live = weir_buffer::check(buffer);
    registry_of(live).destroy_buffer(&live);
  });
}

weir_status weir_buffer_get_info(const weir_buffer* buffer, weir_buffer_info* out_info) {
  return guard([&] {
    const weir_buffer& live = weir_buffer::check(buffer);
    weir_buffer_info info = WEIR_BUFFER_INFO_INIT;
    info.name = live.name().c_str();
    info.address = live.host_address();
    info.bytes = live.bytes();
    info.kind = registry_of(live).buffers().kind_of(live);
    write_info(out_info, info, "out_info");
  });
}

weir_status weir_buffer_find(const weir_runtime* runtime, const void* address,
                             weir_buffer** out_buffer, size_t* out_offset) {
  return guard([&] {
    weir_buffer*& result = out(out_buffer, "out_buffer");
    size_t offset = 0;
    result = weir_runtime::check(runtime).buffers().find(address, offset);
    if (out_offset != nullptr) *out_offset = offset;
  });
}
}
