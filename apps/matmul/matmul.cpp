#include "matmul/matmul.hpp"

#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "common/command_options.hpp"
#include "common/dense.hpp"
#include "common/tile_kernels.hpp"
#include "common/tiled_matrix.hpp"

namespace weir::apps {

namespace {

constexpr std::size_t kUsualOrder = 4096;
constexpr Preset kPresets[] = {
    {"tiny", 100, 32, 0, 0}, {"small", 2000, 500, 0, 0}, {"paper", 6000, 500, 0, 0}};

/// Returns the edge of large tiles, of which each core still gets two, or each place three whose
/// cores compute a tile together, and which are many enough to hide transfers behind products.
std::size_t usual_tile(std::size_t n, const AppStreams& app_streams) {
  constexpr std::size_t kUnit = 64, kStreamed = 8, kOfTeams = 6;
  const bool teams = app_streams.teams();
  const auto workers = static_cast<double>(teams ? app_streams.places() : app_streams.cores());
  const auto enough = static_cast<std::size_t>(std::ceil(std::sqrt((teams ? 3 : 2) * workers)));
  const std::size_t fewest = teams ? kOfTeams : app_streams.share_memory() ? 1 : kStreamed;
  const std::size_t parts = std::max(enough, fewest);
  return ((n + parts - 1) / parts + kUnit - 1) / kUnit * kUnit;
}

/// C = A B with one action for each tile of C: a row of A's tiles times a column of B's.
template <class T>
class Matmul final : public Workload {
 public:
  Matmul(Matrix<T> a, Matrix<T> b, std::size_t tile, TileKernels kernels, std::string output,
         const weir::Runtime& runtime, const AppStreams& app_streams, const weir::Queue* queue)
      : a_(std::move(a)),
        b_(std::move(b)),
        c_(make_matrix<T>(a_.rows(), b_.columns(), 3)),
        tile_(tile),
        output_(std::move(output)),
        streams_(app_streams),
        queue_(queue),
        rows_(runtime, a_, tile, a_.columns(), app_streams.size(), "A"),
        columns_(runtime, b_, b_.rows(), tile, app_streams.size(), "B"),
        tiles_(runtime, c_, tile, tile, app_streams.size(), "C"),
        gemm_(runtime.kernel(gemm_name(kernels).c_str())),
        owners_(app_streams.deal(tiles_.rows() * tiles_.columns())) {}

  std::size_t n() const override { return c_.rows(); }
  std::size_t tile() const override { return tile_; }
  std::size_t tiles() const override { return tiles_.rows(); }
  double operations() const override {
    return 2.0 * static_cast<double>(c_.rows()) * static_cast<double>(c_.columns()) *
           static_cast<double>(a_.columns());
  }
  double gemm_peak(const ReferenceBlas& blas) const override { return blas.gemm_peak<T>(n()); }

  void reset() override {
    if (queue_ != nullptr) {
      for (const auto* matrix : {&rows_, &columns_, &tiles_}) matrix->reset(*queue_);
    }
    rows_.reset();
    columns_.reset();
    tiles_.reset();
  }

  void enqueue() override {
    if (queue_ != nullptr) return submit();
    std::size_t part = 0;
    for (std::size_t j = 0; j < tiles_.columns(); ++j) {
      for (std::size_t i = 0; i < tiles_.rows(); ++i, ++part) {
        const AppStream& app_stream = streams_.any(owners_[part], part);
        const weir::Operand row = rows_.read(app_stream, i, 0),
                            column = columns_.read(app_stream, 0, j);
        tiles_.wrote(app_stream, i, j,
                     app_stream.stream.compute(gemm_, {row, column, tiles_.write(i, j)},
                                               {'N', 'N', T{1}, T{0}},
                                               fmt::format("gemm {},{}", i, j).c_str()));
        tiles_.collect(i, j);
      }
    }
  }

  void save() const override {
    if (!output_.empty()) write_matrix(output_, c_);
  }

  /// Against one product of the whole matrices. Both have rounding errors below half of the limit.
  std::vector<Verification> verify(const ReferenceBlas& blas) const override {
    Matrix<T> error(c_.rows(), c_.columns());
    copy(c_, error);
    blas.multiply<T>(c_.rows(), c_.columns(), a_.columns(), T{-1}, {a_.data(), a_.rows()},
                     {b_.data(), b_.rows()}, T{1}, error.data(), error.rows());
    const long double scale = norm(a_) * norm(b_) * std::numeric_limits<T>::epsilon() *
                              static_cast<long double>(a_.columns());
    return {{"|C - A B| / (n eps |A| |B|)", relative(norm(error), scale), 1}};
  }

