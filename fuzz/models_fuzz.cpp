// The reader of performance models.
#include "base/error.hpp"
#include "target.hpp"
#include "tasks/performance_model.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using weir::fuzz::require;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  weir::rt::PerformanceModel model;
  const std::string empty = model.text("this");
  try {
    model.read(bytes, "this", "input");
  } catch (const weir::rt::Error& error) {
    weir::fuzz::require_one_line(error.what());
    require(model.text("this") == empty, "what is refused leaves nothing");
    ++weir::fuzz::refused;
    return 0;
  }
  model.each(
      [&](std::string_view kernel, std::string_view kind, std::uint64_t, std::uint64_t, double) {
        for (std::uint64_t size = 1; size != 0; size <<= 1) {
          require(model.curve(kernel, kind).estimate(size) >= 0, "what was measured is estimated");
        }
      });
  const std::string written = model.text("this");
  weir::rt::PerformanceModel again;
  again.read(written, "this", "input");
  require(again.text("this") == written, "models survive their file");
  return 0;
}
