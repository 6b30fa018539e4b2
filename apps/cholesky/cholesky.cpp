#include "cholesky/cholesky.hpp"

#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "common/command_options.hpp"
#include "common/counted.hpp"
#include "common/dense.hpp"
#include "common/tile_kernels.hpp"
#include "common/tiled_matrix.hpp"

namespace weir::apps {

namespace {

constexpr std::size_t kUsualOrder = 4096;
constexpr Preset kPresets[] = {
    {"tiny", 100, 32, 0, 0}, {"small", 2400, 400, 0, 0}, {"paper", 9600, 800, 0, 0}};
constexpr std::size_t kLargeOrder = 8192;  ///< from here on tiles are larger
/// Rows of the tallest action: products of BLAS are the faster the more rows share a packed tile.
constexpr std::size_t kMostRows = 2048;
constexpr std::size_t kCheckedColumns = 256;  ///< of a block of the verification
constexpr double kLimit = 30;                 ///< of LAPACK's own tests

/// Files that only this application has; "" for none.
struct SystemFiles {
  std::string rhs, solution;
};

template <class T>
weir::Kernel routine(const weir::Runtime& runtime, const char* pattern, const char* ending) {
  const char type = std::is_same_v<T, float> ? 's' : 'd';
  return runtime.kernel((fmt::format(fmt::runtime(pattern), type) + ending).c_str());
}

/// The kernels of the factorisation and of the solves, enqueued with their letters.
template <class T>
class Kernels {
 public:
  Kernels(const weir::Runtime& runtime, const char* ending)
      : gemm_(routine<T>(runtime, "blas.{}gemm", ending)),
        syrk_(routine<T>(runtime, "blas.{}syrk", ending)),
        trsm_(routine<T>(runtime, "blas.{}trsm", ending)),
        potrf_(routine<T>(runtime, "lapack.{}potrf", ending)) {}

  /// A = L L^T, in place. `first` rows of the whole matrix are above it.
  template <class To>  // Stream or Tasks
  weir::Event factor(const To& to, const weir::Operand& a, std::size_t first,
                     const char* name) const {
    return to.run(potrf_, {a}, {'L', static_cast<std::int64_t>(first)}, name);
  }
  /// X L^T = B for X, which replaces B.
  template <class To>  // Stream or Tasks
  weir::Event solve_right(const To& to, const weir::Operand& l, const weir::Operand& b,
                          const char* name) const {
    return to.run(trsm_, {l, b}, {'R', 'L', 'T', 'N', T{1}}, name);
  }
  /// L X = B or L^T X = B for X, which replaces B.
  template <class To>  // Stream or Tasks
  weir::Event solve_left(const To& to, char trans, const weir::Operand& l,
                         const weir::Operand& b) const {
    return to.run(trsm_, {l, b}, {'L', 'L', trans, 'N', T{1}});
  }
  /// C -= A A^T.
  template <class To>  // Stream or Tasks
  weir::Event subtract_square(const To& to, const weir::Operand& a, const weir::Operand& c,
                              const char* name) const {
    return to.run(syrk_, {a, c}, {'L', 'N', T{-1}, T{1}}, name);
  }
  /// C -= op(A) op(B).
  template <class To>  // Stream or Tasks
  weir::Event subtract_product(const To& to, char trans_a, char trans_b, const weir::Operand& a,
                               const weir::Operand& b, const weir::Operand& c,
                               const char* name = nullptr) const {
    return to.run(gemm_, {a, b, c}, {trans_a, trans_b, T{-1}, T{1}}, name);
  }

