#include "face_detection/detector.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace weir::apps {

namespace {

int rounded(double value) noexcept { return static_cast<int>(std::lrint(value)); }
std::size_t scaled(std::size_t pixels, float scale) noexcept {
  return static_cast<std::size_t>(rounded(static_cast<float>(pixels) / scale));
}

/// Where a pixel of a resized line comes from: two neighbours and their shares in 256ths.
struct Source {
  std::size_t first, second;
  std::uint32_t first_share, second_share;
};

std::vector<Source> sources_of(std::size_t from, std::size_t to) {
  constexpr double kShares = 256;
  const double scale = 1 / (static_cast<double>(to) / static_cast<double>(from));
  std::vector<Source> sources;
  for (std::size_t i = 0; i < to; ++i) {
    const double at = scale * (static_cast<double>(i) + 0.5) - 0.5;
    const double low = std::floor(at);
    if (low < 0 || from == 1) {
      sources.push_back({0, 0, 256, 0});
    } else if (low >= static_cast<double>(from - 1)) {
      sources.push_back({from - 1, from - 1, 256, 0});
    } else {
      const auto first = static_cast<std::size_t>(low);
      const auto share = static_cast<std::uint32_t>(rounded((at - low) * kShares));
      sources.push_back({first, first + 1, 256 - share, share});
    }
  }
  return sources;
}

/// Bits of a pattern for the cells around the middle, and where these are in a grid of three.
struct Neighbour {
  int column, row;
  unsigned bit;
};
constexpr std::array<Neighbour, 8> kNeighbours = {
    {{0, 0, 128}, {1, 0, 64}, {2, 0, 32}, {2, 1, 16}, {2, 2, 8}, {1, 2, 4}, {0, 2, 2}, {0, 1, 1}}};

/// Corners of cells are numbered row by row, four in a row.
constexpr std::size_t kCorners = 4;

template <class CellSum>
unsigned pattern_of(const CellSum& cell) noexcept {
  const std::int32_t middle = cell(1, 1);
  unsigned pattern = 0;
  for (const Neighbour& at : kNeighbours) {
    if (cell(at.column, at.row) >= middle) pattern |= at.bit;
  }
  return pattern;
}

bool similar(const Box& a, const Box& b) noexcept {
  constexpr double kShare = 0.2;
  const double most = kShare * (std::min(a.width, b.width) + std::min(a.height, b.height)) * 0.5;
  return std::abs(a.x - b.x) <= most && std::abs(a.y - b.y) <= most &&
         std::abs(a.x + a.width - b.x - b.width) <= most &&
         std::abs(a.y + a.height - b.y - b.height) <= most;
}

/// Whether a box is inside of another, or nearly so.
bool nearly_inside(const Box& small, const Box& large) noexcept {
  constexpr double kShare = 0.2;
  const int across = rounded(large.width * kShare), along = rounded(large.height * kShare);
  return small.x >= large.x - across && small.y >= large.y - along &&
         small.x + small.width <= large.x + large.width + across &&
         small.y + small.height <= large.y + large.height + along;
}

struct Group {
  Box sum;
  std::size_t count;
};

std::vector<Group> groups_of(std::span<const Box> boxes) {
  std::vector<std::size_t> parent(boxes.size());
  std::iota(parent.begin(), parent.end(), std::size_t{0});
  const auto root = [&](std::size_t i) {
    while (parent[i] != i) i = parent[i] = parent[parent[i]];
    return i;
  };
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (similar(boxes[i], boxes[j])) parent[root(i)] = root(j);
    }
  }
  std::vector<Group> groups;
  std::vector<std::size_t> number(boxes.size(), boxes.size());
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    std::size_t& group = number[root(i)];
    if (group == boxes.size()) {
      group = groups.size();
      groups.push_back({{0, 0, 0, 0}, 0});
    }
    Box& sum = groups[group].sum;
    sum = {sum.x + boxes[i].x, sum.y + boxes[i].y, sum.width + boxes[i].width,
           sum.height + boxes[i].height};
    ++groups[group].count;
  }
  return groups;
}

