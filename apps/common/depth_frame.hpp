// A picture that many threads draw at once.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "common/image.hpp"
#include "common/parsing.hpp"

namespace weir::apps {

struct Colour {
  std::uint8_t red, green, blue;
};

/// The nearest colour of each pixel. Depth and colour are one word, of which the least wins: the
/// picture is the same in whatever order it is drawn, where depths are equal, too.
class DepthFrame {
 public:
  DepthFrame(std::size_t width, std::size_t height) : width_(width), words_(width * height, kFar) {}

  /// Throws InputError when so many frames take more than half of the memory.
  static void check(std::size_t width, std::size_t height, std::size_t frames) {
    const std::string where = fmt::format("--width {} --height {}", width, height);
    check_size(where, {frames * height, width}, sizeof(std::uint64_t), {});
  }

  std::size_t width() const noexcept { return width_; }
  std::size_t height() const noexcept { return words_.size() / width_; }
  void clear() { std::fill(words_.begin(), words_.end(), kFar); }

  /// Draws a pixel; x and y are inside. On any thread. Pixels with a depth outside of [0, 1] are
  /// not drawn.
  void draw(std::size_t x, std::size_t y, float depth, Colour colour) noexcept {
    if (!(depth >= 0 && depth <= 1)) return;
    const std::uint64_t word = std::uint64_t{std::bit_cast<std::uint32_t>(depth + 0.0F)} << 32 |
                               std::uint64_t{colour.red} << 16 | std::uint64_t{colour.green} << 8 |
                               colour.blue;
    draw(x, y, word);
  }
  /// The same with depth and colour in a word, as draw() makes it; kFar draws nothing.
  void draw(std::size_t x, std::size_t y, std::uint64_t word) noexcept {
    const std::atomic_ref<std::uint64_t> nearest(words_[y * width_ + x]);
    std::uint64_t known = nearest.load(std::memory_order_relaxed);
    while (word < known && !nearest.compare_exchange_weak(known, word, std::memory_order_relaxed)) {
    }
  }
  static constexpr std::uint64_t kFar = ~std::uint64_t{0};

  bool covered(std::size_t x, std::size_t y) const noexcept { return at(x, y) != kFar; }
  /// Of a pixel that is covered.
  float depth(std::size_t x, std::size_t y) const noexcept {
    return std::bit_cast<float>(static_cast<std::uint32_t>(at(x, y) >> 32));
  }
  std::size_t covered_pixels() const {
    return words_.size() - static_cast<std::size_t>(std::count(words_.begin(), words_.end(), kFar));
  }
  /// A number that pictures of the same depths and colours share (FNV-1a of the words).
  std::uint64_t hash() const noexcept {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const std::uint64_t word : words_) hash = (hash ^ word) * 0x100000001b3;
    return hash;
  }
  /// Returns in how many pixels two pictures of one size differ.
  std::size_t differences(const DepthFrame& other) const {
    std::size_t different = 0;
    for (std::size_t i = 0; i < words_.size(); ++i) different += words_[i] != other.words_[i];
    return different;
  }

  /// y grows upwards in frames, and downwards in images.
  ColourImage image(Colour background) const {
    ColourImage image{width(), height(), {}};
    for (std::size_t y = height(); y-- > 0;) {
      for (std::size_t x = 0; x < width(); ++x) {
        const std::uint64_t word = at(x, y);
        const Colour seen = word == kFar ? background
                                         : Colour{static_cast<std::uint8_t>(word >> 16),
                                                  static_cast<std::uint8_t>(word >> 8),
                                                  static_cast<std::uint8_t>(word)};
        for (const std::uint8_t part : {seen.red, seen.green, seen.blue}) {
          image.colours.push_back(part);
        }
      }
    }
    return image;
  }

 private:
  std::uint64_t at(std::size_t x, std::size_t y) const noexcept { return words_[y * width_ + x]; }

  std::size_t width_;
  std::vector<std::uint64_t> words_;
};

}  // namespace weir::apps
