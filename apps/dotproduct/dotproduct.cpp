#include "dotproduct/dotproduct.hpp"

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <dot.wk.h>
#include "common/command_options.hpp"
#include "common/counted.hpp"
#include "common/csv.hpp"
#include "common/dense.hpp"
#include "common/real_kernel.hpp"
#include "common/tiled_matrix.hpp"

#define KERNEL_FILE "dotproduct/dot.wk"
#include "common/real_kernels.inc"

namespace weir::apps {

namespace {

constexpr Preset kPresets[] = {
    {"tiny", 100000, 0, 7, 0}, {"small", 4000000, 0, 16, 0}, {"paper", 80000000, 0, 64, 0}};

template <class T>
weir::Kernel make_kernel(const weir::Runtime& runtime, weir_kernel_shape shape) {
  return register_kernel<T>(
      runtime, {"dot.parts", HOST_KERNELS(dot_parts), dot_wk, "dot.wk"}, shape,
      [](const weir_call* call) {
        const double n = weir::Call(call).scalar<double>(0);
        return weir_cost{2 * n, 2 * sizeof(T) * n};
      },
      [](const weir::Call& call) {
        return weir::Groups{static_cast<std::uint32_t>(elements<T>(call, 2))};
      });
}

template <class T>
class DotProduct final : public Workload {
 public:
  DotProduct(Matrix<T> x, Matrix<T> y, std::size_t tile, std::string output,
             const weir::Runtime& runtime, const AppStreams& app_streams)
      : x_(std::move(x)),
        y_(std::move(y)),
        parts_(groups(tile), (x_.rows() + tile - 1) / tile),
        tile_(tile),
        output_(std::move(output)),
        streams_(app_streams.spread(parts_.columns())),
        kernel_(make_kernel<T>(runtime, app_streams.shape_for(parts_.columns()))),
        x_tiles_(runtime, x_, tile, 1, app_streams.size(), "x"),
        y_tiles_(runtime, y_, tile, 1, app_streams.size(), "y"),
        part_tiles_(runtime, parts_, parts_.rows(), 1, app_streams.size(), "parts") {}

  std::size_t n() const override { return x_.rows(); }
  std::size_t tile() const override { return tile_; }
  std::size_t tiles() const override { return parts_.columns(); }
  double operations() const override { return 2 * static_cast<double>(n()); }
  double traffic() const override { return 2 * sizeof(T) * static_cast<double>(n()); }

  void reset() override {
    x_tiles_.reset();
    y_tiles_.reset();
    part_tiles_.reset();
  }

  void enqueue() override {
    for (std::size_t i = 0; i < tiles(); ++i) {
      const AppStream& app_stream = *streams_[i];
      const weir::Operand x = x_tiles_.read(app_stream, i, 0), y = y_tiles_.read(app_stream, i, 0);
      const std::size_t count = std::min(tile_, n() - i * tile_);
      part_tiles_.wrote(app_stream, 0, i,
                        app_stream.run(kernel_, {x, y, part_tiles_.write(0, i)}, {count}));
      part_tiles_.collect(0, i);
    }
  }

  void finish() override {
    product_ = 0;
    for (std::size_t i = 0; i < parts_.size(); ++i) product_ += parts_.data()[i];
  }
  std::vector<Figure> figures() const override { return {{"x . y", product_}}; }
  void save() const override {
    if (output_.empty()) return;
    Matrix<T> result(1, 1);
    result(0, 0) = static_cast<T>(product_);
    write_matrix(output_, result);
  }

  /// Against a sum in extended precision.
  std::vector<Verification> verify(const ReferenceBlas&) const override {
    long double exact = 0, size = 0;
    for (std::size_t i = 0; i < n(); ++i) {
      const long double term = static_cast<long double>(x_(i, 0)) * y_(i, 0);
      exact += term;
      size += std::abs(term);
    }
    const long double error = std::abs(static_cast<long double>(product_) - exact);
    const auto rounding = static_cast<long double>(std::numeric_limits<T>::epsilon());
    constexpr double kLimit = 100;
    return {{"|x . y - reference| / (eps |x| . |y|)",
             static_cast<double>(size > 0 ? error / (rounding * size) : error), kLimit}};
  }

 private:
  static std::size_t groups(std::size_t tile) {
    return weir::group_count(tile, static_cast<std::size_t>(CHUNK));
  }

  Matrix<T> x_, y_, parts_;  ///< a column of parts for each tile
  std::size_t tile_;
  std::string output_;
  std::vector<const AppStream*> streams_;
  weir::Kernel kernel_;
  TiledMatrix<T> x_tiles_, y_tiles_, part_tiles_;
  double product_ = 0;
};

template <class T>
Matrix<T> generate(std::size_t n, const Parameters& parameters, std::uint64_t seed) {
  Matrix<T> vector = make_matrix<T>(n, 1, 2);
  if (!parameters.computed) return vector;
  fill_random(vector, seed);
  return vector;
}

template <class T>
std::unique_ptr<Workload> prepare_in(const Parameters& parameters, const std::string& second,
                                     const weir::Runtime& runtime, const AppStreams& app_streams) {
  if (!parameters.output.empty()) check_output_format(parameters.output);
  Matrix<T> x = parameters.input.empty() ? generate<T>(parameters.n, parameters, parameters.seed)
                                         : read_vector<T>(parameters.input);
  Matrix<T> y = second.empty() ? generate<T>(x.rows(), parameters, parameters.seed + 1)
                               : read_vector<T>(second);
  if (x.rows() != y.rows()) {
    fail_input("{}: found {}, expected {} as in the first vector", second,
               counted(y.rows(), "element"), x.rows());
  }
  const std::size_t tile = choose_tile(x.rows(), parameters.tile, parameters.tiles, 0);
  return std::make_unique<DotProduct<T>>(std::move(x), std::move(y), tile, parameters.output,
                                         runtime, app_streams);
}

class DotProductApplication final : public Application {
 public:
  const char* name() const override { return "dotproduct"; }
  const char* example() const override {
    return "weir run dotproduct --size paper --domains sim:gbps=6";
  }
  const char* summary() const override { return "multiply two vectors of --n elements"; }
  std::span<const Preset> presets() const override { return kPresets; }
  const char* input_help() const override { return "The first vector: .npy, Matrix Market, CSV"; }
  void add_options(CommandOptions& options) override {
    options.add("--second", second_, "The second vector [random]");
  }
  void register_kernels(const Parameters& parameters, const weir::Runtime& runtime) const override {
    if (parameters.single) {
      make_kernel<float>(runtime, WEIR_KERNEL_SHAPE_SERIAL);
    } else {
      make_kernel<double>(runtime, WEIR_KERNEL_SHAPE_SERIAL);
    }
  }
  std::unique_ptr<Workload> prepare(const Parameters& parameters, const weir::Runtime& runtime,
                                    const AppStreams& app_streams) override {
    const Parameters filled = with_usual(parameters, kPresets[1]);
    return filled.single ? prepare_in<float>(filled, second_, runtime, app_streams)
                         : prepare_in<double>(filled, second_, runtime, app_streams);
  }

 private:
  std::string second_;
};

}  // namespace

std::unique_ptr<Application> make_dotproduct() { return std::make_unique<DotProductApplication>(); }

}  // namespace weir::apps