 private:
  weir::Kernel gemm_, syrk_, trsm_, potrf_;
};

/// Returns the number of tiles of one triangle: as many can be computed at a time at the beginning.
std::size_t tiles_below(std::size_t n, std::size_t tile) {
  const std::size_t tiles = (n + tile - 1) / tile;
  return tiles * (tiles + 1) / 2;
}

std::string tile_name(const char* routine, std::size_t i, std::size_t j) {
  return fmt::format("{} {},{}", routine, i, j);
}

template <class T>
class Cholesky final : public Workload {
 public:
  Cholesky(Matrix<T> matrix, std::size_t tile, const Parameters& parameters,
           const weir::Runtime& runtime, const AppStreams& app_streams)
      : computed_(parameters.computed),
        given_(std::move(matrix)),
        factor_(make_matrix_of_tiles<T>(given_.rows(), given_.rows(), 2)),
        tile_(tile),
        runtime_(runtime),
        streams_(app_streams),
        queue_(parameters.queue),
        kernels_(runtime, tile_kernel_ending(parameters.kernels, tiles_below(given_.rows(), tile),
                                             app_streams)),
        tiles_(runtime, factor_, tile, tile, app_streams.size(), "A"),
        group_(std::min(group_of(given_.rows(), tile, app_streams),
                        most_in_a_group(app_streams, queue_ != nullptr))),
        width_(width_of(tile, app_streams, queue_ != nullptr)),
        owners_(app_streams.deal(work_of_groups(), copying_of_groups())) {}

  /// Makes finish() solve a system with these right-hand sides and save() write the requested
  /// files.
  void solve_later(Matrix<T> rhs, std::string solution) {
    rhs_ = std::move(rhs);
    solution_file_ = std::move(solution);
  }
  void write_later(std::string factor) { factor_file_ = std::move(factor); }

  std::size_t n() const override { return given_.rows(); }
  std::size_t tile() const override { return tile_; }
  std::size_t tiles() const override { return tiles_.rows(); }
  double operations() const override {
    const double n = static_cast<double>(given_.rows());
    return n * n * n / 3 + n * n / 2 + n / 6;
  }
  double gemm_peak(const ReferenceBlas& blas) const override { return blas.gemm_peak<T>(n()); }

  void reset() override {
    if (queue_ != nullptr) tiles_.reset(*queue_);
    if (computed_) copy(given_, factor_);
    tiles_.reset();
  }

  /// Right-looking. Each group of rows of tiles belongs to a place. The predecessors of the next
  /// panel go to the urgent stream of the place, so that panels run ahead of the updates.
  void enqueue() override {
    if (queue_ != nullptr) return submit();
    for (std::size_t k = 0; k < tiles(); ++k) {
      factor_panel(k);
      for_updates(
          k, [&](std::size_t j) { update_diagonal(j, k); },
          [&](std::size_t group, Rows i, Columns j) { update(group, i, j, k); });
    }
  }

  void finish() override {
    for (std::size_t j = 1; computed_ && j < n(); ++j) std::fill_n(&factor_(0, j), j, T{0});
    if (rhs_) solve();
  }
  void save() const override {
    if (!factor_file_.empty()) write_matrix(factor_file_, factor_);
    if (rhs_ && !solution_file_.empty()) write_matrix(solution_file_, *solution_);
  }

  std::vector<Verification> verify(const ReferenceBlas& blas) const override {
    std::vector<Verification> done = {factor_error(blas)};
    if (rhs_) done.push_back(solution_error(blas));
    return done;
  }

 private:
  /// Rows of tiles in a group: tall actions, but at least two groups for each core, and so many for
  /// each of several places that these get about as much work.
  static std::size_t group_of(std::size_t n, std::size_t tile, const AppStreams& app_streams) {
    constexpr std::size_t kOfPlace = 4;
    const std::size_t fewest = std::max(
        2 * app_streams.cores(), app_streams.places() > 1 ? kOfPlace * app_streams.places() : 0);
    return std::max<std::size_t>(1, std::min(kMostRows, n / fewest) / tile);
  }

  /// Columns that an action updates: several for small tiles, as BLAS packs its operands for each
  /// call, and two where each core runs its own kernels.
  static std::size_t width_of(std::size_t tile, const AppStreams& app_streams, bool tasks) {
    constexpr std::size_t kWide = 256;
    if (tasks) return app_streams.share_memory() ? std::max<std::size_t>(1, kWide / tile) : 1;
    return app_streams.places() > 1 && app_streams.cores() == app_streams.places() ? 2 : 1;
  }

  /// Work in the rows above one grows with the cube of their number.
  std::vector<double> work_of_groups() const {
    std::vector<double> work;
    for_groups(0, [&](std::size_t, Rows i) {
      work.push_back(std::pow(as_double(i.end), 3) - std::pow(as_double(i.begin), 3));
    });
    return work;
  }

