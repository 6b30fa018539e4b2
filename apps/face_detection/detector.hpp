// Windows of a picture that a cascade takes for faces: what OpenCV's detector finds, bit for bit.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/image.hpp"
#include "face_detection/cascade.hpp"

namespace weir::apps {

/// A square or rectangle of a picture, in pixels.
struct Box {
  int x, y, width, height;
  auto operator<=>(const Box&) const = default;
};

/// A picture in shades of grey, as OpenCV mixes them.
Image grey_of(const ColourImage& image);

/// How much smaller than the picture its levels are: powers of a factor above 1, as long as a
/// window fits.
std::vector<float> scales_of(std::size_t width, std::size_t height, const Cascade& cascade,
                             double factor);

/// The result of a cascade for a window; failed_at_once: in its first stage.
enum class Verdict : std::uint8_t { failed, failed_at_once, face };

/// A smaller picture, and the data derived from it.
class Level {
 public:
  /// Resizes with OpenCV's exact bilinear rule.
  void resize(const Image& grey, float scale);
  /// Makes sums of rectangles cheap, for the grids of a cascade.
  void integrate(const Cascade& cascade);

  const Image& picture() const noexcept { return picture_; }
  /// Rows in which windows begin.
  std::size_t rows(const Cascade& cascade) const noexcept;
  /// Pixels from one window to the next.
  std::size_t step() const noexcept;

  /// Calls found(box) for the faces whose windows begin in rows [first, end). After a window that
  /// fails in the first stage the scan skips the next one; `first` is a multiple of step().
  template <class Found>
  void scan(const Cascade& cascade, std::size_t first, std::size_t end, const Found& found) const {
    walk(cascade, first, end, found,
         [&](std::size_t x, std::size_t y) { return classify(cascade, x, y); });
  }
  /// The same with verdicts that were computed elsewhere: verdict_of(x, y).
  template <class Found, class VerdictOf>
  void walk(const Cascade& cascade, std::size_t first, std::size_t end, const Found& found,
            const VerdictOf& verdict_of) const {
    const std::size_t columns = places(picture_.width, cascade.width);
    for (std::size_t y = first; y < end; y += step()) {
      for (std::size_t x = 0; x < columns; x += step()) {
        const Verdict verdict = verdict_of(x, y);
        if (verdict == Verdict::face) found(box(cascade, x, y));
        if (verdict == Verdict::failed_at_once) x += step();
      }
    }
  }
  /// The same with sums that are added up pixel by pixel.
  bool is_face_by_pixels(const Cascade& cascade, std::size_t x, std::size_t y,
                         bool* out_failed_at_once) const noexcept;
  Box box(const Cascade& cascade, std::size_t x, std::size_t y) const noexcept;
  static std::size_t places(std::size_t pixels, int window) noexcept;

 private:
  Verdict classify(const Cascade& cascade, std::size_t x, std::size_t y) const noexcept;
  template <class Pattern>
  static Verdict judged(const Cascade& cascade, const Pattern& pattern) noexcept;

  float scale_ = 1;
  Image picture_;
  std::vector<std::uint32_t> sums_;                   ///< of the pixels above and to the left
  std::vector<std::array<std::uint32_t, 16>> grids_;  ///< offsets of the corners of their cells
};

/// Clips to the picture.
void clip(std::vector<Box>& boxes, std::size_t width, std::size_t height);

/// Puts boxes together that are about the same, and returns the mean of each group with more than
/// `neighbours` of them; 0: all boxes as they are.
std::vector<Box> group(std::span<const Box> boxes, std::size_t neighbours);

}  // namespace weir::apps
