// The reader of OpenCV's cascades.
#include "common/input_error.hpp"
#include "face_detection/cascade.hpp"
#include "target.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using weir::fuzz::require;
  try {
    const weir::apps::Cascade cascade =
        weir::apps::read_cascade_from({reinterpret_cast<const char*>(data), size}, "input");
    require(!cascade.stages.empty() && !cascade.grids.empty(), "a cascade has stages and features");
    for (const weir::apps::CascadeStage& stage : cascade.stages) {
      require(!stage.stumps.empty(), "a stage has stumps");
      for (const weir::apps::Stump& stump : stage.stumps) {
        require(stump.grid < cascade.grids.size(), "a stump has a grid");
      }
    }
    for (const weir::apps::CellGrid& grid : cascade.grids) {
      require(grid.x >= 0 && grid.x + 3 * grid.width <= cascade.width, "cells are in the window");
      require(grid.y >= 0 && grid.y + 3 * grid.height <= cascade.height, "cells are in the window");
    }
  } catch (const weir::apps::InputError& error) {
    ++weir::fuzz::refused;
    weir::fuzz::require_one_line(error.what());
    require(std::string_view(error.what()).starts_with("input:"), "a refusal says where");
  }
  return 0;
}
