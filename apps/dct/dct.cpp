#include "dct/dct.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <cosine.wk.h>
#include "common/command_options.hpp"
#include "common/csv.hpp"
#include "common/dense.hpp"
#include "common/image.hpp"
#include "common/parsing.hpp"
#include "common/real_kernel.hpp"
#include "common/tiled_matrix.hpp"

#define KERNEL_FILE "dct/cosine.wk"
#include "common/real_kernels.inc"

namespace weir::apps {

namespace {

constexpr std::size_t kBlock = 8;
constexpr double kWhite = 255, kMiddle = 128;
constexpr int kUsualQuality = 50;
constexpr double kOperations = 10;  ///< for a pixel, of one transform
constexpr Preset kPresets[] = {
    {"tiny", 100, 0, 5, 0}, {"small", 2048, 0, 16, 0}, {"paper", 8192, 0, 16, 0}};

/// What JPEG's annex K has for brightness: the steps of the coefficients at quality 50.
constexpr std::array<int, kBlock* kBlock> kBrightness = {
    16, 11, 10, 16, 24,  40,  51,  61,  12, 12, 14, 19, 26,  58,  60,  55,
    14, 13, 16, 24, 40,  57,  69,  56,  14, 17, 22, 29, 51,  87,  80,  62,
    18, 22, 37, 56, 68,  109, 103, 77,  24, 35, 55, 64, 81,  104, 113, 92,
    49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99};

/// The steps at another quality from 1 to 100, as the Independent JPEG Group scales them.
double step_of(std::size_t coefficient, int quality) {
  const int scale = quality < kUsualQuality ? 5000 / quality : 200 - 2 * quality;
  return std::clamp((kBrightness[coefficient] * scale + 50) / 100, 1, 255);
}

std::size_t padded(std::size_t pixels) { return (pixels + kBlock - 1) / kBlock * kBlock; }

template <class T>
struct DctKernels {
  DctKernels(const weir::Runtime& runtime, weir_kernel_shape shape)
      : forward(register_kernel<T>(
            runtime, {"dct.forward", HOST_KERNELS(dct_forward), cosine_wk, "cosine.wk"}, shape,
            cost<0>, [](const weir::Call& call) { return grid(call, 0); })),
        restore(register_kernel<T>(
            runtime, {"dct.restore", HOST_KERNELS(dct_restore), cosine_wk, "cosine.wk"}, shape,
            cost<2>, [](const weir::Call& call) { return grid(call, 2); })) {}

  weir::Kernel forward;  ///< (width, row): pixels read; coefficients write
  weir::Kernel restore;  ///< (width, row): coefficients, steps read; pixels write

 private:
  template <std::size_t operand>
  static weir_cost cost(const weir_call* call) {
    const auto pixels = static_cast<double>(elements<T>(weir::Call(call), operand));
    return {kOperations * pixels, 2 * sizeof(T) * pixels};
  }
  static weir::Groups grid(const weir::Call& call, std::size_t operand) {
    const auto width = call.scalar<std::size_t>(0);
    return {weir::group_count(width, WIDTH),
            static_cast<std::uint32_t>(elements<T>(call, operand) / width / kBlock)};
  }
};

/// Pictures are matrices with a column for each row of pixels.
template <class T>
class Dct final : public Workload {
 public:
  /// The last pixels of rows and columns go on until blocks are full. With a quality the run also
  /// restores the picture.
  Dct(const Matrix<T>& picture, std::size_t tile, std::optional<int> quality, std::string output,
      const weir::Runtime& runtime, const AppStreams& app_streams)
      : width_(picture.rows()),
        height_(picture.columns()),
        pixels_(padded(width_), padded(height_)),
        coefficients_(pixels_.rows(), pixels_.columns()),
        restored_(quality ? pixels_.rows() : 0, quality ? pixels_.columns() : 0),
        steps_(kBlock * kBlock, 1),
        tile_(tile),
        quality_(quality),
        output_(std::move(output)),
        streams_(app_streams.spread((pixels_.columns() + tile - 1) / tile)),
        kernels_(runtime, app_streams.shape_for(streams_.size())),
        pixel_tiles_(runtime, pixels_, pixels_.rows(), tile, app_streams.size(), "pixels"),
        coefficient_tiles_(runtime, coefficients_, pixels_.rows(), tile, app_streams.size(),
                           "coefficients"),
        step_tiles_(runtime, steps_, steps_.rows(), 1, app_streams.size(), "steps") {
    for (std::size_t y = 0; y < pixels_.columns(); ++y) {
      for (std::size_t x = 0; x < pixels_.rows(); ++x) {
        pixels_(x, y) = picture(std::min(x, width_ - 1), std::min(y, height_ - 1));
      }
    }
    if (!quality) return;
    restored_tiles_.emplace(runtime, restored_, pixels_.rows(), tile, app_streams.size(),
                            "restored");
    for (std::size_t i = 0; i < steps_.rows(); ++i) {
      steps_(i, 0) = static_cast<T>(step_of(i, *quality));
    }
  }

