#include "srad/srad.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <diffuse.wk.h>
#include "common/command_options.hpp"
#include "common/csv.hpp"
#include "common/dense.hpp"
#include "common/image.hpp"
#include "common/past_cache.hpp"
#include "common/real_kernel.hpp"
#include "common/tile_grid.hpp"
#include "common/tiled_matrix.hpp"

#define KERNEL_FILE "srad/diffuse.wk"
#include "common/real_kernels.inc"

namespace weir::apps {

namespace {

constexpr Preset kPresets[] = {
    {"tiny", 100, 32, 0, 12}, {"small", 2000, 250, 0, 20}, {"paper", 10000, 500, 0, 100}};
constexpr double kCoefficientOperations = 24, kUpdateOperations = 12;
constexpr std::size_t kFields = 3;  ///< that a step goes through
constexpr std::size_t kSample = SAMPLE;

template <class T>
struct SradKernels {
  SradKernels(const weir::Runtime& runtime, weir_kernel_shape shape, bool past_cache)
      : coefficients(
            make(runtime, shape,
                 {"srad.coefficients", HOST_KERNELS(srad_coefficients), diffuse_wk, "diffuse.wk"},
                 cost<24, 2>, grid(), rows(past_cache))),
        update(make(runtime, shape,
                    {"srad.update", HOST_KERNELS(srad_update), diffuse_wk, "diffuse.wk"},
                    cost<12, 3>, grid(), rows(past_cache))),
        sums(make(runtime, shape, {"srad.sums", HOST_KERNELS(srad_sums), diffuse_wk, "diffuse.wk"},
                  cost<3, 1>,
                  [](const weir::Call&) {
                    return weir::Groups{1, SAMPLE};
                  })),
        speckle(make(runtime, WEIR_KERNEL_SHAPE_SERIAL,
                     {"srad.speckle", HOST_KERNELS(srad_speckle), diffuse_wk, "diffuse.wk"},
                     sample_cost, [](const weir::Call&) { return weir::Groups{}; })) {}

  weir::Kernel coefficients;  ///< c write; picture around, speckle read
  weir::Kernel update;        ///< next picture write; picture around, c around read
  weir::Kernel sums;          ///< picture read; sums of the sample write
  weir::Kernel speckle;       ///< sums read; speckle write

 private:
  static auto grid() {
    return [](const weir::Call& call) {
      return weir::Groups{weir::group_count(call.scalar<std::size_t>(0), WIDTH),
                          call.scalar<std::uint32_t>(1)};
    };
  }
  template <class Grid>
  static weir::Kernel make(const weir::Runtime& runtime, weir_kernel_shape shape,
                           const RealKernel& kernel, weir_cost_function cost, Grid grid,
                           weir_host_function native = nullptr) {
    return register_kernel<T>(runtime, kernel, shape, cost, grid, native);
  }
  static weir_host_function rows(bool past_cache) {
    return past_cache ? make_rows_past_cache<T> : nullptr;
  }
  /// Operations and numbers moved for each cell.
  template <int operations, int numbers>
  static weir_cost cost(const weir_call* arguments) {
    const weir::Call call(arguments);
    const double cells = call.scalar<double>(0) * call.scalar<double>(1);
    return {operations * cells, numbers * sizeof(T) * cells};
  }
  /// Two sums for each row of the sample in each part, and those of all rows.
  static weir_cost sample_cost(const weir_call* call) {
    const double sums = 2 * static_cast<double>(kSample) * weir::Call(call).scalar<double>(0);
    return {sums + 2 * static_cast<double>(kSample), sizeof(T) * sums};
  }
};

/// The formulas as Rodinia has them, in double and one cell after the other.
class Reference {
 public:
  Reference(Matrix<double> picture, double lambda) : j_(std::move(picture)), lambda_(lambda) {}

  void step() {
    const std::size_t width = j_.rows(), height = j_.columns();
    const double q0 = speckle();
    Matrix<double> c(width, height), next(width, height);
    for (std::size_t y = 0; y < height; ++y) {
      for (std::size_t x = 0; x < width; ++x) c(x, y) = coefficient(x, y, q0);
    }
    for (std::size_t y = 0; y < height; ++y) {
      for (std::size_t x = 0; x < width; ++x) {
        const Differences d = differences(x, y);
        const double south = c(x, y + 1 < height ? y + 1 : y),
                     east = c(x + 1 < width ? x + 1 : x, y);
        const double divergence = c(x, y) * (d.north + d.west) + south * d.south + east * d.east;
        next(x, y) = j_(x, y) + 0.25 * lambda_ * divergence;
      }
    }
    j_ = std::move(next);
  }
  const Matrix<double>& picture() const { return j_; }

 private:
  struct Differences {
    double north, south, west, east;
  };

