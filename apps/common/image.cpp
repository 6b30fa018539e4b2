#include "common/image.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <memory>

#if defined(WEIR_APPS_PNG)
#include <png.h>
#endif
#if defined(WEIR_APPS_JPEG)
#include <turbojpeg.h>
#endif

#include "common/file.hpp"
#include "common/parsing.hpp"

namespace weir::apps {

namespace {

constexpr std::string_view kPngMagic = "\x89PNG\r\n\x1a\n", kJpegMagic = "\xff\xd8\xff";
constexpr std::string_view kPgmMagic = "P5";

std::string extension_of(std::string_view path) {
  std::string extension = std::filesystem::path(path).extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return extension;
}

/// The result of readers: a byte for each pixel, or three.
struct Pixels {
  std::size_t width, height;
  std::vector<std::uint8_t> bytes;
};

Pixels make_pixels(std::string_view name, std::size_t width, std::size_t height, bool colours,
                   const ReadLimits& limits) {
  if (width == 0 || height == 0)
    fail_input("{}: the picture has {} x {} pixels", name, width, height);
  const std::size_t each = colours ? 3 : 1;
  check_size(std::string(name), {height, width}, each, limits);
  return {width, height, std::vector<std::uint8_t>(width * height * each)};
}

[[noreturn, maybe_unused]] void fail_without(std::string_view name, const char* format,
                                             const char* package) {
  fail_input("{}: this build reads and writes no {}: install {} and build again, or use .pgm", name,
             format, package);
}

#if defined(WEIR_APPS_PNG)
/// Frees what the library holds for a picture.
struct PngImage : png_image {
  PngImage() : png_image{} { version = PNG_IMAGE_VERSION; }
  PngImage(const PngImage&) = delete;
  PngImage& operator=(const PngImage&) = delete;
  ~PngImage() { png_image_free(this); }
};

Pixels read_png(std::string_view bytes, std::string_view name, bool colours,
                const ReadLimits& limits) {
  PngImage png;
  const bool begun = png_image_begin_read_from_memory(&png, bytes.data(), bytes.size()) != 0;
  if (!begun) fail_input("{}: damaged PNG: {}", name, png.message);
  png.format = colours ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
  Pixels pixels = make_pixels(name, png.width, png.height, colours, limits);
  constexpr png_color kWhite = {255, 255, 255};
  if (png_image_finish_read(&png, &kWhite, pixels.bytes.data(), 0, nullptr) == 0) {
    fail_input("{}: damaged PNG: {}", name, png.message);
  }
  return pixels;
}

std::string png_of(const std::string& path, std::size_t width, std::size_t height, bool colours,
                   const std::uint8_t* pixels) {
  PngImage png;
  png.width = static_cast<png_uint_32>(width);
  png.height = static_cast<png_uint_32>(height);
  png.format = colours ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(png);
  std::string bytes(size, '\0');
  if (png_image_write_to_memory(&png, bytes.data(), &size, 0, pixels, 0, nullptr) == 0) {
    fail_input("{}: cannot be written as PNG: {}", path, png.message);
  }
  bytes.resize(size);
  return bytes;
}
#else
Pixels read_png(std::string_view, std::string_view name, bool, const ReadLimits&) {
  fail_without(name, "PNG", "libpng-dev");
}
std::string png_of(const std::string& path, std::size_t, std::size_t, bool, const std::uint8_t*) {
  fail_without(path, "PNG", "libpng-dev");
}
#endif

#if defined(WEIR_APPS_JPEG)
/// Whether a call that failed only warns of a picture that is there, unless its file is cut.
bool is_only_warning(void* handle) {
  if (tjGetErrorCode(handle) != TJERR_WARNING) return false;
  const std::string_view message = tjGetErrorStr2(handle);
  return message.find("Premature end of JPEG file") == std::string_view::npos;
}

Pixels read_jpeg(std::string_view bytes, std::string_view name, bool in_colours,
                 const ReadLimits& limits) {
  struct Close {
    void operator()(void* handle) const { tjDestroy(handle); }
  };
  const std::unique_ptr<void, Close> handle(tjInitDecompress());
  const auto* const data = reinterpret_cast<const unsigned char*>(bytes.data());
  int width = 0, height = 0, sampling = 0, colours = 0;
  if (tjDecompressHeader3(handle.get(), data, bytes.size(), &width, &height, &sampling, &colours) !=
          0 &&
      !is_only_warning(handle.get())) {
    fail_input("{}: damaged JPEG: {}", name, tjGetErrorStr2(handle.get()));
  }
  Pixels pixels = make_pixels(name, static_cast<std::size_t>(width),
                              static_cast<std::size_t>(height), in_colours, limits);
  if (tjDecompress2(handle.get(), data, bytes.size(), pixels.bytes.data(), width, 0, height,
                    in_colours ? TJPF_RGB : TJPF_GRAY, 0) != 0 &&
      !is_only_warning(handle.get())) {
    fail_input("{}: damaged JPEG: {}", name, tjGetErrorStr2(handle.get()));
  }
  return pixels;
}
#else
Pixels read_jpeg(std::string_view, std::string_view name, bool, const ReadLimits&) {
  fail_without(name, "JPEG", "libturbojpeg0-dev");
}
#endif

/// The header of a PGM: numbers between blanks and comments.
class PgmHeader {
 public:
  PgmHeader(std::string_view bytes, std::string_view name)
      : bytes_(bytes), name_(name), at_(kPgmMagic.size()) {}

