#include "face_detection/drawn_faces.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <random>

namespace weir::apps {

namespace {

constexpr int kWidth = 480, kHeight = 320, kColumns = 3, kRows = 2, kFaces = 5;
static_assert(std::size_t{3} * kWidth * kHeight == kDrawnBytes);
constexpr int kLeastFace = 56, kMostFace = 120;
constexpr int kLeastShade = 90, kMostShade = 140;  ///< of the background
constexpr int kFigures = 24;

using Generator = std::mt19937_64;
using Colour = std::array<int, 3>;

constexpr Colour kSkin = {232, 196, 164}, kEye = {52, 38, 34}, kMouth = {120, 24, 30};

int between(int least, int most, Generator& random) {
  return least + static_cast<int>(random() % static_cast<std::uint64_t>(most - least + 1));
}

/// A part of a face, in shares of the edge of its box.
struct Ellipse {
  double x, y, across, along;
  bool has(double u, double v) const noexcept {
    const double a = (u - x) / across, b = (v - y) / along;
    return a * a + b * b <= 1;
  }
};
constexpr Ellipse kHead = {0.5, 0.5, 0.42, 0.47}, kLeftEye = {0.3, 0.36, 0.09, 0.085},
                  kRightEye = {0.7, 0.36, 0.09, 0.085}, kLips = {0.5, 0.77, 0.19, 0.06};

class Drawing {
 public:
  explicit Drawing(Generator& random) : random_(random) {
    image_.width = kWidth;
    image_.height = kHeight;
    image_.colours.resize(std::size_t{3} * kWidth * kHeight);
    const int left = shade(), right = shade();
    for (int y = 0; y < kHeight; ++y) {
      for (int x = 0; x < kWidth; ++x) {
        const int mixed = (left * (kWidth - x) + right * x) / kWidth;
        paint(x, y, {mixed, mixed, mixed});
      }
    }
  }

  void add_figure() {
    const int x = between(0, kWidth - 1, random_), y = between(0, kHeight - 1, random_);
    const int size = between(6, 40, random_);
    const Colour colour = {shade(), shade(), shade()};
    const bool round = random_() % 2 == 0;
    for (int v = -size; v <= size; ++v) {
      for (int u = -size; u <= size; ++u) {
        if (!round || u * u + v * v <= size * size) paint(x + u, y + v, colour);
      }
    }
  }
  void add_face(const Box& box) {
    for (int y = 0; y < box.height; ++y) {
      for (int x = 0; x < box.width; ++x) {
        const double u = (x + 0.5) / box.width, v = (y + 0.5) / box.height;
        if (!kHead.has(u, v)) continue;
        const bool eye = kLeftEye.has(u, v) || kRightEye.has(u, v);
        paint(box.x + x, box.y + y, eye ? kEye : kLips.has(u, v) ? kMouth : kSkin);
      }
    }
  }
  /// Makes each part a little lighter or darker.
  void add_noise() {
    for (std::uint8_t& part : image_.colours) {
      part = static_cast<std::uint8_t>(std::clamp(part + between(-6, 6, random_), 0, 255));
    }
  }
  const ColourImage& image() const noexcept { return image_; }

 private:
  int shade() { return between(kLeastShade, kMostShade, random_); }
  void paint(int x, int y, const Colour& colour) {
    if (x < 0 || y < 0 || x >= kWidth || y >= kHeight) return;
    const std::size_t at = 3 * (static_cast<std::size_t>(y) * kWidth + static_cast<std::size_t>(x));
    for (std::size_t i = 0; i < 3; ++i)
      image_.colours[at + i] = static_cast<std::uint8_t>(colour[i]);
  }

  Generator& random_;
  ColourImage image_;
};

/// Bits of a pattern, for cells that are not darker than the middle.
enum Cell : unsigned {
  above_left = 128,
  above = 64,
  above_right = 32,
  right = 16,
  below = 4,
  left = 1,
};

/// Adds 1 where some cells are not darker than the middle and others are, and takes 1 elsewhere.
Stump stump_for(std::uint32_t grid, unsigned not_darker, unsigned darker) {
  Stump stump{grid, {}, {1, -1}};
  for (unsigned pattern = 0; pattern < 256; ++pattern) {
    const bool wanted = (pattern & not_darker) == not_darker && (pattern & darker) == 0;
    if (wanted) stump.bits[pattern / 32] |= 1U << pattern % 32;
  }
  return stump;
}

}  // namespace

DrawnPicture draw_faces(std::uint64_t seed) {
  Generator random(seed);
  Drawing drawing(random);
  for (int i = 0; i < kFigures; ++i) drawing.add_figure();
  std::array<int, kColumns * kRows> fields{};
  for (std::size_t i = 0; i < fields.size(); ++i) fields[i] = static_cast<int>(i);
  for (std::size_t i = fields.size(); i-- > 1;) std::swap(fields[i], fields[random() % (i + 1)]);
  DrawnPicture drawn;
  for (std::size_t i = 0; i < kFaces; ++i) {
    constexpr int kField = kWidth / kColumns;
    static_assert(kField == kHeight / kRows && kMostFace < kField);
    const int size = between(kLeastFace, kMostFace, random);
    const auto place = [&](int field) {
      return field * kField + between(4, kField - size - 4, random);
    };
    const int x = place(fields[i] % kColumns), y = place(fields[i] / kColumns);
    drawn.faces.push_back({x, y, size, size});
    drawing.add_face(drawn.faces.back());
  }
  drawing.add_noise();
  drawn.image = drawing.image();
  std::sort(drawn.faces.begin(), drawn.faces.end());
  return drawn;
}

Cascade drawn_face_cascade() {
  enum Grid : std::uint32_t { head, left_eye, right_eye, bridge, left_cheek, right_cheek, lips };
  constexpr int kWindow = 24;
  constexpr unsigned kAll = 255;
  return {kWindow,
          kWindow,
          {{{stump_for(head, 0, kAll)}, 0},
           {{stump_for(left_eye, kAll, 0), stump_for(right_eye, kAll, 0)}, 1},
           {{stump_for(bridge, 0, left | right), stump_for(left_cheek, 0, above | left),
             stump_for(right_cheek, 0, above | right)},
            2},
           {{stump_for(lips, above_left | above | above_right | below, 0)}, 0}},
          {{0, 0, 8, 8},
           {1, 3, 4, 4},
           {11, 3, 4, 4},
           {5, 4, 5, 3},
           {0, 8, 4, 4},
           {12, 8, 4, 4},
           {6, 14, 4, 3}}};
}

bool is_about(const Box& found, const Box& drawn) {
  const auto centre = [](int begin, int size) { return 2 * begin + size; };
  const int across = std::abs(centre(found.x, found.width) - centre(drawn.x, drawn.width));
  const int along = std::abs(centre(found.y, found.height) - centre(drawn.y, drawn.height));
  return 2 * across <= drawn.width && 2 * along <= drawn.height &&
         3 * found.width >= 2 * drawn.width && 2 * found.width <= 3 * drawn.width;
}

}  // namespace weir::apps
