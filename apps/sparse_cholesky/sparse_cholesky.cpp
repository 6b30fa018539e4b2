#include "sparse_cholesky/sparse_cholesky.hpp"

#include <optional>
#include <string>
#include <utility>

#include "common/command_options.hpp"
#include "common/dense.hpp"
#include "common/tiled_matrix.hpp"
#include "sparse_cholesky/front_kernels.hpp"
#include "sparse_cholesky/front_owners.hpp"
#include "sparse_cholesky/sparse_system.hpp"

namespace weir::apps {

namespace {

constexpr std::size_t kUsualEdge = 32;
constexpr std::size_t kUsualTile = 256;
constexpr std::size_t kLeaf = 64;  ///< cells of the smallest boxes

/// Files that only this application has; "" for none.
struct SystemFiles {
  std::string rhs, solution;
};

/// Where a front is cut into tiles, from its pivots on; the border begins at a cut.
struct Cuts {
  Cuts(const Front& front, std::size_t tile) {
    cut(0, front.pivots, tile);
    pivots = at.size() - 1;
    if (front.border() > 0) cut(front.pivots, front.order(), tile);
  }

  std::size_t tiles() const noexcept { return at.size() - 1; }
  std::size_t length(std::size_t i) const noexcept { return at[i + 1] - at[i]; }

  std::vector<std::size_t> at = {0};
  std::size_t pivots = 0;  ///< tiles of pivots

 private:
  void cut(std::size_t begin, std::size_t end, std::size_t tile) {
    const std::size_t parts = (end - begin + tile - 1) / tile;
    for (std::size_t i = 1; i <= parts; ++i) at.push_back(begin + (end - begin) * i / parts);
  }
};

template <class T>
class SparseCholesky final : public Workload {
 public:
  SparseCholesky(AssemblyTree tree, std::size_t tile, const weir::Runtime& runtime,
                 const AppStreams& app_streams, const weir::Queue* queue)
      : system_(std::move(tree)),
        tile_(tile),
        queue_(queue),
        tall_(queue == nullptr || app_streams.share_memory()),
        kernels_(runtime),
        places_(runtime.wrap(system_.places, "places")),
        values_(runtime.wrap(system_.values, "values")) {
    if (!system_.map.empty()) map_ = runtime.wrap(system_.map, "map");
    std::size_t borders = 0;
    for (std::size_t f = 0; f < fronts(); ++f) {
      Matrix<T>& memory = system_.fronts[f];
      buffers_.push_back(runtime.wrap(memory.data(), memory.size() * sizeof(T),
                                      fmt::format("front {}", f).c_str()));
      cuts_.emplace_back(front(f), tile);
      first_border_.push_back(borders);
      borders += cuts_[f].tiles() - cuts_[f].pivots;
    }
    borders_.emplace(borders, app_streams.size());
    const std::vector<std::size_t> owners = deal_fronts(system_.tree, app_streams);
    for (std::size_t f = 0; f < fronts(); ++f) {
      bound_.push_back(cuts_[f].tiles() > 2 ? &app_streams.urgent(owners[f])
                                            : &app_streams.any(owners[f], f));
    }
  }

  /// Makes finish() solve for these right-hand sides and save() write the solution, "": nowhere.
  void solve_later(Matrix<T> rhs, std::string solution) {
    rhs_ = std::move(rhs);
    solution_file_ = std::move(solution);
  }

  std::size_t n() const override { return system_.order(); }
  std::size_t tile() const override { return tile_; }
  /// The fronts of the tree.
  std::size_t tiles() const override { return fronts(); }
  double operations() const override { return system_.tree.operations(); }
  double gemm_peak(const ReferenceBlas& blas) const override {
    return blas.gemm_peak<T>(system_.tree.largest_front());
  }

  void reset() override { borders_->reset(); }

  /// Each front belongs to one stream, in which operands order its tiles. Fronts of more tiles than
  /// one for the pivots and one for the border are near the root: they are urgent.
  void enqueue() override {
    if (queue_ != nullptr) return submit();
    for (std::size_t f = 0; f < fronts(); ++f) {
      upload_entries(f);
      assemble(*bound_[f], f);
      for (std::size_t k = 0; k < cuts_[f].pivots; ++k) eliminate(*bound_[f], f, k);
      hand_over(f);
    }
  }

