// The reader of recordings, and the report that is made from them.
#include "common/input_error.hpp"
#include "report/trace_file.hpp"
#include "target.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using weir::fuzz::require;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    const auto trace = weir::cli::report::read_trace_from(bytes, "input");
    for (const auto& slice : trace.slices) {
      require(slice.row < trace.rows.size(), "a slice is in a row");
      require(slice.stream < trace.streams.size(), "a slice has a stream");
      require(slice.name < trace.names.size(), "a slice has a name");
      require(slice.duration >= 0 && slice.ended() >= slice.started, "time goes on");
    }
    for (const auto& [from, to] : trace.edges) {
      require(from < to && to < trace.slices.size(), "an arrow has two ends");
    }
  } catch (const weir::apps::InputError& error) {
    weir::fuzz::require_one_line(error.what());
    require(std::string_view(error.what()).starts_with("input:"), "a refusal says where");
    ++weir::fuzz::refused;
  }
  return 0;
}