  /// The same for the copies, there and back, of a place with a memory of its own: its cores make
  /// some thirty operations in the time of copying a byte.
  std::vector<double> copying_of_groups() const {
    constexpr double kOperationsOfByte = 30, kOperationsOfWork = 1.0 / 3;
    const double of_tile =
        2 * kOperationsOfByte * sizeof(T) / (kOperationsOfWork * as_double(tile_));
    std::vector<double> copying;
    for_groups(0, [&](std::size_t, Rows i) {
      const double end = as_double(i.end), begin = as_double(i.begin);
      copying.push_back(of_tile * (end * (end + 1) - begin * (begin + 1)) / 2);  // row i: i + 1
    });
    return copying;
  }

  /// Tasks name a group as one region: a task that reads one of its tiles gets a copy of that tile
  /// through host memory, so groups are small when there are several memories. A single device has
  /// no groups, because its memory may have no room for both.
  static std::size_t most_in_a_group(const AppStreams& app_streams, bool tasks) {
    if (!tasks || app_streams.share_memory()) return kMostRows;
    return app_streams.places() > 1 ? 2 : 1;
  }

  /// Calls function(group, rows) for the tiles of a column from row `first` on.
  template <class Function>
  void for_groups(std::size_t first, const Function& function) const {
    for (std::size_t row = first; row < tiles();) {
      const std::size_t group = row / group_, end = std::min((group + 1) * group_, tiles());
      function(group, Rows(row, end));
      row = end;
    }
  }

  /// Calls diagonal(j) and block(group, rows, columns) for the tiles that column k updates.
  template <class Diagonal, class Block>
  void for_updates(std::size_t k, const Diagonal& diagonal, const Block& block) const {
    for (std::size_t j = k + 1; j < tiles();) {
      const Columns columns(j, j == k + 1 ? j + 1 : std::min((j / width_ + 1) * width_, tiles()));
      for (; j < columns.end; ++j) {
        diagonal(j);
        for (std::size_t i = j + 1; i < columns.end; ++i) block(i / group_, i, j);
      }
      for_groups(j, [&](std::size_t group, Rows i) { block(group, i, columns); });
    }
  }

  /// The stream in which a group of rows is updated from column j on by column k.
  const AppStream& stream_of(std::size_t group, std::size_t j, std::size_t k) const noexcept {
    return j == k + 1 ? streams_.urgent(owners_[group]) : streams_.any(owners_[group], group);
  }

  /// Submits the same operations as tasks; the queue chooses place and time.
  void submit() {
    const auto read = [this](Rows i, std::size_t j) { return weir::read(tiles_.region(i, j)); };
    const auto change = [this](Rows i, Columns j) { return weir::readwrite(tiles_.region(i, j)); };
    for (std::size_t k = 0; k < tiles(); ++k) {
      const Tasks panel{*queue_, 1};
      kernels_.factor(panel, change(k, k), k * tile_, tile_name("potrf", k, k).c_str());
      for_groups(k + 1, [&](std::size_t, Rows i) {
        kernels_.solve_right(panel, read(k, k), change(i, k),
                             tile_name("trsm", i.begin, k).c_str());
      });
      const auto update = [&](std::size_t j) { return Tasks{*queue_, j == k + 1 ? 1 : 0}; };
      for_updates(
          k,
          [&](std::size_t j) {
            kernels_.subtract_square(update(j), read(j, k), change(j, j),
                                     tile_name("syrk", j, j).c_str());
          },
          [&](std::size_t, Rows i, Columns j) {
            kernels_.subtract_product(update(j.begin), 'N', 'T', read(i, k), read(j, k),
                                      change(i, j), tile_name("gemm", i.begin, j.begin).c_str());
          });
    }
  }

  void factor_panel(std::size_t k) {
    const AppStream& diagonal = streams_.urgent(owners_[k / group_]);
    tiles_.wrote(diagonal, k, k,
                 kernels_.factor(diagonal, tiles_.readwrite(diagonal, k, k), k * tile_,
                                 tile_name("potrf", k, k).c_str()));
    for_groups(k + 1, [&](std::size_t group, Rows i) {
      const AppStream& app_stream = streams_.urgent(owners_[group]);
      tiles_.wrote(app_stream, i, k,
                   kernels_.solve_right(app_stream, tiles_.read(app_stream, k, k),
                                        tiles_.readwrite(app_stream, i, k),
                                        tile_name("trsm", i.begin, k).c_str()));
    });
    for (std::size_t i = k; i < tiles(); ++i) tiles_.collect(i, k);
  }