  void finish() override { solution_ = system_.solve(rhs_); }
  void save() const override {
    if (!solution_file_.empty()) write_matrix(solution_file_, solution_);
  }
  std::vector<Verification> verify(const ReferenceBlas&) const override {
    return {system_.solution_error(rhs_, solution_)};
  }

 private:
  /// The same as tasks, in the order of a program for one processor.
  void submit() {
    for (std::size_t f = 0; f < fronts(); ++f) {
      const Tasks tasks{*queue_, cuts_[f].tiles() > 2 ? 1 : 0};
      assemble(tasks, f);
      for (std::size_t k = 0; k < cuts_[f].pivots; ++k) eliminate(tasks, f, k);
    }
  }

  std::size_t fronts() const noexcept { return system_.fronts.size(); }
  const Front& front(std::size_t f) const { return system_.tree.fronts[f]; }

  /// Tiles [i, end) of column j of a front.
  weir::Region region(std::size_t f, std::size_t i, std::size_t end, std::size_t j) const {
    return columns(f, cuts_[f].at[i], cuts_[f].at[end], cuts_[f].at[j], cuts_[f].length(j));
  }
  weir::Region region(std::size_t f, std::size_t i, std::size_t j) const {
    return region(f, i, i + 1, j);
  }
  /// Column j of tiles as it is assembled: streams name the used part of it, tasks all of it,
  /// because then its leading dimension is the same in every memory.
  weir::Region column(std::size_t f, std::size_t j) const {
    return region(f, top(j), cuts_[f].tiles(), j);
  }
  std::size_t top(std::size_t j) const noexcept { return queue_ == nullptr ? j : 0; }
  weir::Region columns(std::size_t f, std::size_t row, std::size_t end, std::size_t column,
                       std::size_t count) const {
    return buffers_[f].template tile<T>(row, column, end - row, count, front(f).order());
  }

  /// Copies the operands that assemble() reads to the memory of a front's stream.
  void upload_entries(std::size_t f) {
    const weir::Stream& stream = bound_[f]->stream;
    const std::size_t first = system_.first_entry[f], count = system_.first_entry[f + 1] - first;
    stream.upload(places_.elements<std::int32_t>(2 * first, 2 * count));
    stream.upload(values_.elements<T>(first, count));
    for (const std::size_t child : front(f).children) stream.upload(map_of(child, 0));
  }

  /// Adds up the entries of the pivots' columns and the contributions of the children.
  template <class To>  // Stream or Tasks
  void assemble(const To& to, std::size_t f) {
    for (std::size_t j = 0; j < cuts_[f].tiles(); ++j) {
      to.run(kernels_.set, {weir::write(column(f, j))}, {0}, name("zero", f, j).c_str());
      if (j < cuts_[f].pivots) add_entries(to, f, j);
      for (const std::size_t child : front(f).children) extend_add(to, f, j, child);
    }
  }

  weir::Region map_of(std::size_t child, std::size_t from) const {
    return map_.elements<std::int32_t>(system_.first_of_map[child] + from,
                                       front(child).border() - from);
  }

  template <class To>  // Stream or Tasks
  void add_entries(const To& to, std::size_t f, std::size_t j) {
    const std::size_t begin = entry_of_column(f, cuts_[f].at[j]);
    const std::size_t count = entry_of_column(f, cuts_[f].at[j + 1]) - begin;
    to.run(kernels_.add_entries,
           {weir::readwrite(column(f, j)),
            weir::read(places_.elements<std::int32_t>(2 * begin, 2 * count)),
            weir::read(values_.elements<T>(begin, count))},
           {front(f).order(), cuts_[f].at[top(j)], cuts_[f].at[j], count},
           name("entries", f, j).c_str());
  }

  /// Returns the first entry of a front that is in the column or behind it.
  std::size_t entry_of_column(std::size_t f, std::size_t column) const {
    std::size_t low = system_.first_entry[f], high = system_.first_entry[f + 1];
    while (low < high) {
      const std::size_t middle = low + (high - low) / 2;
      const bool before = static_cast<std::size_t>(system_.places[2 * middle + 1]) < column;
      (before ? low : high) = before ? middle + 1 : middle;
    }
    return low;
  }