  Differences differences(std::size_t x, std::size_t y) const {
    const double j = j_(x, y);
    return {j_(x, y > 0 ? y - 1 : 0) - j, j_(x, y + 1 < j_.columns() ? y + 1 : y) - j,
            j_(x > 0 ? x - 1 : 0, y) - j, j_(x + 1 < j_.rows() ? x + 1 : x, y) - j};
  }
  double speckle() const {
    const std::size_t width = std::min(kSample, j_.rows()),
                      height = std::min(kSample, j_.columns());
    double sum = 0, squares = 0;
    for (std::size_t y = 0; y < height; ++y) {
      for (std::size_t x = 0; x < width; ++x) {
        sum += j_(x, y);
        squares += j_(x, y) * j_(x, y);
      }
    }
    const double cells = static_cast<double>(width * height), mean = sum / cells;
    return std::max(squares / cells - mean * mean, 1e-20) / (mean * mean);
  }
  double coefficient(std::size_t x, std::size_t y, double q0) const {
    const Differences d = differences(x, y);
    const double j = j_(x, y);
    const double gradient =
        (d.north * d.north + d.south * d.south + d.west * d.west + d.east * d.east) / (j * j);
    const double laplacian = (d.north + d.south + d.west + d.east) / j;
    const double shrink = 1 + laplacian / 4;
    const double q = (gradient / 2 - laplacian * laplacian / 16) / (shrink * shrink);
    return std::clamp(1 / (1 + (q - q0) / (q0 * (1 + q0))), 0.0, 1.0);
  }

  Matrix<double> j_;  ///< a column for each row of the picture
  double lambda_;
};

template <class T>
class Srad final : public Workload {
 public:
  /// The picture has a row for each row of pixels, from 0 to 1.
  Srad(const Matrix<T>& picture, std::size_t edge, double lambda, const Parameters& parameters,
       const weir::Runtime& runtime, const AppStreams& app_streams)
      : computed_(parameters.computed),
        given_(computed_ ? exponential(picture) : Matrix<T>(picture.rows(), picture.columns())),
        lambda_(lambda),
        iterations_(parameters.iterations),
        output_(parameters.output),
        edge_(edge),
        grid_(app_streams, given_.columns(), given_.rows(),
              TileShape::of(edge, parameters.aspect, given_.columns())),
        steps_(grid_, app_streams, parameters.transform),
        turns_(steps_.turns([&](std::size_t i) { return has_sample(grid_[i]); })),
        kernels_(runtime, app_streams.shape_for(grid_.size()),
                 kFields * sizeof(T) * given_.size() > kCacheBytes),
        fields_{grid_.field<T>(runtime, "picture"), grid_.field<T>(runtime, "picture")},
        coefficients_(grid_.field<T>(runtime, "coefficients")),
        samples_(find_samples()),
        sums_(2 * kSample * samples_.size(), 1),
        speckle_(iterations_, 1),
        sum_tiles_(runtime, sums_, 2 * kSample, 1, app_streams.size(), "sums"),
        speckle_tiles_(runtime, speckle_, 1, 1, app_streams.size(), "speckle") {}

  std::size_t n() const override { return grid_.height(); }
  std::size_t tile() const override { return edge_; }
  std::size_t tiles() const override {
    return (std::max(grid_.width(), grid_.height()) + edge_ - 1) / edge_;
  }
  std::size_t iterations() const override { return iterations_; }
  double operations() const override {
    return (kCoefficientOperations + kUpdateOperations) * updates();
  }
  double traffic() const override { return 5 * sizeof(T) * updates(); }

  void reset() override {
    if (computed_) grid_.store(given_, fields_[0]);
    sum_tiles_.reset();
    speckle_tiles_.reset();
  }

  void enqueue() override {
    for (std::size_t i = 0; i < grid_.size(); ++i) {
      steps_.made(i, grid_[i].stream->stream.upload(grid_.cells(fields_[0], grid_[i])));
    }
    steps_.next();
    for (const std::size_t i : samples_) add_sample(i, fields_[0]);
    for (std::size_t step = 0; step < iterations_; ++step) {
      const GridField<T>&now = fields_[step % 2], &next = fields_[(step + 1) % 2];
      measure_speckle(step);
      for (const std::size_t i : turns_) find_coefficients(i, now, step);
      steps_.next();
      for (const std::size_t i : turns_) {
        update(i, now, next);
        if (has_sample(grid_[i]) && step + 1 < iterations_) add_sample(i, next);
      }
      if (step + 1 < iterations_) steps_.next();
    }
    for (const GridTile& tile : grid_.tiles()) {
      tile.stream->stream.download(grid_.cells(result(), tile));
    }
  }