  void update_diagonal(std::size_t j, std::size_t k) {
    const AppStream& app_stream = stream_of(j / group_, j, k);
    tiles_.wrote(app_stream, j, j,
                 kernels_.subtract_square(app_stream, tiles_.read(app_stream, j, k),
                                          tiles_.readwrite(app_stream, j, j),
                                          tile_name("syrk", j, j).c_str()));
  }

  void update(std::size_t group, Rows i, Columns j, std::size_t k) {
    const AppStream& app_stream = stream_of(group, j.begin, k);
    tiles_.wrote(
        app_stream, i, j,
        kernels_.subtract_product(app_stream, 'N', 'T', tiles_.read(app_stream, i, k),
                                  tiles_.read(app_stream, j, k), tiles_.readwrite(app_stream, i, j),
                                  tile_name("gemm", i.begin, j.begin).c_str()));
  }

  /// Solves L Y = B and L^T X = Y by tiles, in one stream.
  void solve() {
    solution_.emplace(rhs_->rows(), rhs_->columns());
    copy(*rhs_, *solution_);
    const AppStream& app_stream = streams_.urgent(0);
    TiledMatrix<T> x(runtime_, *solution_, tile_, rhs_->columns(), streams_.size(), "x");
    const auto divide = [&](std::size_t k, char trans) {
      x.wrote(app_stream, k, 0,
              kernels_.solve_left(app_stream, trans, tiles_.read(app_stream, k, k),
                                  x.readwrite(app_stream, k, 0)));
    };
    const auto subtract = [&](std::size_t to, std::size_t from, char trans) {
      const weir::Operand l = tiles_.read(app_stream, std::max(to, from), std::min(to, from));
      x.wrote(app_stream, to, 0,
              kernels_.subtract_product(app_stream, trans, 'N', l, x.read(app_stream, from, 0),
                                        x.readwrite(app_stream, to, 0)));
    };
    for (std::size_t k = 0; k < tiles(); ++k) {
      for (std::size_t j = 0; j < k; ++j) subtract(k, j, 'N');
      divide(k, 'N');
    }
    for (std::size_t k = tiles(); k-- > 0;) {
      for (std::size_t i = k + 1; i < tiles(); ++i) subtract(k, i, 'T');
      divide(k, 'T');
    }
    for (std::size_t k = 0; k < tiles(); ++k) x.collect(k, 0);
    runtime_.synchronize();
  }

  /// As LAPACK's test of its own factorisation (dpot01), by block columns.
  Verification factor_error(const ReferenceBlas& blas) const {
    long double error = 0, size = 0;
    for (std::size_t j = 0; j < n(); j += kCheckedColumns) {
      const std::size_t rows = n() - j, columns = std::min(kCheckedColumns, rows);
      Matrix<T> block(rows, columns);
      for (std::size_t c = 0; c < columns; ++c) {
        std::copy_n(&given_(j, j + c), rows, &block(0, c));
      }
      size += squares_of_symmetric(block);
      const std::size_t leading = factor_.leading_dimension();
      blas.multiply<T>(rows, columns, j + columns, T{-1}, {&factor_(j, 0), leading},
                       {&factor_(j, 0), leading, true}, T{1}, block.data(), rows);
      error += squares_of_symmetric(block);
    }
    return {"|A - L L^T| / (n eps |A|)",
            relative(std::sqrt(error), std::sqrt(size) * eps() * as_double(n())), kLimit};
  }

  /// Sum of the squares of a block column of a symmetric matrix and of its transpose.
  static long double squares_of_symmetric(const Matrix<T>& block) {
    long double sum = 0;
    for (std::size_t j = 0; j < block.columns(); ++j) {
      for (std::size_t i = j; i < block.rows(); ++i) {
        const long double x = block(i, j);
        sum += i == j ? x * x : 2 * x * x;
      }
    }
    return sum;
  }

  /// As LAPACK's test of its own solution (dpot02).
  Verification solution_error(const ReferenceBlas& blas) const {
    const std::size_t columns = rhs_->columns();
    Matrix<T> residual(n(), columns);
    copy(*rhs_, residual);
    blas.multiply<T>(n(), columns, n(), T{-1}, {given_.data(), n()}, {solution_->data(), n()}, T{1},
                     residual.data(), n());
    return {"|A x - b| / (n eps |A| |x|)",
            relative(norm(residual), norm(given_) * norm(*solution_) * eps() * as_double(n())),
            kLimit};
  }

