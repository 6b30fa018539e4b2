// Copies of whole buffers to and from a device, enqueued back to back in one stream.
#include <weir/weir.hpp>

#include "common/weir_program.hpp"
#include "devices/cuda_by_hand.hpp"

namespace weir_bench {
namespace {

/// GB/s of copies of a region, to the device or from it.
double rate(const weir::Stream& stream, const weir::Region& region, std::size_t bytes,
            bool to_device, long count) {
  const auto once = [&] {
    return time_of([&] {
      for (long i = 0; i < count; ++i) {
        if (to_device) {
          stream.upload(region);
        } else {
          stream.download(region);
        }
      }
      stream.synchronize();
    });
  };
  const double seconds = median(repeat(2, 5, once));
  return static_cast<double>(bytes) * static_cast<double>(count) / seconds * 1e-9;
}

/// A buffer of the runtime, or of page-locked memory.
weir::Buffer buffer_of(const weir::Runtime& runtime, std::size_t bytes, bool pinned) {
  weir_buffer_options options = WEIR_BUFFER_OPTIONS_INIT;
  options.no_alias = true;
  return pinned ? runtime.wrap(Cuda().pinned(bytes), bytes, options)
                : runtime.buffer(bytes, options);
}

/// With `--row` only so many bytes of every 2 `row` are copied: a tile of a matrix.
nlohmann::json run(const Arguments& arguments) {
  const std::string& verb = arguments.verb();
  if (verb != "h2d" && verb != "d2h") throw std::invalid_argument("unknown: " + verb);
  const std::string domain = arguments.text("--domains", "opencl:0,alias=off");
  const auto bytes = static_cast<std::size_t>(arguments.number("--bytes", 1 << 20));
  const auto row = static_cast<std::size_t>(arguments.number("--row", 0));
  const weir::Runtime runtime(domain);
  const weir::Place place = runtime.domain(0).place();
  const weir::Stream stream = place.stream();
  const std::size_t whole = row > 0 ? 2 * bytes : bytes;
  const bool pinned = arguments.text("--memory", "pageable") == "pinned";
  const weir::Buffer buffer = buffer_of(runtime, whole, pinned);
  std::fill_n(buffer.data<char>(), whole, 'w');
  stream.upload(buffer.all());
  const weir::Region region =
      row > 0 ? buffer.tile<char>(0, 0, row, bytes / row, 2 * row) : buffer.all();
  return {{"value", rate(stream, region, bytes, verb == "h2d", arguments.number("--count", 64))},
          {"config", domain}};
}

}  // namespace
}  // namespace weir_bench

int main(int argc, char** argv) {
  return weir_bench::run_weir_program(argc, argv, weir_bench::run);
}
