#include "hotspot/hotspot.hpp"

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <heat.wk.h>
#include "common/command_options.hpp"
#include "common/csv.hpp"
#include "common/dense.hpp"
#include "common/parsing.hpp"
#include "common/past_cache.hpp"
#include "common/real_kernel.hpp"
#include "common/tile_grid.hpp"

#define KERNEL_FILE "hotspot/heat.wk"
#include "common/real_kernels.inc"

namespace weir::apps {

namespace {

constexpr Preset kPresets[] = {
    {"tiny", 100, 32, 0, 12}, {"small", 2048, 256, 0, 20}, {"paper", 16384, 1024, 0, 50}};
constexpr double kOperations = 12;  ///< for a cell and step
constexpr std::size_t kFields = 3;  ///< that a step goes through

/// A chip of silicon, 16 mm x 16 mm x 0.5 mm, in cells. SI units, temperatures in kelvin.
struct Chip {
  static constexpr double edge = 0.016, thickness = 0.0005;
  static constexpr double specific_heat = 1.75e6, conductivity = 100, chip_factor = 0.5;
  static constexpr double most_power = 3e6, precision = 0.001, ambient = 80;

  Chip(std::size_t columns, std::size_t rows)
      : cell_width(edge / static_cast<double>(columns)),
        cell_height(edge / static_cast<double>(rows)) {}

  double cell_width, cell_height;

  double capacity() const {
    return chip_factor * specific_heat * thickness * cell_width * cell_height;
  }
  /// Seconds: a thousandth of the time in which no cell warms by more than the precision.
  static double step() {
    const double steepest = most_power / (chip_factor * thickness * specific_heat);
    return precision / steepest / 1000;
  }
  double rate() const { return step() / capacity(); }
  double to_sides() const { return 2 * conductivity * thickness * cell_height / cell_width; }
  double to_ends() const { return 2 * conductivity * thickness * cell_width / cell_height; }
  double to_air() const { return conductivity * cell_height * cell_width / thickness; }
  /// Whether steps do not overshoot.
  bool stable() const { return rate() * (2 * to_sides() + 2 * to_ends() + to_air()) < 1; }
};

template <class T>
weir::Kernel make_kernel(const weir::Runtime& runtime, weir_kernel_shape shape, bool past_cache) {
  return register_kernel<T>(
      runtime, {"hotspot.step", HOST_KERNELS(heat_step), heat_wk, "heat.wk"}, shape,
      [](const weir_call* arguments) {
        const weir::Call call(arguments);
        const double cells = call.scalar<double>(0) * call.scalar<double>(1);
        return weir_cost{kOperations * cells, kFields * sizeof(T) * cells};
      },
      [](const weir::Call& call) {
        return weir::Groups{weir::group_count(call.scalar<std::size_t>(0), WIDTH),
                            call.scalar<std::uint32_t>(1)};
      },
      past_cache ? make_rows_past_cache<T> : nullptr);
}

template <class T>
class Hotspot final : public Workload {
 public:
  /// The matrices have a row for each row of cells.
  Hotspot(Matrix<T> temperature, const Matrix<T>& power, std::size_t edge,
          const Parameters& parameters, const weir::Runtime& runtime, const AppStreams& app_streams)
      : computed_(parameters.computed),
        given_(std::move(temperature)),
        chip_(given_.columns(), given_.rows()),
        iterations_(parameters.iterations),
        output_(parameters.output),
        edge_(edge),
        grid_(app_streams, given_.columns(), given_.rows(),
              TileShape::of(edge, parameters.aspect, given_.columns())),
        steps_(grid_, app_streams, parameters.transform),
        rounds_(steps_.turns([](std::size_t) { return false; })),
        kernel_(make_kernel<T>(runtime, app_streams.shape_for(grid_.size()),
                               kFields * sizeof(T) * given_.size() > kCacheBytes)),
        fields_{grid_.field<T>(runtime, "temperature"), grid_.field<T>(runtime, "temperature")},
        power_(grid_.field<T>(runtime, "power")) {
    if (computed_) grid_.store(power, power_);
  }

