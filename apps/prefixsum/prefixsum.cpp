#include "prefixsum/prefixsum.hpp"

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <scan.wk.h>
#include "common/csv.hpp"
#include "common/dense.hpp"
#include "common/past_cache.hpp"
#include "common/real_kernel.hpp"
#include "common/tiled_matrix.hpp"
#include "prefixsum/scan_native.hpp"

#define KERNEL_FILE "prefixsum/scan.wk"
#include "common/real_kernels.inc"

namespace weir::apps {

namespace {

constexpr Preset kPresets[] = {
    {"tiny", 100000, 0, 7, 0}, {"small", 1 << 20, 0, 16, 0}, {"paper", 1 << 22, 0, 64, 0}};

template <class T>
struct ScanKernels {
  ScanKernels(const weir::Runtime& runtime, weir_kernel_shape shape, bool past_cache)
      : sums(register_kernel<T>(
            runtime, {"scan.sums", HOST_KERNELS(scan_sums), scan_wk, "scan.wk"}, shape, cost<1, 1>,
            [](const weir::Call& call) {
              return weir::Groups{static_cast<std::uint32_t>(elements<T>(call, 1))};
            },
            native_scan_sums<T>)),
        offsets(register_kernel<T>(runtime,
                                   {"scan.offsets", HOST_KERNELS(scan_offsets), scan_wk, "scan.wk"},
                                   WEIR_KERNEL_SHAPE_SERIAL, cost<1, 2>,
                                   [](const weir::Call&) { return weir::Groups{}; })),
        write(register_kernel<T>(
            runtime, {"scan.write", HOST_KERNELS(scan_write), scan_wk, "scan.wk"}, shape,
            cost<2, 2>,
            [](const weir::Call& call) {
              return weir::Groups{
                  weir::group_count(elements<T>(call, 0), static_cast<std::size_t>(CHUNK))};
            },
            past_cache ? native_scan_write<T, true> : native_scan_write<T, false>)) {}

  /// Operations and numbers moved for each element.
  template <int operations, int numbers>
  static weir_cost cost(const weir_call* call) {
    const double n = weir::Call(call).scalar<double>(0);
    return {operations * n, numbers * sizeof(T) * n};
  }

  weir::Kernel sums;     ///< (n): x read; sums of parts write
  weir::Kernel offsets;  ///< (parts): sums read-write; carry read; next carry write
  weir::Kernel write;    ///< (n): x, sums read; y write
};

static_assert(CHUNK == kScanChunk);

template <class T>
class PrefixSum final : public Workload {
 public:
  PrefixSum(Matrix<T> x, std::size_t tile, std::string output, const weir::Runtime& runtime,
            const AppStreams& app_streams)
      : x_(std::move(x)),
        y_(x_.rows(), 1),
        prefixes_(1, (x_.rows() + tile - 1) / tile + 1),
        tile_(tile),
        output_(std::move(output)),
        streams_(app_streams.spread(tiles())),
        sums_(weir::group_count(tile, static_cast<std::size_t>(CHUNK)),
              kAhead * app_streams.size()),
        kernels_(runtime, app_streams.shape_for(tiles()), 2 * sizeof(T) * x_.size() > kCacheBytes),
        x_tiles_(runtime, x_, tile, 1, app_streams.size(), "x"),
        y_tiles_(runtime, y_, tile, 1, app_streams.size(), "y"),
        sum_tiles_(runtime, sums_, sums_.rows(), 1, app_streams.size(), "sums"),
        prefix_tiles_(runtime, prefixes_, 1, 1, app_streams.size(), "carries") {}

  std::size_t n() const override { return x_.rows(); }
  std::size_t tile() const override { return tile_; }
  std::size_t tiles() const override { return prefixes_.columns() - 1; }
  double operations() const override { return static_cast<double>(n()); }
  double traffic() const override { return 2 * sizeof(T) * static_cast<double>(n()); }

  void reset() override {
    prefixes_(0, 0) = 0;
    for (auto* tiles : {&x_tiles_, &y_tiles_, &sum_tiles_, &prefix_tiles_}) tiles->reset();
  }

  /// The sums of a tile need nothing but the tile: only the few additions that carry from tile to
  /// tile are done one after the other. A stream has sums of few tiles at a time, so that a tile is
  /// still in the cache when it is written.
  void enqueue() override {
    std::vector<std::size_t> turns(sums_.columns() / kAhead, 0);
    for (std::size_t i = 0; i < tiles(); ++i) {
      const AppStream& app_stream = *streams_[i];
      const std::size_t count = std::min(tile_, n() - i * tile_);
      const weir::Operand x = x_tiles_.read(app_stream, i, 0);
      const std::size_t slot = kAhead * app_stream.index + turns[app_stream.index]++ % kAhead;
      const weir::Region sums = sum_tiles_.region(0, slot);
      app_stream.run(kernels_.sums, {x, weir::write(sums)}, {count});
      const weir::Operand prefix = prefix_tiles_.read(app_stream, 0, i);
      const weir::Event added = app_stream.run(
          kernels_.offsets, {weir::readwrite(sums), prefix, prefix_tiles_.write(0, i + 1)},
          {sums_.rows()});
      prefix_tiles_.wrote(app_stream, 0, i + 1, added);
      y_tiles_.wrote(
          app_stream, i, 0,
          app_stream.run(kernels_.write, {x, weir::read(sums), y_tiles_.write(i, 0)}, {count}));
      y_tiles_.collect(i, 0);
    }
  }