  std::size_t n() const override { return height_; }
  /// Rows of pixels.
  std::size_t tile() const override { return tile_; }
  std::size_t tiles() const override { return streams_.size(); }
  double operations() const override { return kOperations * passes() * pixels(); }
  double traffic() const override { return 2 * sizeof(T) * passes() * pixels(); }

  void reset() override {
    pixel_tiles_.reset();
    coefficient_tiles_.reset();
    step_tiles_.reset();
    if (restored_tiles_) restored_tiles_->reset();
  }

  void enqueue() override {
    const std::size_t row = pixels_.rows();
    for (std::size_t i = 0; i < tiles(); ++i) {
      const AppStream& app_stream = *streams_[i];
      const weir::Operand pixels = pixel_tiles_.read(app_stream, 0, i);
      const weir::Region made = coefficient_tiles_.region(0, i);
      coefficient_tiles_.wrote(
          app_stream, 0, i,
          app_stream.run(kernels_.forward, {pixels, weir::write(made)}, {row, row}));
      coefficient_tiles_.collect(0, i);
      if (!restored_tiles_) continue;
      const weir::Operand steps = step_tiles_.read(app_stream, 0, 0);
      restored_tiles_->wrote(
          app_stream, 0, i,
          app_stream.run(kernels_.restore, {weir::read(made), steps, restored_tiles_->write(0, i)},
                         {row, row}));
      restored_tiles_->collect(0, i);
    }
  }

  std::vector<Figure> figures() const override {
    if (!quality_) return {};
    double squares = 0;
    for (std::size_t y = 0; y < height_; ++y) {
      for (std::size_t x = 0; x < width_; ++x) {
        const double difference = shade(restored_(x, y)) - shade(pixels_(x, y));
        squares += difference * difference;
      }
    }
    const double mean = squares / static_cast<double>(width_ * height_);
    return {{"quality", static_cast<double>(*quality_)},
            {"PSNR, dB", 10 * std::log10(kWhite * kWhite / mean)}};
  }

  void save() const override {
    if (output_.empty()) return;
    if (!is_image(output_)) return write_matrix(output_, transposed());
    Image image{width_, height_, std::vector<std::uint8_t>(width_ * height_)};
    for (std::size_t y = 0; y < height_; ++y) {
      for (std::size_t x = 0; x < width_; ++x) {
        image(x, y) = static_cast<std::uint8_t>(shade(restored_(x, y)));
      }
    }
    write_image(output_, image);
  }

  /// Against the products with the matrix of the transform, block by block in double.
  std::vector<Verification> verify(const ReferenceBlas&) const override {
    double error = 0, most = 0;
    for (std::size_t y = 0; y < pixels_.columns(); y += kBlock) {
      for (std::size_t x = 0; x < pixels_.rows(); x += kBlock) {
        compare(x, y, error, most);
      }
    }
    const auto rounding = static_cast<double>(std::numeric_limits<T>::epsilon());
    constexpr double kLimit = 10;
    std::vector<Verification> checks = {{"max |C - reference| / (eps max |reference|)",
                                         most > 0 ? error / (rounding * most) : error, kLimit}};
    if (quality_) checks.push_back(restored_error());
    return checks;
  }