 private:
  std::string gemm_name(TileKernels kernels) const {
    const std::string name = std::is_same_v<T, float> ? "blas.sgemm" : "blas.dgemm";
    return name + tile_kernel_ending(kernels, tiles_.rows() * tiles_.columns(), streams_);
  }

  /// To and fro, so that the last panel of one column is the first of the next.
  void submit() {
    for (std::size_t j = 0; j < tiles_.columns(); ++j) {
      for (std::size_t step = 0; step < tiles_.rows(); ++step) {
        const std::size_t i = j % 2 == 0 ? step : tiles_.rows() - 1 - step;
        queue_->submit(gemm_,
                       {weir::read(rows_.region(i, 0)), weir::read(columns_.region(0, j)),
                        weir::write(tiles_.region(i, j))},
                       {'N', 'N', T{1}, T{0}}, {.name = fmt::format("gemm {},{}", i, j).c_str()});
      }
    }
  }

  Matrix<T> a_, b_, c_;
  std::size_t tile_;
  std::string output_;
  const AppStreams& streams_;
  const weir::Queue* queue_;  ///< null: streams
  TiledMatrix<T> rows_, columns_, tiles_;
  weir::Kernel gemm_;
  std::vector<std::size_t> owners_;
};

template <class T>
Matrix<T> generate_factor(std::size_t rows, std::size_t columns, const Parameters& parameters,
                          std::uint64_t seed) {
  Matrix<T> matrix = make_matrix<T>(rows, columns, 3);
  if (parameters.computed) fill_random(matrix, seed);
  return matrix;
}

template <class T>
std::unique_ptr<Workload> prepare_in(const Parameters& parameters, const std::string& second,
                                     const weir::Runtime& runtime, const AppStreams& app_streams) {
  if (!parameters.output.empty()) check_output_format(parameters.output);
  const std::size_t n = parameters.n > 0 ? parameters.n : kUsualOrder;
  Matrix<T> a = parameters.input.empty() ? generate_factor<T>(n, n, parameters, parameters.seed)
                                         : read_finite_matrix<T>(parameters.input);
  Matrix<T> b = second.empty()
                    ? generate_factor<T>(a.columns(), a.columns(), parameters, parameters.seed + 1)
                    : read_finite_matrix<T>(second);
  if (a.columns() != b.rows()) {
    fail_input("{} is {} x {} and {} is {} x {}: they cannot be multiplied",
               parameters.input.empty() ? "A" : parameters.input, a.rows(), a.columns(), second,
               b.rows(), b.columns());
  }
  const std::size_t most = std::max(a.rows(), b.columns());
  const std::size_t tile =
      choose_tile(most, parameters.tile, parameters.tiles, usual_tile(most, app_streams));
  return std::make_unique<Matmul<T>>(std::move(a), std::move(b), tile, parameters.kernels,
                                     parameters.output, runtime, app_streams, parameters.queue);
}

class MatmulApplication final : public Application {
 public:
  const char* name() const override { return "matmul"; }
  const char* example() const override {
    return "weir run matmul --n 4096 --domains host,sim:cores=1,gbps=6 --policy finish";
  }
  const char* summary() const override { return "multiply two matrices"; }
  bool has_tasks() const override { return true; }
  bool has_team_kernels() const override { return true; }
  std::span<const Preset> presets() const override { return kPresets; }
  std::size_t usual_n() const override { return kUsualOrder; }
  std::size_t usual_tile() const override { return 0; }
  void add_options(CommandOptions& options) override {
    options.add("--second", second_, "File with the second factor [random]");
  }
  std::unique_ptr<Workload> prepare(const Parameters& parameters, const weir::Runtime& runtime,
                                    const AppStreams& app_streams) override {
    return parameters.single ? prepare_in<float>(parameters, second_, runtime, app_streams)
                             : prepare_in<double>(parameters, second_, runtime, app_streams);
  }

 private:
  std::string second_;
};

}  // namespace

std::unique_ptr<Application> make_matmul() { return std::make_unique<MatmulApplication>(); }

}  // namespace weir::apps