  void save() const override {
    if (output_.empty()) return;
    Matrix<T> picture = grid_.load(result());
    std::transform(picture.data(), picture.data() + picture.size(), picture.data(),
                   [](T value) { return std::log(value); });
    if (!is_image(output_)) return write_matrix(output_, picture);
    constexpr double kWhite = 255;
    Image image{picture.columns(), picture.rows(), std::vector<std::uint8_t>(picture.size())};
    for_each_tiled({picture.rows(), picture.columns()}, [&](std::size_t y, std::size_t x) {
      const double shade = kWhite * std::clamp(static_cast<double>(picture(y, x)), 0.0, 1.0);
      image(x, y) = static_cast<std::uint8_t>(std::lround(shade));
    });
    write_image(output_, image);
  }

  /// Against the same steps one after the other, in double.
  std::vector<Verification> verify(const ReferenceBlas&) const override {
    Matrix<double> picture(grid_.width(), grid_.height());
    for_each_tiled({grid_.width(), grid_.height()},
                   [&](std::size_t x, std::size_t y) { picture(x, y) = given_(y, x); });
    Reference reference(std::move(picture), lambda_);
    for (std::size_t step = 0; step < iterations_; ++step) reference.step();
    double error = 0;
    for (std::size_t y = 0; y < grid_.height(); ++y) {
      for (std::size_t x = 0; x < grid_.width(); ++x) {
        const double expected = reference.picture()(x, y);
        const double wrong = std::abs(result()(x, y) - expected) / expected;
        error = worse(error, wrong);
      }
    }
    constexpr double kLimit = 1000;
    const auto rounding = static_cast<double>(std::numeric_limits<T>::epsilon());
    return {{"max |J - reference| / (iterations eps |reference|)",
             error / (rounding * static_cast<double>(iterations_)), kLimit}};
  }

 private:
  static Matrix<T> exponential(const Matrix<T>& picture) {
    Matrix<T> made(picture.rows(), picture.columns());
    std::transform(picture.data(), picture.data() + picture.size(), made.data(),
                   [](T value) { return std::exp(value); });
    return made;
  }
  double updates() const {
    return static_cast<double>(given_.size()) * static_cast<double>(iterations_);
  }
  const GridField<T>& result() const { return fields_[iterations_ % 2]; }

  static bool has_sample(const GridTile& tile) { return tile.x < kSample && tile.y < kSample; }
  /// The tiles that have some of the sample.
  std::vector<std::size_t> find_samples() const {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < grid_.size(); ++i) {
      if (has_sample(grid_[i])) found.push_back(i);
    }
    return found;
  }
  std::size_t sample_width() const { return std::min(kSample, grid_.width()); }
  std::size_t sample_height() const { return std::min(kSample, grid_.height()); }

  /// Adds up the part of the sample that a tile has.
  void add_sample(std::size_t index, const GridField<T>& picture) {
    const GridTile& tile = grid_[index];
    const auto part = static_cast<std::size_t>(std::find(samples_.begin(), samples_.end(), index) -
                                               samples_.begin());
    const std::size_t width = std::min(tile.x + tile.width, sample_width()) - tile.x;
    const std::size_t height = std::min(tile.y + tile.height, sample_height()) - tile.y;
    const weir::Event added = tile.stream->run(
        kernels_.sums, {weir::read(grid_.cells(picture, tile)), sum_tiles_.write(part, 0)},
        {width, height, grid_.row()});
    sum_tiles_.wrote(*tile.stream, part, 0, added);
  }

  /// Compares the sums of all parts, once for each step: nothing waits for the readers of the last.
  void measure_speckle(std::size_t step) {
    const AppStream& app_stream = *grid_[0].stream;
    const weir::Operand sums = sum_tiles_.read(app_stream, {0, samples_.size()}, 0);
    const auto cells = static_cast<T>(sample_width() * sample_height());
    speckle_tiles_.wrote(app_stream, step, 0,
                         app_stream.run(kernels_.speckle, {sums, speckle_tiles_.write(step, 0)},
                                        {samples_.size(), cells}));
  }

  void find_coefficients(std::size_t index, const GridField<T>& now, std::size_t step) {
    const GridTile& tile = grid_[index];
    const weir::Region target = grid_.cells(coefficients_, tile);
    steps_.await(index, target, now);
    const weir::Operand speckle = speckle_tiles_.read(*tile.stream, step, 0);
    steps_.made(
        index, tile.stream->run(kernels_.coefficients,
                                {weir::write(target), weir::read(grid_.around(now, tile)), speckle},
                                {tile.width, tile.height, grid_.row(), tile.edges}));
  }