  std::size_t n() const override { return grid_.height(); }
  std::size_t tile() const override { return edge_; }
  std::size_t tiles() const override {
    return (std::max(grid_.width(), grid_.height()) + edge_ - 1) / edge_;
  }
  std::size_t iterations() const override { return iterations_; }
  double operations() const override { return kOperations * updates(); }
  double traffic() const override { return kFields * sizeof(T) * updates(); }

  void reset() override {
    if (computed_) grid_.store(given_, fields_[0]);
  }

  void enqueue() override {
    for (std::size_t i = 0; i < grid_.size(); ++i) {
      const weir::Stream& stream = grid_[i].stream->stream;
      stream.upload(grid_.cells(power_, grid_[i]));
      steps_.made(i, stream.upload(grid_.cells(fields_[0], grid_[i])));
    }
    steps_.next();
    for (std::size_t step = 0; step < iterations_; ++step) {
      for (const std::size_t i : rounds_) make(i, fields_[step % 2], fields_[(step + 1) % 2]);
      if (step + 1 < iterations_) steps_.next();
    }
    for (const GridTile& tile : grid_.tiles()) {
      tile.stream->stream.download(grid_.cells(result(), tile));
    }
  }

  void save() const override {
    if (!output_.empty()) write_matrix(output_, grid_.load(result()));
  }
  std::vector<Figure> figures() const override {
    const Matrix<T> found = grid_.load(result());
    return {{"hottest cell, K",
             static_cast<double>(*std::max_element(found.data(), found.data() + found.size()))}};
  }

  /// Against the same steps one after the other, in double.
  std::vector<Verification> verify(const ReferenceBlas&) const override {
    const Matrix<double> expected = reference();
    double error = 0;
    for (std::size_t y = 0; y < grid_.height(); ++y) {
      for (std::size_t x = 0; x < grid_.width(); ++x) {
        const double wrong = std::abs(result()(x, y) - expected(x, y));
        error = worse(error, relative(wrong, std::abs(expected(x, y))));
      }
    }
    constexpr double kLimit = 10;
    const auto rounding = static_cast<double>(std::numeric_limits<T>::epsilon());
    return {{"max |T - reference| / (iterations eps |reference|)",
             error / (rounding * static_cast<double>(iterations_)), kLimit}};
  }

 private:
  double updates() const {
    return static_cast<double>(given_.size()) * static_cast<double>(iterations_);
  }
  const GridField<T>& result() const { return fields_[iterations_ % 2]; }

  void make(std::size_t index, const GridField<T>& now, const GridField<T>& next) {
    const GridTile& tile = grid_[index];
    const weir::Region target = grid_.cells(next, tile);
    steps_.await(index, target, now);
    steps_.made(index,
                tile.stream->run(kernel_,
                                 {weir::write(target), weir::read(grid_.around(now, tile)),
                                  weir::read(grid_.cells(power_, tile))},
                                 {tile.width, tile.height, grid_.row(), tile.edges,
                                  as_t(chip_.rate()), as_t(chip_.to_sides()), as_t(chip_.to_ends()),
                                  as_t(chip_.to_air()), as_t(Chip::ambient)}));
  }

  static T as_t(double value) { return static_cast<T>(value); }

  /// A column for each row of cells.
  Matrix<double> reference() const {
    const std::size_t width = grid_.width(), height = grid_.height();
    Matrix<double> now(width, height), next(width, height);
    for_each_tiled({width, height},
                   [&](std::size_t x, std::size_t y) { now(x, y) = given_(y, x); });
    for (std::size_t step = 0; step < iterations_; ++step) {
      for (std::size_t y = 0; y < height; ++y) {
        for (std::size_t x = 0; x < width; ++x) {
          const double t = now(x, y);
          const double north = y > 0 ? now(x, y - 1) - t : 0;
          const double south = y + 1 < height ? now(x, y + 1) - t : 0;
          const double west = x > 0 ? now(x - 1, y) - t : 0;
          const double east = x + 1 < width ? now(x + 1, y) - t : 0;
          const double heat = power_(x, y) + (north + south) * chip_.to_ends() +
                              (west + east) * chip_.to_sides() +
                              (Chip::ambient - t) * chip_.to_air();
          next(x, y) = t + chip_.rate() * heat;
        }
      }
      std::swap(now, next);
    }
    return now;
  }

