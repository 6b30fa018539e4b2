#include "lu/lu.hpp"

#include <optional>
#include <string>
#include <utility>

#include "common/command_options.hpp"
#include "common/counted.hpp"
#include "common/dense.hpp"
#include "common/tile_kernels.hpp"
#include "common/tiled_matrix.hpp"
#include "lu/lu_kernels.hpp"
#include "lu/lu_system.hpp"

namespace weir::apps {

namespace {

constexpr std::size_t kUsualOrder = 4096;
/// Rows of the tallest product: it is the faster the more rows share a packed tile.
constexpr std::size_t kMostRows = 2048;

/// Files that only this application has; "" for none.
struct SystemFiles {
  std::string rhs, solution, permutation;
};

/// The pivots of all panels in a buffer, of which each panel is a part.
class Pivots {
 public:
  Pivots(const weir::Runtime& runtime, std::vector<std::int32_t>& memory, std::size_t panel,
         std::size_t app_streams)
      : count_(memory.size()),
        panel_(panel),
        buffer_(runtime.wrap(memory, "pivots")),
        directory_((count_ + panel - 1) / panel, app_streams) {}

  void reset() { directory_.reset(); }
  /// The same for tasks.
  void reset(const weir::Queue& queue) const {
    queue.acquire(buffer_.all(), WEIR_ACCESS_READ_WRITE);
  }
  weir::Operand write(std::size_t k) const { return weir::write(region(k, k + 1)); }
  /// Of panels [first, last), as tasks of a queue read them.
  weir::Operand read(std::size_t first, std::size_t last) const {
    return weir::read(region(first, last));
  }
  void wrote(const AppStream& app_stream, std::size_t k, const weir::Event& event) {
    directory_.wrote(app_stream, k, event);
  }
  /// Makes the pivots of panels [first, last) ready for the next action of the stream.
  weir::Operand read(const AppStream& app_stream, std::size_t first, std::size_t last) {
    for (std::size_t k = first; k < last; ++k) directory_.fetch(app_stream, k, region(k, k + 1));
    return weir::read(region(first, last));
  }
  void collect(std::size_t k) { directory_.collect(k, region(k, k + 1)); }

 private:
  weir::Region region(std::size_t first, std::size_t last) const {
    const std::size_t begin = first * panel_, end = std::min(last * panel_, count_);
    return buffer_.elements<std::int32_t>(begin, end - begin);
  }

  std::size_t count_, panel_;
  weir::Buffer buffer_;
  TileDirectory directory_;
};

/// All tiles of the matrix: as many can be computed at a time at the beginning.
std::size_t tiles_of(std::size_t n, std::size_t tile) {
  const std::size_t tiles = (n + tile - 1) / tile;
  return tiles * tiles;
}

template <class T>
class Lu final : public Workload {
 public:
  Lu(Matrix<T> matrix, std::size_t tile, const Parameters& parameters, const weir::Runtime& runtime,
     const AppStreams& app_streams)
      : computed_(parameters.computed),
        system_(std::move(matrix), tile),
        streams_(app_streams),
        queue_(parameters.queue),
        kernels_(runtime, tile_kernel_ending(parameters.kernels, tiles_of(system_.order(), tile),
                                             app_streams)),
        tiles_(runtime, system_.factors, tile, tile, app_streams.size(), "A"),
        pivots_(runtime, system_.pivots, tile, app_streams.size()),
        group_(std::max<std::size_t>(
            1, std::min(kMostRows, system_.order() / (2 * app_streams.cores())) / tile)),
        owners_(app_streams.deal(tiles_.columns())) {}

  /// Makes finish() solve a system with these right-hand sides and save() write the requested
  /// files.
  void solve_later(Matrix<T> rhs) { rhs_ = std::move(rhs); }
  void write_later(std::string factors, SystemFiles files) {
    factors_file_ = std::move(factors);
    files_ = std::move(files);
  }

  std::size_t n() const override { return system_.order(); }
  std::size_t tile() const override { return system_.panel; }
  std::size_t tiles() const override { return tiles_.columns(); }
  double operations() const override {
    const double n = static_cast<double>(system_.order());
    return 2 * n * n * n / 3 - n * n / 2 - n / 6;
  }
  double gemm_peak(const ReferenceBlas& blas) const override { return blas.gemm_peak<T>(n()); }

  void reset() override {
    if (queue_ != nullptr) {
      tiles_.reset(*queue_);
      pivots_.reset(*queue_);
    }
    if (computed_) copy(system_.given, system_.factors);
    tiles_.reset();
    pivots_.reset();
  }