  void update(std::size_t index, const GridField<T>& now, const GridField<T>& next) {
    const GridTile& tile = grid_[index];
    const weir::Region target = grid_.cells(next, tile);
    steps_.await(index, target, coefficients_);
    steps_.made(index, tile.stream->run(kernels_.update,
                                        {weir::write(target), weir::read(grid_.around(now, tile)),
                                         weir::read(grid_.around(coefficients_, tile))},
                                        {tile.width, tile.height, grid_.row(), tile.edges,
                                         static_cast<T>(lambda_ / 4)}));
  }

  bool computed_;
  Matrix<T> given_;
  double lambda_;
  std::size_t iterations_;
  std::string output_;
  std::size_t edge_;
  TileGrid grid_;
  TileSteps steps_;
  std::vector<std::size_t> turns_;
  SradKernels<T> kernels_;
  std::array<GridField<T>, 2> fields_;  ///< which take turns
  GridField<T> coefficients_;
  std::vector<std::size_t> samples_;  ///< tiles
  Matrix<T> sums_, speckle_;
  TiledMatrix<T> sum_tiles_, speckle_tiles_;
};

template <class T>
Matrix<T> read_picture(const std::string& path) {
  constexpr T kWhite = 255;
  if (holds_image(path)) {
    const Image image = read_image(path);
    Matrix<T> picture(image.height, image.width);
    for_each_tiled({image.height, image.width},
                   [&](std::size_t y, std::size_t x) { picture(y, x) = image(x, y) / kWhite; });
    return picture;
  }
  Matrix<T> picture = read_table<T>(path);
  for (std::size_t j = 0; j < picture.columns(); ++j) {
    for (std::size_t i = 0; i < picture.rows(); ++i) {
      if (picture(i, j) >= 0 && picture(i, j) <= 1) continue;
      fail_input("{}: row {}, column {}: found {}, expected shades from 0 to 1", path, i + 1, j + 1,
                 picture(i, j));
    }
  }
  return picture;
}

template <class T>
Matrix<T> generate(std::size_t n, const Parameters& parameters) {
  constexpr std::size_t kMatrices = 5;
  Matrix<T> picture = make_matrix<T>(n, n, kMatrices);
  if (!parameters.computed) return picture;
  fill_random(picture, parameters.seed);
  std::transform(picture.data(), picture.data() + picture.size(), picture.data(),
                 [](T value) { return value + T{1} / 2; });
  return picture;
}

template <class T>
std::unique_ptr<Workload> prepare_in(const Parameters& parameters, double lambda,
                                     const weir::Runtime& runtime, const AppStreams& app_streams) {
  if (is_image(parameters.output)) {
    check_image_format(parameters.output);
  } else if (!parameters.output.empty()) {
    check_output_format(parameters.output);
  }
  const Matrix<T> picture = parameters.input.empty() ? generate<T>(parameters.n, parameters)
                                                     : read_picture<T>(parameters.input);
  const std::size_t most = std::max(picture.rows(), picture.columns());
  const std::size_t edge = choose_tile(most, parameters.tile, parameters.tiles, 0);
  return std::make_unique<Srad<T>>(picture, edge, lambda, parameters, runtime, app_streams);
}

class SradApplication final : public Application {
 public:
  const char* name() const override { return "srad"; }
  const char* example() const override {
    return "weir run srad --input ultrasound.png --output clean.png";
  }
  const char* summary() const override {
    return "remove speckle from a picture of --n x --n pixels, --tile x --tile per action";
  }
  bool iterates() const override { return true; }
  bool has_shapes() const override { return true; }
  std::span<const Preset> presets() const override { return kPresets; }
  const char* input_help() const override {
    return "Picture: PNG, JPEG or PGM; or shades from 0 to 1: .npy, Matrix Market or CSV";
  }
  const char* output_help() const override {
    return "File for the picture: .png or .pgm; for its shades: .mtx or .npy";
  }
  void add_options(CommandOptions& options) override {
    options.add("--lambda", lambda_, "Step of time, up to 1 [0.5]").within(0.0, 1.0);
  }
  void register_kernels(const Parameters& parameters, const weir::Runtime& runtime) const override {
    if (parameters.single) {
      SradKernels<float>(runtime, WEIR_KERNEL_SHAPE_SERIAL, false);
    } else {
      SradKernels<double>(runtime, WEIR_KERNEL_SHAPE_SERIAL, false);
    }
  }
  std::unique_ptr<Workload> prepare(const Parameters& parameters, const weir::Runtime& runtime,
                                    const AppStreams& app_streams) override {
    const Parameters filled = with_usual(parameters, kPresets[1]);
    return filled.single ? prepare_in<float>(filled, lambda_, runtime, app_streams)
                         : prepare_in<double>(filled, lambda_, runtime, app_streams);
  }

 private:
  double lambda_ = 0.5;
};

}  // namespace

std::unique_ptr<Application> make_srad() { return std::make_unique<SradApplication>(); }

}  // namespace weir::apps