  static double eps() { return std::numeric_limits<T>::epsilon(); }
  static double as_double(std::size_t value) { return static_cast<double>(value); }

  bool computed_;
  Matrix<T> given_, factor_;
  std::size_t tile_;
  const weir::Runtime& runtime_;
  const AppStreams& streams_;
  const weir::Queue* queue_;  ///< null: streams
  Kernels<T> kernels_;
  TiledMatrix<T> tiles_;
  std::size_t group_;                ///< rows of tiles in a group
  std::size_t width_;                ///< columns that one action updates
  std::vector<std::size_t> owners_;  ///< place of each group
  std::optional<Matrix<T>> rhs_, solution_;
  std::string factor_file_, solution_file_;
};

template <class T>
Matrix<T> read_or_generate(const Parameters& parameters) {
  if (parameters.input.empty()) {
    const std::size_t n = parameters.n > 0 ? parameters.n : kUsualOrder;
    Matrix<T> matrix = make_matrix<T>(n, n, 2);
    if (parameters.computed) fill_positive_definite(matrix, parameters.seed);
    return matrix;
  }
  Matrix<T> matrix = read_finite_matrix<T>(parameters.input);
  check_symmetric(matrix, parameters.input);
  return matrix;
}

/// Returns an edge with which BLAS is fast and the panels, on which all updates wait, are small.
std::size_t usual_tile(std::size_t n, const AppStreams& app_streams) {
  constexpr std::size_t kSmallest = 32, kFewest = 8, kUsual = 256, kLarge = 512;
  if (app_streams.teams()) {  // as measured on ten modelled machines: bench/bounds.py
    const std::size_t tiles = std::min<std::size_t>(4 + 4 * app_streams.memories(), 16);
    return std::max(n / tiles / kSmallest * kSmallest, kUsual);
  }
  if (n >= kLargeOrder) return kLarge;
  return std::clamp(n / kFewest / kSmallest * kSmallest, kSmallest, kUsual);
}

template <class T>
std::unique_ptr<Workload> prepare_in(const Parameters& parameters, const SystemFiles& files,
                                     const weir::Runtime& runtime, const AppStreams& app_streams) {
  if (!parameters.output.empty()) check_output_format(parameters.output);
  if (!files.solution.empty()) check_output_format(files.solution);
  Matrix<T> matrix = read_or_generate<T>(parameters);
  const std::size_t n = matrix.rows();
  auto cholesky = std::make_unique<Cholesky<T>>(
      std::move(matrix),
      choose_tile(n, parameters.tile, parameters.tiles, usual_tile(n, app_streams)), parameters,
      runtime, app_streams);
  cholesky->write_later(parameters.output);
  if (!files.rhs.empty()) {
    Matrix<T> rhs = read_finite_matrix<T>(files.rhs);
    if (rhs.rows() != n) {
      fail_input("{}: the right-hand side is {} x {}: expected {}", files.rhs, rhs.rows(),
                 rhs.columns(), counted(n, "row"));
    }
    cholesky->solve_later(std::move(rhs), files.solution);
  }
  return cholesky;
}

class CholeskyApplication final : public Application {
 public:
  const char* name() const override { return "cholesky"; }
  const char* example() const override {
    return "weir run cholesky --input stiffness.mtx --rhs load.npy --solution displacement.npy";
  }
  const char* summary() const override {
    return "factor a symmetric positive definite matrix, and solve with it";
  }
  bool has_tasks() const override { return true; }
  bool has_team_kernels() const override { return true; }
  std::span<const Preset> presets() const override { return kPresets; }
  std::size_t usual_n() const override { return kUsualOrder; }
  std::size_t usual_tile() const override { return 0; }
  void add_options(CommandOptions& options) override {
    const CommandOption rhs =
        options.add("--rhs", files_.rhs, "Also solve A x = b for the b in this file");
    options.add("--solution", files_.solution, "Write x to this file").needs(rhs);
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

std::unique_ptr<Application> make_cholesky() { return std::make_unique<CholeskyApplication>(); }

}  // namespace weir::apps
