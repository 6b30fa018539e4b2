// Classifiers that OpenCV trained: cascades of stages over local binary patterns.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weir::apps {

/// Three by three cells of `width` x `height` pixels in a window, the first one at (x, y).
struct CellGrid {
  int x, y, width, height;
};

/// Adds one of two numbers, by the pattern of a grid: the first where its bit is set.
struct Stump {
  std::uint32_t grid;
  std::array<std::uint32_t, 8> bits;
  std::array<float, 2> leaves;
};

/// Stumps whose sum must reach a threshold.
struct CascadeStage {
  std::vector<Stump> stumps;
  float threshold;
};

struct Cascade {
  int width, height;  ///< of a window
  std::vector<CascadeStage> stages;
  std::vector<CellGrid> grids;
};

/// Reads a file of OpenCV's format. Throws InputError with the path, the line and the reason when
/// the file has another format, trees or features of another kind, or inconsistent numbers.
Cascade read_cascade(const std::string& path);
/// The same from the bytes of a file; the name stands for the path in messages.
Cascade read_cascade_from(std::string_view bytes, std::string_view name);

}  // namespace weir::apps