  /// Adds those columns of a child's contribution that belong to column j of tiles.
  template <class To>  // Stream or Tasks
  void extend_add(const To& to, std::size_t f, std::size_t j, std::size_t child) {
    const auto map = system_.map.begin() + static_cast<std::ptrdiff_t>(system_.first_of_map[child]);
    const auto end = map + static_cast<std::ptrdiff_t>(front(child).border());
    const auto offset_of = [&](std::size_t cut) {
      const auto found = std::lower_bound(map, end, static_cast<std::int32_t>(cuts_[f].at[cut]));
      return static_cast<std::size_t>(found - map);
    };
    const std::size_t begin = offset_of(j), count = offset_of(j + 1) - begin;
    if (count == 0) return;
    if (queue_ == nullptr) fetch_border(*bound_[f], child, begin, begin + count);
    const std::size_t order = front(child).order(), first = front(child).pivots + begin;
    const std::size_t skip = queue_ == nullptr ? 0 : first;  // see column()
    to.run(kernels_.extend_add,
           {weir::readwrite(column(f, j)),
            weir::read(columns(child, first - skip, order, first, count)),
            weir::read(map_of(child, begin))},
           {front(f).order(), order, cuts_[f].at[top(j)], cuts_[f].at[j], skip, order - first},
           name("extend", child, j).c_str());
  }

  /// Makes columns [from, to) of a contribution ready for the next action of a stream.
  void fetch_border(const AppStream& app_stream, std::size_t f, std::size_t from, std::size_t to) {
    const Cuts& cuts = cuts_[f];
    for (std::size_t j = cuts.pivots; j < cuts.tiles(); ++j) {
      const bool touched =
          cuts.at[j] < front(f).pivots + to && front(f).pivots + from < cuts.at[j + 1];
      if (touched) borders_->fetch(app_stream, border(f, j), region(f, j, cuts.tiles(), j));
    }
  }
  std::size_t border(std::size_t f, std::size_t j) const {
    return first_border_[f] + j - cuts_[f].pivots;
  }

  /// Eliminates the pivots of tile k.
  template <class To>  // Stream or Tasks
  void eliminate(const To& to, std::size_t f, std::size_t k) {
    const std::size_t tiles = cuts_[f].tiles();
    const auto above = static_cast<std::int64_t>(front(f).rows[cuts_[f].at[k]]);
    to.run(kernels_.potrf, {weir::readwrite(region(f, k, k))}, {'L', above},
           name("potrf", f, k).c_str());
    for (std::size_t i = k + 1; i < tiles; ++i) {
      to.run(kernels_.trsm, {weir::read(region(f, k, k)), weir::readwrite(region(f, i, k))},
             {'R', 'L', 'T', 'N', T{1}}, name("trsm", f, i).c_str());
    }
    for (std::size_t j = k + 1; j < tiles; ++j) {
      to.run(kernels_.syrk, {weir::read(region(f, j, k)), weir::readwrite(region(f, j, j))},
             {'L', 'N', T{-1}, T{1}}, name("syrk", f, j).c_str());
      for (std::size_t i = j + 1, end = tiles; i < tiles; i = end) {
        if (!tall_) end = i + 1;
        to.run(kernels_.gemm,
               {weir::read(region(f, i, end, k)), weir::read(region(f, j, k)),
                weir::readwrite(region(f, i, end, j))},
               {'N', 'T', T{-1}, T{1}}, name("gemm", f, j).c_str());
      }
    }
  }

  /// Copies the factor to host memory and makes the contribution available to the parent.
  void hand_over(std::size_t f) {
    const AppStream& app_stream = *bound_[f];
    app_stream.stream.download(columns(f, 0, front(f).order(), 0, front(f).pivots));
    for (std::size_t j = cuts_[f].pivots; j < cuts_[f].tiles(); ++j) {
      const weir::Region column = region(f, j, cuts_[f].tiles(), j);
      borders_->wrote(app_stream, border(f, j),
                      app_stream.stream.sync({}, {&column, 1}, WEIR_SYNC_SCOPE_OPERANDS));
    }
  }

  static std::string name(const char* what, std::size_t f, std::size_t tile) {
    return fmt::format("{} {}:{}", what, f, tile);
  }