Box mean_of(const Group& group) noexcept {
  const float share = 1.0F / static_cast<float>(group.count);
  const auto part = [&](int sum) { return rounded(static_cast<float>(sum) * share); };
  return {part(group.sum.x), part(group.sum.y), part(group.sum.width), part(group.sum.height)};
}

}  // namespace

Image grey_of(const ColourImage& image) {
  constexpr std::uint32_t kRed = 9798, kGreen = 19235, kBlue = 3735, kHalf = 1 << 14;
  Image grey{image.width, image.height, std::vector<std::uint8_t>(image.width * image.height)};
  for (std::size_t i = 0; i < grey.shades.size(); ++i) {
    const std::uint8_t* const pixel = &image.colours[3 * i];
    grey.shades[i] = static_cast<std::uint8_t>(
        (kRed * pixel[0] + kGreen * pixel[1] + kBlue * pixel[2] + kHalf) >> 15);
  }
  return grey;
}

std::vector<float> scales_of(std::size_t width, std::size_t height, const Cascade& cascade,
                             double factor) {
  std::vector<float> scales;
  for (double scale = 1;; scale *= factor) {
    const double across = std::rint(cascade.width * scale),
                 along = std::rint(cascade.height * scale);
    if (across > static_cast<double>(width) || along > static_cast<double>(height)) return scales;
    scales.push_back(static_cast<float>(scale));
  }
}

void Level::resize(const Image& grey, float scale) {
  scale_ = scale;
  picture_ = {scaled(grey.width, scale), scaled(grey.height, scale), {}};
  picture_.shades.resize(picture_.width * picture_.height);
  if (picture_.width == grey.width && picture_.height == grey.height) {
    picture_.shades = grey.shades;
    return;
  }
  const std::vector<Source> columns = sources_of(grey.width, picture_.width);
  const std::vector<Source> rows = sources_of(grey.height, picture_.height);
  constexpr std::uint32_t kHalf = 1 << 15;
  for (std::size_t y = 0; y < picture_.height; ++y) {
    const std::uint8_t* const low = &grey.shades[rows[y].first * grey.width];
    const std::uint8_t* const high = &grey.shades[rows[y].second * grey.width];
    for (std::size_t x = 0; x < picture_.width; ++x) {
      const Source& at = columns[x];
      const std::uint32_t below = at.first_share * low[at.first] + at.second_share * low[at.second];
      const std::uint32_t above =
          at.first_share * high[at.first] + at.second_share * high[at.second];
      picture_(x, y) = static_cast<std::uint8_t>(
          (rows[y].first_share * below + rows[y].second_share * above + kHalf) >> 16);
    }
  }
}

void Level::integrate(const Cascade& cascade) {
  const std::size_t stride = picture_.width + 1;
  sums_.assign(stride * (picture_.height + 1), 0);
  for (std::size_t y = 0; y < picture_.height; ++y) {
    std::uint32_t row = 0;
    for (std::size_t x = 0; x < picture_.width; ++x) {
      row += picture_(x, y);
      sums_[(y + 1) * stride + x + 1] = sums_[y * stride + x + 1] + row;
    }
  }
  grids_.clear();
  for (const CellGrid& grid : cascade.grids) {
    auto& corners = grids_.emplace_back();
    for (std::size_t i = 0; i < corners.size(); ++i) {
      const int column = static_cast<int>(i % kCorners), row = static_cast<int>(i / kCorners);
      corners[i] =
          static_cast<std::uint32_t>(static_cast<std::size_t>(grid.y + row * grid.height) * stride +
                                     static_cast<std::size_t>(grid.x + column * grid.width));
    }
  }
}