  /// Right-looking. Each column of tiles belongs to a place, because the search for pivots reads
  /// all of it. The column of the next panel goes to the urgent stream of its place, so that panels
  /// run ahead of the updates. Rows to the left are exchanged last, by pivots that come after all
  /// updates: then no action reads these rows.
  void enqueue() override {
    if (queue_ != nullptr) return submit();
    for (std::size_t k = 0; k < tiles(); ++k) {
      factor_panel(k);
      for (std::size_t j = k + 1; j < tiles(); ++j) update(j, k);
    }
    for (std::size_t j = 0; j < tiles(); ++j) {
      if (j + 1 < tiles()) exchange(streams_.any(owners_[j], j), j, j + 1, tiles());
      for (std::size_t i = 0; i < tiles(); ++i) tiles_.collect(i, j);
      pivots_.collect(j);
    }
  }

  void finish() override {
    if (rhs_) solution_ = system_.solve(*rhs_);
  }
  void save() const override {
    if (!factors_file_.empty()) write_matrix(factors_file_, system_.factors);
    if (!files_.permutation.empty()) write_matrix(files_.permutation, permutation());
    if (solution_ && !files_.solution.empty()) write_matrix(files_.solution, *solution_);
  }

  std::vector<Verification> verify(const ReferenceBlas& blas) const override {
    std::vector<Verification> done = {system_.factor_error(blas)};
    if (solution_) done.push_back(system_.solution_error(blas, *rhs_, *solution_));
    return done;
  }

 private:
  /// The same as tasks. Panels are taller than the tiles of updates, and regions that overlap meet
  /// in host memory: on places with memory of their own each panel is copied once more.
  void submit() {
    const auto read = [this](Rows i, std::size_t j) { return weir::read(tiles_.region(i, j)); };
    const auto change = [this](Rows i, std::size_t j) {
      return weir::readwrite(tiles_.region(i, j));
    };
    const auto exchange = [&](const Tasks& to, std::size_t j, std::size_t first, std::size_t last) {
      to.run(kernels_.exchange, {change({first, tiles()}, j), pivots_.read(first, last)},
             {system_.panel}, name("exchange", first, j).c_str());
    };
    for (std::size_t k = 0; k < tiles(); ++k) {
      Tasks{*queue_, 1}.run(kernels_.getrf, {change({k, tiles()}, k), pivots_.write(k)}, {},
                            panel_name(k).c_str());
      for (std::size_t j = k + 1; j < tiles(); ++j) {
        const Tasks update{*queue_, j == k + 1 ? 1 : 0};
        exchange(update, j, k, k + 1);
        update.run(kernels_.trsm, {read(k, k), change(k, j)}, {'L', 'L', 'N', 'U', T{1}},
                   name("trsm", k, j).c_str());
        for (std::size_t i = k + 1; i < tiles(); i += group_) {
          const Rows rows(i, std::min(i + group_, tiles()));
          update.run(kernels_.gemm, {read(rows, k), read(k, j), change(rows, j)},
                     {'N', 'N', T{-1}, T{1}}, name("gemm", i, j).c_str());
        }
      }
    }
    for (std::size_t j = 0; j + 1 < tiles(); ++j) exchange({*queue_}, j, j + 1, tiles());
  }

  /// The stream in which column j is updated by panel k.
  const AppStream& stream_of(std::size_t j, std::size_t k) const noexcept {
    return j == k + 1 ? streams_.urgent(owners_[j]) : streams_.any(owners_[j], j);
  }

  void factor_panel(std::size_t k) {
    const AppStream& app_stream = streams_.urgent(owners_[k]);
    const Rows rows(k, tiles());
    const weir::Event factored = app_stream.stream.compute(
        kernels_.getrf, {tiles_.readwrite(app_stream, rows, k), pivots_.write(k)}, {},
        panel_name(k).c_str());
    tiles_.wrote(app_stream, rows, k, factored);
    pivots_.wrote(app_stream, k, factored);
  }

  void update(std::size_t j, std::size_t k) {
    const AppStream& app_stream = stream_of(j, k);
    exchange(app_stream, j, k, k + 1);
    tiles_.wrote(
        app_stream, k, j,
        app_stream.stream.compute(
            kernels_.trsm, {tiles_.read(app_stream, k, k), tiles_.readwrite(app_stream, k, j)},
            {'L', 'L', 'N', 'U', T{1}}, name("trsm", k, j).c_str()));
    for (std::size_t i = k + 1; i < tiles(); i += group_) {
      subtract_product(app_stream, Rows(i, std::min(i + group_, tiles())), j, k);
    }
  }

  /// A(i, j) -= A(i, k) A(k, j).
  void subtract_product(const AppStream& app_stream, Rows i, std::size_t j, std::size_t k) {
    tiles_.wrote(
        app_stream, i, j,
        app_stream.stream.compute(kernels_.gemm,
                                  {tiles_.read(app_stream, i, k), tiles_.read(app_stream, k, j),
                                   tiles_.readwrite(app_stream, i, j)},
                                  {'N', 'N', T{-1}, T{1}}, name("gemm", i.begin, j).c_str()));
  }

