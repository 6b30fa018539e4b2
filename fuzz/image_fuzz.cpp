// The reader of pictures.
#include "common/image.hpp"
#include "common/input_error.hpp"
#include "target.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using weir::fuzz::require;
  constexpr weir::apps::ReadLimits kLimits{.bytes = std::uint64_t{1} << 20};
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    const weir::apps::Image image = weir::apps::read_image_from(bytes, "input", kLimits);
    require(image.shades.size() == image.width * image.height, "a picture has all its pixels");
    require(image.width > 0 && image.height > 0, "a picture has pixels");
    require(image.shades.size() <= kLimits.bytes, "a picture is within the limits");
  } catch (const weir::apps::InputError& error) {
    weir::fuzz::require_one_line(error.what());
    require(std::string_view(error.what()).starts_with("input:"), "a refusal says which");
    ++weir::fuzz::refused;
  }
  return 0;
}