  std::vector<Figure> figures() const override { return {{"sum", y_(n() - 1, 0)}}; }
  void save() const override {
    if (!output_.empty()) write_matrix(output_, y_);
  }

  /// Against sums in extended precision. A number is in the additions of two pieces at most, of its
  /// own and of the one that is written, of pieces and of parts: each errs by half an eps.
  std::vector<Verification> verify(const ReferenceBlas&) const override {
    long double exact = 0, size = 0;
    double worst = 0;
    for (std::size_t i = 0; i < n(); ++i) {
      exact += x_(i, 0);
      size += std::abs(x_(i, 0));
      const double error = static_cast<double>(std::abs(y_(i, 0) - exact));
      const double scale =
          static_cast<double>(size) * static_cast<double>(std::numeric_limits<T>::epsilon());
      const double relative = scale > 0 ? error / scale : error;
      worst = worse(worst, relative);
    }
    constexpr auto kPieces = CHUNK / kScanPiece;
    constexpr auto kOfPieces = static_cast<double>(2 * kScanPiece + 2 * kPieces + 32);
    const auto parts = static_cast<double>(tiles() * sums_.rows());
    return {
        {"max |y - reference| / (eps (|x[0]| + ... + |x[i]|))", worst, (kOfPieces + parts) / 2}};
  }

 private:
  static constexpr std::size_t kAhead = 2;  ///< tiles of a stream that may have sums

  Matrix<T> x_, y_;
  Matrix<T> prefixes_;  ///< the sum before each tile, and the sum of all
  std::size_t tile_;
  std::string output_;
  std::vector<const AppStream*> streams_;
  Matrix<T> sums_;  ///< columns that the tiles of a stream use round robin
  ScanKernels<T> kernels_;
  TiledMatrix<T> x_tiles_, y_tiles_, sum_tiles_, prefix_tiles_;
};

/// Whole numbers from 0 to 255.
template <class T>
Matrix<T> generate(std::size_t n, const Parameters& parameters) {
  Matrix<T> vector = make_matrix<T>(n, 1, 2);
  if (!parameters.computed) return vector;
  std::mt19937_64 random(parameters.seed);
  std::generate_n(vector.data(), n, [&] { return static_cast<T>(random() >> 56); });
  return vector;
}

template <class T>
std::unique_ptr<Workload> prepare_in(const Parameters& parameters, const weir::Runtime& runtime,
                                     const AppStreams& app_streams) {
  if (!parameters.output.empty()) check_output_format(parameters.output);
  Matrix<T> x = parameters.input.empty() ? generate<T>(parameters.n, parameters)
                                         : read_vector<T>(parameters.input);
  const std::size_t tile = choose_tile(x.rows(), parameters.tile, parameters.tiles, 0);
  return std::make_unique<PrefixSum<T>>(std::move(x), tile, parameters.output, runtime,
                                        app_streams);
}

class PrefixSumApplication final : public Application {
 public:
  const char* name() const override { return "prefixsum"; }
  const char* example() const override {
    return "weir run prefixsum --size paper --domains sim --streams 4";
  }
  const char* summary() const override {
    return "compute the prefix sums of a vector of --n elements";
  }
  std::span<const Preset> presets() const override { return kPresets; }
  const char* input_help() const override { return "The vector: .npy, Matrix Market or CSV"; }
  void register_kernels(const Parameters& parameters, const weir::Runtime& runtime) const override {
    if (parameters.single) {
      ScanKernels<float>(runtime, WEIR_KERNEL_SHAPE_SERIAL, false);
    } else {
      ScanKernels<double>(runtime, WEIR_KERNEL_SHAPE_SERIAL, false);
    }
  }
  std::unique_ptr<Workload> prepare(const Parameters& parameters, const weir::Runtime& runtime,
                                    const AppStreams& app_streams) override {
    const Parameters filled = with_usual(parameters, kPresets[1]);
    return filled.single ? prepare_in<float>(filled, runtime, app_streams)
                         : prepare_in<double>(filled, runtime, app_streams);
  }
};

}  // namespace

std::unique_ptr<Application> make_prefixsum() { return std::make_unique<PrefixSumApplication>(); }

}  // namespace weir::apps
