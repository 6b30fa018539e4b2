// The exchange of faces by how far apart their cells are in memory.
#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include <CLI/CLI.hpp>
#include <weir/grid.hpp>

#include "bench/rank_experiment.hpp"

namespace weir::cli::bench {

namespace {

constexpr std::size_t kFaceBytes = 32u << 20;  ///< of the faces of a measurement, at most
constexpr std::size_t kExchanges = 500;        ///< likewise
constexpr std::size_t kWide = 16;              ///< cells of a float that fill a cache line

/// One cube of n x n x n cells for each rank, in a row along one dimension, and the exchange of the
/// faces between them.
class Cubes {
 public:
  Cubes(const Fabric& fabric, std::size_t n, std::size_t dimension, std::size_t width)
      : fabric_(fabric), face_bytes_(n * n * width * sizeof(float)) {
    GridOptions wanted;
    wanted.cells.assign(3, n);
    wanted.cells[dimension] *= fabric.ranks();
    wanted.ranks = fabric.ranks();
    wanted.blocks = {1, 1, 1};
    wanted.blocks[dimension] = fabric.ranks();
    std::array<std::size_t, 3> extent{n, n, n};
    extent[dimension] += 2 * width;
    cells_.assign(extent[0] * extent[1] * extent[2], 1.0f);
    const std::array<std::size_t, 3> stride{1, extent[0], extent[0] * extent[1]};
    HaloOptions options;
    options.width = {0, 0, 0};
    options.width[dimension] = width;
    options.fields = {{sizeof(float), "float"}};
    options.arrays = {{cells_.data() + stride[dimension] * width, stride[1] * sizeof(float),
                       stride[2] * sizeof(float)}};
    halo_ = Halo(fabric, Grid(wanted), options);
  }

  /// Returns the rate of a face in each direction, from the seconds of a run of many exchanges.
  template <class Median>
  double gigabytes_per_second(const Median& median) const {
    const std::size_t count = std::clamp<std::size_t>(kFaceBytes / face_bytes_, 8, kExchanges);
    const double seconds = median([&] {
      return seconds_together(fabric_, [&] {
        for (std::size_t i = 0; i < count; ++i) {
          halo_.start();
          halo_.finish();
        }
      });
    });
    return static_cast<double>(count * face_bytes_) / seconds * 1e-9;
  }

 private:
  const Fabric& fabric_;
  const std::size_t face_bytes_;
  std::vector<float> cells_;
  Halo halo_;
};

class Halos final : public RankExperiment {
 public:
  const char* name() const override { return "halos"; }
  const char* summary() const override {
    return "Rate of faces of cubes that ranks exchange, by the layout of a face in memory";
  }

 private:
  void add_own_options(CLI::App& app) override {
    app.add_option("--edges", edges_, "Cells of an edge, as 32,64 [32,64,128,256]")
        ->delimiter(',')
        ->check(CLI::Range(kWide, std::size_t{1024}));
  }

  Json measure(Fabric& fabric) override {
    Json points = Json::array();
    for (const std::size_t n : edges_) {
      show_progress(points.size(), edges_.size());
      const auto rate = [&](std::size_t dimension, std::size_t width) {
        return Cubes(fabric, n, dimension, width).gigabytes_per_second([this](const auto& once) {
          return median(once);
        });
      };
      points.push_back({{"edge", n},
                        {"face_bytes", n * n * sizeof(float)},
                        {"contiguous_gb_per_s", rate(2, 1)},
                        {"rows_gb_per_s", rate(1, 1)},
                        {"cells_gb_per_s", rate(0, 1)},
                        {"wide_gb_per_s", rate(0, kWide)}});
    }
    return points;
  }

  std::vector<Column> columns() const override {
    return {{"edge", "edge"},
            {"bytes of a face", "face_bytes"},
            {"contiguous GB/s", "contiguous_gb_per_s"},
            {"rows GB/s", "rows_gb_per_s"},
            {"single cells GB/s", "cells_gb_per_s"},
            {"16 cells wide GB/s", "wide_gb_per_s"}};
  }

  std::vector<std::size_t> edges_ = {32, 64, 128, 256};
};

}  // namespace

std::unique_ptr<RankExperiment> make_halos() { return std::make_unique<Halos>(); }

}  // namespace weir::cli::bench