  bool computed_;
  Matrix<T> given_;
  Chip chip_;
  std::size_t iterations_;
  std::string output_;
  std::size_t edge_;
  TileGrid grid_;
  TileSteps steps_;
  std::vector<std::size_t> rounds_;
  weir::Kernel kernel_;
  std::array<GridField<T>, 2> fields_;  ///< which take turns
  GridField<T> power_;
};

/// Random numbers between two others.
template <class T>
Matrix<T> generate(std::size_t n, const Parameters& parameters, std::uint64_t seed, double least,
                   double most) {
  constexpr std::size_t kMatrices = 6;
  Matrix<T> matrix = make_matrix<T>(n, n, kMatrices);
  if (!parameters.computed) return matrix;
  fill_random(matrix, seed);
  for (std::size_t i = 0; i < matrix.size(); ++i) {
    matrix.data()[i] = static_cast<T>(least + (matrix.data()[i] + 0.5) * (most - least));
  }
  return matrix;
}

template <class T>
std::unique_ptr<Workload> prepare_in(const Parameters& parameters, const std::string& power_file,
                                     const weir::Runtime& runtime, const AppStreams& app_streams) {
  constexpr double kColdest = 323, kHottest = 343, kMostPower = 0.01;
  if (!parameters.output.empty()) check_output_format(parameters.output);
  Matrix<T> temperature =
      parameters.input.empty()
          ? generate<T>(parameters.n, parameters, parameters.seed, kColdest, kHottest)
          : read_table<T>(parameters.input);
  const std::size_t rows = temperature.rows(), columns = temperature.columns();
  Matrix<T> power;
  if (!power_file.empty()) {
    power = read_table<T>(power_file);
  } else if (parameters.input.empty()) {
    power = generate<T>(rows, parameters, parameters.seed + 1, 0, kMostPower);
  } else {
    power = Matrix<T>(rows, columns);
  }
  if (power.rows() != rows || power.columns() != columns) {
    fail_input("{}: found {} x {} cells, expected {} x {} as those of the temperature", power_file,
               power.rows(), power.columns(), rows, columns);
  }
  if (!Chip(columns, rows).stable()) {
    fail_input("{} x {} cells are too small for the steps of time: choose fewer", rows, columns);
  }
  const std::size_t most = std::max(rows, columns);
  const std::size_t edge = choose_tile(most, parameters.tile, parameters.tiles, 0);
  return std::make_unique<Hotspot<T>>(std::move(temperature), power, edge, parameters, runtime,
                                      app_streams);
}

class HotspotApplication final : public Application {
 public:
  const char* name() const override { return "hotspot"; }
  const char* example() const override {
    return "weir run hotspot --size small --transform off --verify";
  }
  const char* summary() const override {
    return "heat a chip of --n x --n cells, --tile x --tile in an action";
  }
  bool iterates() const override { return true; }
  bool has_shapes() const override { return true; }
  std::span<const Preset> presets() const override { return kPresets; }
  const char* input_help() const override {
    return "Temperatures of the cells in K: .npy, Matrix Market or CSV";
  }
  void add_options(CommandOptions& options) override {
    options.add("--power", power_, "Power of the cells in W [random; none with --input]");
  }
  void register_kernels(const Parameters& parameters, const weir::Runtime& runtime) const override {
    if (parameters.single) {
      make_kernel<float>(runtime, WEIR_KERNEL_SHAPE_SERIAL, false);
    } else {
      make_kernel<double>(runtime, WEIR_KERNEL_SHAPE_SERIAL, false);
    }
  }
  std::unique_ptr<Workload> prepare(const Parameters& parameters, const weir::Runtime& runtime,
                                    const AppStreams& app_streams) override {
    const Parameters filled = with_usual(parameters, kPresets[1]);
    return filled.single ? prepare_in<float>(filled, power_, runtime, app_streams)
                         : prepare_in<double>(filled, power_, runtime, app_streams);
  }

 private:
  std::string power_;
};

}  // namespace

std::unique_ptr<Application> make_hotspot() { return std::make_unique<HotspotApplication>(); }

}  // namespace weir::apps
