#include "backends/rank/rank_wire.hpp"

namespace weir::rt {

void WireWriter::put(std::string_view text) {
  put(static_cast<std::uint32_t>(text.size()));
  append(text.data(), text.size());
}

void WireWriter::put(const Outcome& outcome) {
  put(static_cast<std::uint8_t>(outcome.status));
  if (!outcome.ok()) put(outcome.message);
}

void WireWriter::put(const Region& region) {
  put(region.offset, region.row, region.row_stride, region.plane_stride, region.rows,
      region.planes);
}

void WireWriter::put(const RankCopyEnd& end) {
  put(end.remote);
  if (end.remote) {
    put(end.rank, end.window);
  } else {
    put(end.device, end.address);
  }
  put(end.region);
}

void WireWriter::put(const RankDeviceFacts& facts) {
  const DeviceInfo& info = facts.info;
  put(info.backend, info.description, info.cores, info.threads_per_core, info.memory_bytes,
      info.runs_host_code, info.compiles_source, info.skips_kernels, facts.direct);
}

void WireWriter::put(const weir_scalar& scalar) {
  put(static_cast<std::uint8_t>(scalar.type));
  const bool is_float = scalar.type == WEIR_SCALAR_TYPE_F32;
  std::uint64_t bits = 0;
  std::memcpy(&bits, &scalar.value, is_float ? sizeof(float) : sizeof bits);
  put(bits);
}

void WireWriter::put(const weir_view& view) {
  put(rank_address::number(view.address));
  for (const std::size_t extent : view.extent) put(std::uint64_t{extent});
  for (const std::size_t stride : view.stride) put(std::uint64_t{stride});
  put(static_cast<std::uint8_t>(view.access));
}

void WireReader::refuse(const char* what) {
  fail(WEIR_STATUS_NETWORK_ERROR, "a message cannot be read: {}", what);
}

const std::byte* WireReader::take(std::size_t bytes) {
  if (bytes > bytes_.size()) refuse("it is cut short");
  const std::byte* const taken = bytes_.data();
  bytes_ = bytes_.subspan(bytes);
  return taken;
}

std::string WireReader::text() {
  const auto size = get<std::uint32_t>();
  return {reinterpret_cast<const char*>(take(size)), size};
}

Outcome WireReader::outcome() {
  const auto status = get<std::uint8_t>();
  if (status == WEIR_STATUS_OK) return {};
  if (status > WEIR_STATUS_INTERNAL) refuse("it has an unknown status");
  return {static_cast<weir_status>(status), text()};
}

Region WireReader::region() {
  Region region;
  get(region.offset, region.row, region.row_stride, region.plane_stride, region.rows,
      region.planes);
  if (region.row == 0 || region.rows == 0 || region.planes == 0) refuse("a region is empty");
  return region;
}

RankCopyEnd WireReader::end() {
  RankCopyEnd end;
  get(end.remote);
  if (end.remote) {
    get(end.rank, end.window);
  } else {
    get(end.device, end.address);
  }
  end.region = region();
  return end;
}

RankDeviceFacts WireReader::facts() {
  RankDeviceFacts facts;
  DeviceInfo& info = facts.info;
  info.backend = text();
  info.description = text();
  get(info.cores, info.threads_per_core, info.memory_bytes, info.runs_host_code,
      info.compiles_source, info.skips_kernels, facts.direct);
  return facts;
}

weir_scalar WireReader::scalar() {
  weir_scalar scalar{};
  const auto type = get<std::uint8_t>();
  if (type > WEIR_SCALAR_TYPE_F64) refuse("a scalar has an unknown type");
  scalar.type = static_cast<weir_scalar_type>(type);
  const auto bits = get<std::uint64_t>();
  const bool is_float = scalar.type == WEIR_SCALAR_TYPE_F32;
  std::memcpy(&scalar.value, &bits, is_float ? sizeof(float) : sizeof bits);
  return scalar;
}

weir_view WireReader::view() {
  weir_view view{};
  view.address = reinterpret_cast<void*>(get<std::uint64_t>());
  for (std::size_t& extent : view.extent) extent = get<std::uint64_t>();
  for (std::size_t& stride : view.stride) stride = get<std::uint64_t>();
  view.access = static_cast<weir_access>(get<std::uint8_t>());
  return view;
}

}  // namespace weir::rt