std::size_t Level::places(std::size_t pixels, int window) noexcept {
  const auto size = static_cast<std::size_t>(window);
  return pixels < size ? 0 : pixels + 1 - size;
}

std::size_t Level::rows(const Cascade& cascade) const noexcept {
  return places(picture_.height, cascade.height);
}

std::size_t Level::step() const noexcept {
  constexpr float kCoarse = 2;
  return scale_ >= kCoarse ? 1 : 2;
}

template <class Pattern>
Verdict Level::judged(const Cascade& cascade, const Pattern& pattern) noexcept {
  for (std::size_t i = 0; i < cascade.stages.size(); ++i) {
    double sum = 0;
    for (const Stump& stump : cascade.stages[i].stumps) {
      const unsigned code = pattern(stump.grid);
      const bool set = stump.bits[code / 32] >> code % 32 & 1;
      sum += set ? stump.leaves[0] : stump.leaves[1];
    }
    if (sum < cascade.stages[i].threshold)
      return i == 0 ? Verdict::failed_at_once : Verdict::failed;
  }
  return Verdict::face;
}

Verdict Level::classify(const Cascade& cascade, std::size_t x, std::size_t y) const noexcept {
  const std::uint32_t* const window = &sums_[y * (picture_.width + 1) + x];
  return judged(cascade, [&](std::uint32_t grid) {
    const auto& corners = grids_[grid];
    return pattern_of([&](int column, int row) {
      const std::size_t i =
          static_cast<std::size_t>(row) * kCorners + static_cast<std::size_t>(column);
      return static_cast<std::int32_t>(window[corners[i]] - window[corners[i + 1]] -
                                       window[corners[i + kCorners]] +
                                       window[corners[i + kCorners + 1]]);
    });
  });
}

bool Level::is_face_by_pixels(const Cascade& cascade, std::size_t x, std::size_t y,
                              bool* out_failed_at_once) const noexcept {
  const Verdict verdict = judged(cascade, [&](std::uint32_t index) {
    const CellGrid& grid = cascade.grids[index];
    return pattern_of([&](int column, int row) {
      std::int32_t sum = 0;
      for (int v = 0; v < grid.height; ++v) {
        for (int u = 0; u < grid.width; ++u) {
          sum += picture_(x + static_cast<std::size_t>(grid.x + column * grid.width + u),
                          y + static_cast<std::size_t>(grid.y + row * grid.height + v));
        }
      }
      return sum;
    });
  });
  *out_failed_at_once = verdict == Verdict::failed_at_once;
  return verdict == Verdict::face;
}

Box Level::box(const Cascade& cascade, std::size_t x, std::size_t y) const noexcept {
  return {rounded(static_cast<float>(x) * scale_), rounded(static_cast<float>(y) * scale_),
          rounded(static_cast<float>(cascade.width) * scale_),
          rounded(static_cast<float>(cascade.height) * scale_)};
}

void clip(std::vector<Box>& boxes, std::size_t width, std::size_t height) {
  for (Box& box : boxes) {
    box.width = std::min(box.width, static_cast<int>(width) - box.x);
    box.height = std::min(box.height, static_cast<int>(height) - box.y);
  }
}

std::vector<Box> group(std::span<const Box> boxes, std::size_t neighbours) {
  if (neighbours == 0) return {boxes.begin(), boxes.end()};
  constexpr std::size_t kFew = 3;
  const std::vector<Group> groups = groups_of(boxes);
  std::vector<Box> kept;
  for (const Group& each : groups) {
    if (each.count <= neighbours) continue;
    const bool part = std::any_of(groups.begin(), groups.end(), [&](const Group& other) {
      return &other != &each && other.count > neighbours &&
             (other.count > std::max(kFew, each.count) || each.count < kFew) &&
             nearly_inside(mean_of(each), mean_of(other));
    });
    if (!part) kept.push_back(mean_of(each));
  }
  return kept;
}

}  // namespace weir::apps