 private:
  using Block = std::array<double, kBlock * kBlock>;

  double passes() const { return quality_ ? 2 : 1; }
  double pixels() const { return static_cast<double>(pixels_.size()); }
  /// The pixel of a picture from what is computed with.
  static double shade(T value) {
    return std::clamp(std::round(static_cast<double>(value) + kMiddle), 0.0, kWhite);
  }

  static double entry(std::size_t u, std::size_t k) {
    const double scale = std::sqrt((u == 0 ? 1.0 : 2.0) / kBlock);
    return scale * std::cos((2 * static_cast<double>(k) + 1) * static_cast<double>(u) *
                            std::numbers::pi / (2 * kBlock));
  }
  /// matrix B matrix^T, or with `back` matrix^T B matrix.
  static Block transform(const Block& block, bool back) {
    const auto side = [&](std::size_t u, std::size_t k) {
      return back ? entry(k, u) : entry(u, k);
    };
    Block half{}, whole{};
    for (std::size_t u = 0; u < kBlock; ++u) {
      for (std::size_t k = 0; k < kBlock; ++k) {
        const double factor = side(u, k);
        for (std::size_t x = 0; x < kBlock; ++x) {
          half[u * kBlock + x] += factor * block[k * kBlock + x];
        }
      }
    }
    for (std::size_t v = 0; v < kBlock; ++v) {
      for (std::size_t k = 0; k < kBlock; ++k) {
        const double factor = side(v, k);
        for (std::size_t u = 0; u < kBlock; ++u) {
          whole[u * kBlock + v] += factor * half[u * kBlock + k];
        }
      }
    }
    return whole;
  }
  static Block block_of(const Matrix<T>& matrix, std::size_t x, std::size_t y) {
    Block block;
    for (std::size_t i = 0; i < block.size(); ++i) {
      block[i] = matrix(x + i % kBlock, y + i / kBlock);
    }
    return block;
  }
  void compare(std::size_t x, std::size_t y, double& error, double& most) const {
    const Block expected = transform(block_of(pixels_, x, y), false);
    const Block found = block_of(coefficients_, x, y);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const double wrong = std::abs(found[i] - expected[i]);
      error = worse(error, wrong);
      most = std::max(most, std::abs(expected[i]));
    }
  }

  /// Against the way back from the coefficients that were found, rounded to their steps.
  Verification restored_error() const {
    double error = 0, most = kWhite;
    for (std::size_t y = 0; y < pixels_.columns(); y += kBlock) {
      for (std::size_t x = 0; x < pixels_.rows(); x += kBlock) {
        Block block;
        for (std::size_t i = 0; i < block.size(); ++i) {
          const T step = steps_(i, 0);
          const T multiple =
              std::floor(coefficients_(x + i % kBlock, y + i / kBlock) / step + T{1} / 2);
          block[i] = static_cast<double>(step * multiple);
        }
        const Block expected = transform(block, true), found = block_of(restored_, x, y);
        for (std::size_t i = 0; i < expected.size(); ++i) {
          const double wrong = std::abs(found[i] - expected[i]);
          error = worse(error, wrong);
          most = std::max(most, std::abs(expected[i]));
        }
      }
    }
    constexpr double kLimit = 1000;
    const auto rounding = static_cast<double>(std::numeric_limits<T>::epsilon());
    return {"max |restored - reference| / (eps max(255, |reference|))", error / (most * rounding),
            kLimit};
  }

  Matrix<T> transposed() const {
    Matrix<T> matrix(coefficients_.columns(), coefficients_.rows());
    for_each_tiled({matrix.rows(), matrix.columns()},
                   [&](std::size_t y, std::size_t x) { matrix(y, x) = coefficients_(x, y); });
    return matrix;
  }

