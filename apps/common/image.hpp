// Pictures in files: PNG, JPEG and PGM in shades of grey, PNG and PPM in colours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/matrix_io.hpp"

namespace weir::apps {

/// Shades from 0, black, to 255, row by row from the top.
struct Image {
  std::size_t width = 0, height = 0;
  std::vector<std::uint8_t> shades;

  std::uint8_t& operator()(std::size_t x, std::size_t y) { return shades[y * width + x]; }
  std::uint8_t operator()(std::size_t x, std::size_t y) const { return shades[y * width + x]; }
};

/// Red, green and blue, each from 0 to 255, row by row from the top.
struct ColourImage {
  std::size_t width = 0, height = 0;
  std::vector<std::uint8_t> colours;
};

/// Returns whether a path has the extension of a picture: .png, .jpg, .jpeg or .pgm.
bool is_image(std::string_view path);

/// Returns whether a file is one to read as a picture: its first bytes are those of a picture.
/// Returns true for a file that only has the extension, too: read_image() then says what is wrong
/// with it. Throws InputError when the file cannot be opened.
bool holds_image(const std::string& path);

/// Reads a picture, colours as shades of grey; the first bytes decide what it is. PGM is the binary
/// form with 8 bits (P5). Throws InputError with the path and the reason when the file is not a
/// picture, is damaged, exceeds the limits, or needs a library that this build does not have.
Image read_image(const std::string& path, const ReadLimits& limits = {});
/// The same from the bytes of a file; the name stands for the path in messages.
Image read_image_from(std::string_view bytes, std::string_view name, const ReadLimits& limits = {});

/// The same in colours; shades of grey have three equal parts.
ColourImage read_colours(const std::string& path, const ReadLimits& limits = {});

/// Throws InputError unless write_image() knows the extension.
void check_image_format(const std::string& path);
/// Writes .png or .pgm. Throws InputError with the path and the reason, and leaves nothing behind.
void write_image(const std::string& path, const Image& image);

/// The same for colours, in .png or .ppm.
void check_colour_format(const std::string& path);
void write_image(const std::string& path, const ColourImage& image);

}  // namespace weir::apps