  /// Exchanges rows of column j as panels [first, last) did.
  void exchange(const AppStream& app_stream, std::size_t j, std::size_t first, std::size_t last) {
    const Rows rows(first, tiles());
    tiles_.wrote(app_stream, rows, j,
                 app_stream.stream.compute(
                     kernels_.exchange,
                     {tiles_.readwrite(app_stream, rows, j), pivots_.read(app_stream, first, last)},
                     {system_.panel}, name("exchange", first, j).c_str()));
  }

  std::string panel_name(std::size_t k) const {
    return fmt::format("getrf of rows {} to {}", k * tile() + 1, n());
  }
  static std::string name(const char* routine, std::size_t i, std::size_t j) {
    return fmt::format("{} {},{}", routine, i, j);
  }

  Matrix<T> permutation() const {
    Matrix<T> column(n(), 1);
    const std::vector<std::size_t> rows = system_.rows();
    std::transform(rows.begin(), rows.end(), column.data(),
                   [](std::size_t row) { return static_cast<T>(row); });
    return column;
  }

  bool computed_;
  LuSystem<T> system_;
  const AppStreams& streams_;
  const weir::Queue* queue_;  ///< null: streams
  LuKernels<T> kernels_;
  TiledMatrix<T> tiles_;
  Pivots pivots_;
  std::size_t group_;                ///< rows of tiles in a product
  std::vector<std::size_t> owners_;  ///< place of each column of tiles
  std::optional<Matrix<T>> rhs_, solution_;
  std::string factors_file_;
  SystemFiles files_;
};

template <class T>
Matrix<T> read_or_generate(const Parameters& parameters) {
  if (parameters.input.empty()) {
    const std::size_t n = parameters.n > 0 ? parameters.n : kUsualOrder;
    Matrix<T> matrix = make_matrix<T>(n, n, 3);
    if (parameters.computed) fill_random(matrix, parameters.seed);
    return matrix;
  }
  Matrix<T> matrix = read_finite_matrix<T>(parameters.input);
  if (matrix.rows() != matrix.columns()) {
    fail_input("{}: the matrix is {} x {}: expected a square", parameters.input, matrix.rows(),
               matrix.columns());
  }
  return matrix;
}

/// Returns an edge with which BLAS is fast and the panels, on which all updates wait, are small.
std::size_t usual_tile(std::size_t n) {
  constexpr std::size_t kSmallest = 32, kLargest = 256, kFewest = 16;
  return std::clamp(n / kFewest / kSmallest * kSmallest, kSmallest, kLargest);
}

template <class T>
std::unique_ptr<Workload> prepare_in(const Parameters& parameters, const SystemFiles& files,
                                     const weir::Runtime& runtime, const AppStreams& app_streams) {
  for (const std::string& file : {parameters.output, files.solution, files.permutation}) {
    if (!file.empty()) check_output_format(file);
  }
  Matrix<T> matrix = read_or_generate<T>(parameters);
  const std::size_t n = matrix.rows();
  const std::size_t tile = choose_tile(n, parameters.tile, parameters.tiles, usual_tile(n));
  auto lu = std::make_unique<Lu<T>>(std::move(matrix), tile, parameters, runtime, app_streams);
  lu->write_later(parameters.output, files);
  if (!files.rhs.empty()) {
    Matrix<T> rhs = read_finite_matrix<T>(files.rhs);
    if (rhs.rows() != n) {
      fail_input("{}: the right-hand side is {} x {}: expected {}", files.rhs, rhs.rows(),
                 rhs.columns(), counted(n, "row"));
    }
    lu->solve_later(std::move(rhs));
  }
  return lu;
}

class LuApplication final : public Application {
 public:
  const char* name() const override { return "lu"; }
  const char* example() const override {
    return "weir run lu --input A.mtx --rhs b.npy --solution x.npy";
  }
  const char* summary() const override {
    return "factor a square matrix with partial pivoting, and solve with it";
  }
  bool has_tasks() const override { return true; }
  bool has_team_kernels() const override { return true; }
  std::size_t usual_n() const override { return kUsualOrder; }
  void add_options(CommandOptions& options) override {
    const CommandOption rhs =
        options.add("--rhs", files_.rhs, "Also solve A x = b for the b in this file");
    options.add("--solution", files_.solution, "Write x to this file").needs(rhs);
    options.add("--permutation", files_.permutation,
                "write the rows of A in the order of L U, counted from 0, to this file");
  }
  void register_kernels(const Parameters& parameters, const weir::Runtime& runtime) const override {
    if (parameters.single) {
      LuKernels<float>{runtime};
    } else {
      LuKernels<double>{runtime};
    }
  }
  std::unique_ptr<Workload> prepare(const Parameters& parameters, const weir::Runtime& runtime,
                                    const AppStreams& app_streams) override {
    return parameters.single ? prepare_in<float>(parameters, files_, runtime, app_streams)
                             : prepare_in<double>(parameters, files_, runtime, app_streams);
  }

 private:
  SystemFiles files_;
};

}  // namespace

std::unique_ptr<Application> make_lu() { return std::make_unique<LuApplication>(); }

}  // namespace weir::apps