  std::size_t width_, height_;
  Matrix<T> pixels_, coefficients_, restored_, steps_;
  std::size_t tile_;
  std::optional<int> quality_;
  std::string output_;
  std::vector<const AppStream*> streams_;
  DctKernels<T> kernels_;
  TiledMatrix<T> pixel_tiles_, coefficient_tiles_, step_tiles_;
  std::optional<TiledMatrix<T>> restored_tiles_;
};

/// Pictures are computed with around 0.
template <class T>
Matrix<T> read_picture(const std::string& path) {
  if (holds_image(path)) {
    const Image image = read_image(path);
    Matrix<T> picture(image.width, image.height);
    for_each_tiled({image.width, image.height}, [&](std::size_t x, std::size_t y) {
      picture(x, y) = image(x, y) - static_cast<T>(kMiddle);
    });
    return picture;
  }
  const Matrix<T> table = read_table<T>(path);
  Matrix<T> picture(table.columns(), table.rows());
  for_each_tiled({table.columns(), table.rows()},
                 [&](std::size_t x, std::size_t y) { picture(x, y) = table(y, x); });
  return picture;
}

template <class T>
Matrix<T> generate(std::size_t n, const Parameters& parameters) {
  constexpr std::size_t kPictures = 4;
  Matrix<T> picture = make_matrix<T>(n, n, kPictures);
  if (!parameters.computed) return picture;
  fill_random(picture, parameters.seed);
  for (std::size_t i = 0; i < picture.size(); ++i) {
    picture.data()[i] *= static_cast<T>(kWhite);
  }
  return picture;
}

/// Rows of pixels in a tile, whole blocks.
std::size_t rows_of_tile(std::size_t height, const Parameters& parameters) {
  const std::size_t blocks = padded(height) / kBlock;
  const std::size_t tile = (parameters.tile + kBlock - 1) / kBlock;
  return choose_tile(blocks, tile, parameters.tiles, 0) * kBlock;
}

template <class T>
std::unique_ptr<Workload> prepare_in(const Parameters& parameters, std::optional<int> quality,
                                     const weir::Runtime& runtime, const AppStreams& app_streams) {
  if (is_image(parameters.output)) {
    check_image_format(parameters.output);
    if (!quality) quality = kUsualQuality;
  } else if (!parameters.output.empty()) {
    check_output_format(parameters.output);
  }
  const Matrix<T> picture = parameters.input.empty() ? generate<T>(parameters.n, parameters)
                                                     : read_picture<T>(parameters.input);
  const std::size_t tile = rows_of_tile(picture.columns(), parameters);
  return std::make_unique<Dct<T>>(picture, tile, quality, parameters.output, runtime, app_streams);
}

class DctApplication final : public Application {
 public:
  const char* name() const override { return "dct"; }
  const char* example() const override {
    return "weir run dct --input photo.jpg --quality 40 --output photo.png";
  }
  const char* summary() const override {
    return "transform --n x --n pixels in blocks of 8 x 8, --tile rows of pixels in an action";
  }
  std::span<const Preset> presets() const override { return kPresets; }
  const char* input_help() const override {
    return "Picture: PNG, JPEG or PGM; or numbers around 0: .npy, Matrix Market or CSV";
  }
  const char* output_help() const override {
    return "File for the coefficients: .mtx or .npy; for what JPEG leaves of the picture: .png or "
           ".pgm";
  }
  void add_options(CommandOptions& options) override {
    options
        .add("--quality", quality_,
             "Also restore the picture from coefficients rounded as JPEG does, 1 to 100 [50 "
             "for a picture as --output, else off]")
        .within(1, 100);
  }
  void register_kernels(const Parameters& parameters, const weir::Runtime& runtime) const override {
    if (parameters.single) {
      DctKernels<float>(runtime, WEIR_KERNEL_SHAPE_SERIAL);
    } else {
      DctKernels<double>(runtime, WEIR_KERNEL_SHAPE_SERIAL);
    }
  }
  std::unique_ptr<Workload> prepare(const Parameters& parameters, const weir::Runtime& runtime,
                                    const AppStreams& app_streams) override {
    const Parameters filled = with_usual(parameters, kPresets[1]);
    return filled.single ? prepare_in<float>(filled, quality_, runtime, app_streams)
                         : prepare_in<double>(filled, quality_, runtime, app_streams);
  }

 private:
  std::optional<int> quality_;
};

}  // namespace

std::unique_ptr<Application> make_dct() { return std::make_unique<DctApplication>(); }

}  // namespace weir::apps