  SparseSystem<T> system_;
  std::size_t tile_;
  const weir::Queue* queue_;  ///< null: streams
  bool tall_;                 ///< products are as tall as a front allows
  FrontKernels<T> kernels_;
  weir::Buffer places_, values_, map_;
  std::vector<weir::Buffer> buffers_;  ///< of each front
  std::vector<Cuts> cuts_;
  std::vector<std::size_t> first_border_;  ///< of each front, in borders_
  std::optional<TileDirectory> borders_;   ///< columns of tiles of contributions
  std::vector<const AppStream*> bound_;    ///< of each front
  Matrix<T> rhs_, solution_;
  std::string solution_file_;
};

/// Throws InputError for a grid whose fronts do not fit the machine's memory.
template <class T>
AssemblyTree dissect(std::size_t n) {
  const auto check = [&](double elements) {
    const double needed = elements * sizeof(T),
                 available = 2.0 * static_cast<double>(half_of_memory());
    if (needed <= available) return;
    fail_input(
        "a grid of {0} x {0} x {0} cells needs {1:.1f} GiB of memory and the machine has {2:.1f}: "
        "choose a smaller --n",
        n, needed / 0x1p30, available / 0x1p30);
  };
  check(std::pow(static_cast<double>(n), 4));  // of the root alone
  AssemblyTree tree = dissect_grid(n, kLeaf);
  check(static_cast<double>(tree.elements()));
  return tree;
}

template <class T>
Matrix<T> read_or_generate(const std::string& file, std::size_t order, std::uint64_t seed) {
  if (file.empty()) {
    Matrix<T> rhs(order, 1);
    fill_random(rhs, seed);
    return rhs;
  }
  Matrix<T> rhs = read_finite_matrix<T>(file);
  if (rhs.rows() != order) {
    fail_input("{}: the right-hand side is {} x {}: expected {} rows, one for each cell", file,
               rhs.rows(), rhs.columns(), order);
  }
  return rhs;
}

template <class T>
std::unique_ptr<Workload> prepare_in(const Parameters& parameters, const SystemFiles& files,
                                     const weir::Runtime& runtime, const AppStreams& app_streams) {
  if (!files.solution.empty()) check_output_format(files.solution);
  AssemblyTree tree = dissect<T>(parameters.n > 0 ? parameters.n : kUsualEdge);
  Matrix<T> rhs = read_or_generate<T>(files.rhs, tree.order(), parameters.seed);
  const std::size_t largest = tree.largest_front();
  auto workload = std::make_unique<SparseCholesky<T>>(
      std::move(tree), choose_tile(largest, parameters.tile, parameters.tiles, kUsualTile), runtime,
      app_streams, parameters.queue);
  workload->solve_later(std::move(rhs), files.solution);
  return workload;
}

class SparseCholeskyApplication final : public Application {
 public:
  const char* name() const override { return "sparse-cholesky"; }
  const char* example() const override {
    return "weir run sparse-cholesky --n 32 --policy finish --verify";
  }
  const char* summary() const override {
    return "factor the Laplacian of a grid of --n cells an edge by fronts, and solve with it";
  }
  bool has_tasks() const override { return true; }
  std::size_t usual_n() const override { return kUsualEdge; }
  std::size_t usual_tile() const override { return kUsualTile; }
  bool runs_on_ranks() const override { return false; }
  bool uses(std::string_view option) const override {
    return option != "--input" && option != "--output";
  }
  void add_options(CommandOptions& options) override {
    options.add("--rhs", files_.rhs, "Solve for the b in this file, x fastest [random]");
    options.add("--solution", files_.solution, "Write the solution to this file");
  }
  std::unique_ptr<Workload> prepare(const Parameters& parameters, const weir::Runtime& runtime,
                                    const AppStreams& app_streams) override {
    for (const std::string& file : {parameters.input, parameters.output}) {
      if (file.empty()) continue;
      fail_input(
          "'{}': sparse-cholesky generates its matrix and writes no factor: use --n, --rhs "
          "and --solution",
          file);
    }
    return parameters.single ? prepare_in<float>(parameters, files_, runtime, app_streams)
                             : prepare_in<double>(parameters, files_, runtime, app_streams);
  }

 private:
  SystemFiles files_;
};

}  // namespace

std::unique_ptr<Application> make_sparse_cholesky() {
  return std::make_unique<SparseCholeskyApplication>();
}

}  // namespace weir::apps