  std::size_t number(const char* what) {
    skip();
    std::size_t value = 0;
    const char* const begin = bytes_.data() + std::min(at_, bytes_.size());
    const auto [end, error] = std::from_chars(begin, bytes_.data() + bytes_.size(), value);
    if (error != std::errc()) {
      fail_input("{}: byte {}: found {}, expected the {} of a PGM", name_, at_,
                 in_quotes(bytes_.substr(std::min(at_, bytes_.size()), 8)), what);
    }
    at_ = static_cast<std::size_t>(end - bytes_.data());
    return value;
  }
  /// The pixels begin behind one blank.
  std::string_view rest() const { return bytes_.substr(std::min(at_ + 1, bytes_.size())); }

 private:
  void skip() {
    while (at_ < bytes_.size() &&
           (is_blank(bytes_[at_]) || bytes_[at_] == '\n' || bytes_[at_] == '#')) {
      at_ = bytes_[at_] == '#' ? std::min(bytes_.find('\n', at_), bytes_.size()) : at_ + 1;
    }
  }

  std::string_view bytes_, name_;
  std::size_t at_;
};

Pixels read_pgm(std::string_view bytes, std::string_view name, const ReadLimits& limits) {
  PgmHeader header(bytes, name);
  const std::size_t width = header.number("width"), height = header.number("height");
  constexpr std::size_t kWhite = 255;
  const std::size_t white = header.number("shade of white");
  if (white == 0 || white > kWhite) {
    fail_input("{}: found {} shades, expected 1 to {}", name, white, kWhite);
  }
  Pixels pixels = make_pixels(name, width, height, false, limits);
  const std::string_view found = header.rest();
  if (found.size() < pixels.bytes.size()) {
    fail_input("{}: found {} of {} pixels: the file is cut", name, found.size(),
               pixels.bytes.size());
  }
  std::transform(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(pixels.bytes.size()),
                 pixels.bytes.begin(), [=](char pixel) {
                   const std::size_t shade = static_cast<unsigned char>(pixel);
                   return static_cast<std::uint8_t>(std::min(shade, white) * kWhite / white);
                 });
  return pixels;
}

/// A PGM has no colours.
Pixels read_pixels(std::string_view bytes, std::string_view name, bool colours,
                   const ReadLimits& limits) {
  if (bytes.starts_with(kPngMagic)) return read_png(bytes, name, colours, limits);
  if (bytes.starts_with(kJpegMagic)) return read_jpeg(bytes, name, colours, limits);
  if (bytes.starts_with(kPgmMagic)) return read_pgm(bytes, name, limits);
  fail_input("{}: byte 0: found {}, expected a picture: PNG, JPEG or PGM (P5)", name,
             in_quotes(bytes.substr(0, 8)));
}

/// P5 and P6 differ in what a pixel is.
std::string portable_map_of(const char* magic, std::size_t width, std::size_t height,
                            const std::vector<std::uint8_t>& pixels) {
  std::string bytes = fmt::format("{}\n{} {}\n255\n", magic, width, height);
  bytes.append(pixels.begin(), pixels.end());
  return bytes;
}

void check_extension(const std::string& path, const char* map) {
  const std::string extension = extension_of(path);
  if (extension == ".png" || extension == map) return;
  fail_input("{}: found the extension {}, expected .png or {}", path,
             in_quotes(std::string_view(extension)), map);
}

void write_file(const std::string& path, std::string_view bytes) {
  OutputFile file(path);
  file.write(bytes);
  file.commit();
}

}  // namespace

bool is_image(std::string_view path) {
  constexpr std::string_view kKnown[] = {".png", ".jpg", ".jpeg", ".pgm"};
  return std::find(std::begin(kKnown), std::end(kKnown), extension_of(path)) != std::end(kKnown);
}

bool holds_image(const std::string& path) {
  if (is_image(path)) return true;
  const MappedFile file(path);
  const std::string_view bytes = file.bytes();
  return bytes.starts_with(kPngMagic) || bytes.starts_with(kJpegMagic) ||
         bytes.starts_with(kPgmMagic);
}

Image read_image_from(std::string_view bytes, std::string_view name, const ReadLimits& limits) {
  Pixels pixels = read_pixels(bytes, name, false, limits);
  return {pixels.width, pixels.height, std::move(pixels.bytes)};
}

Image read_image(const std::string& path, const ReadLimits& limits) {
  const MappedFile file(path);
  return read_image_from(file.bytes(), path, limits);
}

ColourImage read_colours(const std::string& path, const ReadLimits& limits) {
  const MappedFile file(path);
  Pixels pixels = read_pixels(file.bytes(), path, true, limits);
  if (pixels.bytes.size() > pixels.width * pixels.height) {
    return {pixels.width, pixels.height, std::move(pixels.bytes)};
  }
  ColourImage image{pixels.width, pixels.height, {}};
  for (const std::uint8_t shade : pixels.bytes) image.colours.insert(image.colours.end(), 3, shade);
  return image;
}

void check_image_format(const std::string& path) { check_extension(path, ".pgm"); }

void write_image(const std::string& path, const Image& image) {
  check_image_format(path);
  write_file(path, extension_of(path) == ".png"
                       ? png_of(path, image.width, image.height, false, image.shades.data())
                       : portable_map_of("P5", image.width, image.height, image.shades));
}

void check_colour_format(const std::string& path) { check_extension(path, ".ppm"); }

void write_image(const std::string& path, const ColourImage& image) {
  check_colour_format(path);
  write_file(path, extension_of(path) == ".png"
                       ? png_of(path, image.width, image.height, true, image.colours.data())
                       : portable_map_of("P6", image.width, image.height, image.colours));
}

}  // namespace weir::apps
