#include "kmeans/kmeans.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <clusters.wk.h>
#include "common/command_options.hpp"
#include "common/counted.hpp"
#include "common/csv.hpp"
#include "common/dense.hpp"
#include "common/real_kernel.hpp"
#include "common/tiled_matrix.hpp"

#define KERNEL_FILE "kmeans/clusters.wk"
#include "common/real_kernels.inc"

namespace weir::apps {

namespace {

constexpr std::size_t kMostClusters = 1000, kMostFeatures = 10000;
constexpr Preset kPresets[] = {{"tiny", 10000, 1500, 0, 10},
                               {"small", 100000, 10000, 0, 20},
                               {"paper", 1120000, 20000, 0, 100}};

struct KmeansOptions {
  std::size_t clusters = 8, features = 34;
  std::string labels;  ///< file, "": none
};

std::size_t groups_of(std::size_t points) {
  return weir::group_count(points, static_cast<std::size_t>(CHUNK));
}

template <class T>
struct KmeansKernels {
  KmeansKernels(const weir::Runtime& runtime, weir_kernel_shape shape)
      : labels(register_kernel<T>(
            runtime, {"kmeans.labels", HOST_KERNELS(kmeans_labels), clusters_wk, "clusters.wk"},
            shape,
            [](const weir_call* arguments) {
              const weir::Call call(arguments);
              const double numbers = call.scalar<double>(0) * call.scalar<double>(2);
              return weir_cost{3 * numbers * call.scalar<double>(3), sizeof(T) * numbers};
            },
            [](const weir::Call& call) {
              return weir::Groups{weir::group_count(call.scalar<std::size_t>(0), WIDTH)};
            })),
        sums(register_kernel<T>(
            runtime, {"kmeans.sums", HOST_KERNELS(kmeans_sums), clusters_wk, "clusters.wk"}, shape,
            [](const weir_call* arguments) {
              const weir::Call call(arguments);
              const double numbers = call.scalar<double>(0) * call.scalar<double>(2);
              return weir_cost{numbers, sizeof(T) * numbers};
            },
            [](const weir::Call& call) {
              const auto points = call.scalar<std::size_t>(0);
              return weir::Groups{static_cast<std::uint32_t>(groups_of(points))};
            })),
        fold(register_kernel<T>(
            runtime, {"kmeans.fold", HOST_KERNELS(kmeans_fold), clusters_wk, "clusters.wk"},
            WEIR_KERNEL_SHAPE_SERIAL,
            [](const weir_call* call) {
              const auto numbers = static_cast<double>(elements<T>(weir::Call(call), 0));
              return weir_cost{numbers, sizeof(T) * numbers};
            },
            [](const weir::Call& call) {
              return weir::Groups{weir::group_count(call.scalar<std::size_t>(0), WIDTH)};
            })),
        move(register_kernel<T>(
            runtime, {"kmeans.move", HOST_KERNELS(kmeans_move), clusters_wk, "clusters.wk"},
            WEIR_KERNEL_SHAPE_SERIAL,
            [](const weir_call* arguments) {
              const weir::Call call(arguments);
              const auto numbers = static_cast<double>(elements<T>(call, 2));
              const double parts = call.scalar<double>(2);
              return weir_cost{(2 * parts + 1) * numbers, (parts + 2) * sizeof(T) * numbers};
            },
            [](const weir::Call& call) {
              return weir::Groups{weir::group_count(elements<T>(call, 2), WIDTH)};
            })) {}

  weir::Kernel labels;  ///< points, centres read; labels write
  weir::Kernel sums;    ///< points, labels read; sums of parts write
  weir::Kernel fold;    ///< sums of parts read; total read-write
  weir::Kernel move;    ///< totals, centres read; next centres write
};

/// The same iteration one point after the other, in double.
template <class T>
class Reference {
 public:
  Reference(const Matrix<T>& points, std::size_t clusters)
      : points_(points), centres_(points.columns(), clusters) {
    for (std::size_t c = 0; c < clusters; ++c) {
      for (std::size_t f = 0; f < points.columns(); ++f) centres_(f, c) = points(c, f);
    }
  }

  /// A column for each centre.
  Matrix<double>& centres() { return centres_; }
  double square(std::size_t point, std::size_t centre) const {
    double sum = 0;
    for (std::size_t f = 0; f < points_.columns(); ++f) {
      const double difference = points_(point, f) - centres_(f, centre);
      sum += difference * difference;
    }
    return sum;
  }
  std::size_t nearest(std::size_t point) const {
    std::size_t best = 0;
    double least = square(point, 0);
    for (std::size_t c = 1; c < centres_.columns(); ++c) {
      const double other = square(point, c);
      if (other < least) best = c;
      least = std::min(least, other);
    }
    return best;
  }
  void step() {
    Matrix<double> sums(centres_.rows(), centres_.columns());
    std::vector<double> numbers(centres_.columns(), 0);
    for (std::size_t i = 0; i < points_.rows(); ++i) {
      const std::size_t c = nearest(i);
      for (std::size_t f = 0; f < points_.columns(); ++f) sums(f, c) += points_(i, f);
      ++numbers[c];
    }
    for (std::size_t c = 0; c < numbers.size(); ++c) {
      if (numbers[c] == 0) continue;
      for (std::size_t f = 0; f < sums.rows(); ++f) centres_(f, c) = sums(f, c) / numbers[c];
    }
  }

 private:
  const Matrix<T>& points_;
  Matrix<double> centres_;
};

template <class T>
class Kmeans final : public Workload {
 public:
  Kmeans(Matrix<T> points, const KmeansOptions& options, std::size_t tile,
         const Parameters& parameters, const weir::Runtime& runtime, const AppStreams& app_streams)
      : points_(std::move(points)),
        clusters_(options.clusters),
        iterations_(parameters.iterations),
        transform_(parameters.transform),
        output_(parameters.output),
        labels_file_(options.labels),
        tile_(tile),
        all_streams_(app_streams),
        streams_(app_streams.spread((points_.rows() + tile - 1) / tile)),
        gatherers_(find_gatherers()),
        labels_(points_.rows(), 1),
        centres_(features() * clusters_, iterations_ + 1),
        sums_(entries() * groups_of(tile), streams_.size()),
        totals_(entries() * gatherers_.size(), 1),
        kernels_(runtime, app_streams.shape_for(streams_.size())),
        point_tiles_(runtime, points_, tile, features(), app_streams.size(), "points"),
        label_tiles_(runtime, labels_, tile, 1, app_streams.size(), "labels"),
        centre_tiles_(runtime, centres_, centres_.rows(), 1, app_streams.size(), "centres"),
        sum_tiles_(runtime, sums_, sums_.rows(), 1, app_streams.size(), "sums"),
        total_tiles_(runtime, totals_, entries(), 1, app_streams.size(), "totals") {}

  std::size_t n() const override { return points_.rows(); }
  std::size_t tile() const override { return tile_; }
  std::size_t tiles() const override { return streams_.size(); }
  std::size_t iterations() const override { return iterations_; }
  double operations() const override {
    return 3 * static_cast<double>(points_.size() * clusters_ * (iterations_ + 1));
  }
  double traffic() const override {
    return sizeof(T) * static_cast<double>(points_.size() * (iterations_ + 1));
  }

  /// The first points are the first centres.
  void reset() override {
    for (std::size_t c = 0; c < clusters_; ++c) {
      for (std::size_t f = 0; f < features(); ++f) centres_(c * features() + f, 0) = points_(c, f);
    }
    for (auto* tiles : {&point_tiles_, &label_tiles_, &centre_tiles_, &sum_tiles_, &total_tiles_}) {
      tiles->reset();
    }
  }

  void enqueue() override {
    for (std::size_t step = 0; step < iterations_; ++step) {
      for (std::size_t i = 0; i < tiles(); ++i) {
        find_labels(i, step);
        add_up(i);
        if (transform_) fold(i);
      }
      synchronize();
      for (std::size_t i = 0; i < tiles() && !transform_; ++i) fold(i);
      synchronize();
      move_centres(step);
      synchronize();
    }
    for (std::size_t i = 0; i < tiles(); ++i) {
      find_labels(i, iterations_);
      label_tiles_.collect(i, 0);
    }
    centre_tiles_.collect(0, iterations_);
  }

  void finish() override {
    std::vector<std::size_t> numbers(clusters_, 0);
    inertia_ = 0;
    for (std::size_t i = 0; i < n(); ++i) {
      const auto label = static_cast<std::size_t>(labels_(i, 0));
      ++numbers[label];
      for (std::size_t f = 0; f < features(); ++f) {
        const double difference =
            static_cast<double>(points_(i, f)) - centres_(label * features() + f, iterations_);
        inertia_ += difference * difference;
      }
    }
    empty_ = static_cast<std::size_t>(std::count(numbers.begin(), numbers.end(), 0));
  }
  std::vector<Figure> figures() const override {
    return {{"sum of squared distances", inertia_},
            {"clusters without points", static_cast<double>(empty_)}};
  }
  /// Centres: a row for each. Labels: counted from 0.
  void save() const override {
    if (!labels_file_.empty()) write_matrix(labels_file_, labels_);
    if (output_.empty()) return;
    Matrix<T> centres(clusters_, features());
    for (std::size_t c = 0; c < clusters_; ++c) {
      for (std::size_t f = 0; f < features(); ++f) {
        centres(c, f) = centres_(c * features() + f, iterations_);
      }
    }
    write_matrix(output_, centres);
  }

  std::vector<Verification> verify(const ReferenceBlas&) const override {
    Reference<T> reference(points_, clusters_);
    for (std::size_t step = 0; step < iterations_; ++step) reference.step();
    double error = 0, most = 0;
    for (std::size_t c = 0; c < clusters_; ++c) {
      for (std::size_t f = 0; f < features(); ++f) {
        const double expected = reference.centres()(f, c);
        const double found = centres_(c * features() + f, iterations_);
        const double wrong = std::abs(found - expected);
        error = worse(error, wrong);
        most = std::max(most, std::abs(expected));
        reference.centres()(f, c) = found;
      }
    }
    constexpr double kLimit = 1000;
    const auto rounding = static_cast<double>(std::numeric_limits<T>::epsilon());
    const double scale = rounding * static_cast<double>(iterations_) * most;
    return {{"max |centre - reference| / (iterations eps max |reference|)",
             scale > 0 ? error / scale : error, kLimit},
            {"max (square - least square) / (eps features max |x|^2)", wrong_labels(reference),
             kLimit}};
  }

 private:
  std::size_t features() const { return points_.columns(); }
  /// Sums of features, and the number of points, of all clusters.
  std::size_t entries() const { return clusters_ * (features() + 1); }
  std::size_t points_in(std::size_t i) const { return std::min(tile_, n() - i * tile_); }
  void synchronize() const {
    if (!transform_) all_streams_.synchronize();
  }

  const AppStream& gatherer(std::size_t part) const { return *streams_[gatherers_[part]]; }
  /// The first tile in each memory.
  std::vector<std::size_t> find_gatherers() const {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      const auto here = [&](std::size_t first) {
        return streams_[first]->memory == streams_[i]->memory;
      };
      if (std::none_of(found.begin(), found.end(), here)) found.push_back(i);
    }
    return found;
  }
  std::size_t part_of(std::size_t i) const {
    std::size_t part = 0;
    while (gatherer(part).memory != streams_[i]->memory) ++part;
    return part;
  }

  void find_labels(std::size_t i, std::size_t step) {
    const AppStream& app_stream = *streams_[i];
    const weir::Operand points = point_tiles_.read(app_stream, i, 0),
                        centres = centre_tiles_.read(app_stream, 0, step);
    label_tiles_.wrote(app_stream, i, 0,
                       app_stream.run(kernels_.labels, {points, centres, label_tiles_.write(i, 0)},
                                      {points_in(i), n(), features(), clusters_}));
  }
  void add_up(std::size_t i) {
    const AppStream& app_stream = *streams_[i];
    const weir::Operand points = point_tiles_.read(app_stream, i, 0),
                        labels = label_tiles_.read(app_stream, i, 0);
    sum_tiles_.wrote(app_stream, 0, i,
                     app_stream.run(kernels_.sums, {points, labels, sum_tiles_.write(0, i)},
                                    {points_in(i), n(), features(), clusters_}));
  }

  /// Adds the sums of a tile to those of its memory. No tile is an iteration ahead.
  void fold(std::size_t i) {
    const std::size_t part = part_of(i);
    const AppStream& app_stream = gatherer(part);
    const bool first = gatherers_[part] == i;
    const weir::Operand sums = sum_tiles_.read(app_stream, 0, i);
    total_tiles_.wrote(
        app_stream, part, 0,
        app_stream.run(kernels_.fold, {sums, weir::readwrite(total_tiles_.region(part, 0))},
                       {entries(), groups_of(points_in(i)), first ? 1 : 0}));
  }

  /// On one stream, of which the others get the centres.
  void move_centres(std::size_t step) {
    const AppStream& app_stream = gatherer(0);
    const weir::Operand totals = total_tiles_.read(app_stream, {0, gatherers_.size()}, 0);
    const weir::Operand centres = centre_tiles_.read(app_stream, 0, step);
    centre_tiles_.wrote(
        app_stream, 0, step + 1,
        app_stream.run(kernels_.move, {totals, centres, centre_tiles_.write(0, step + 1)},
                       {features(), clusters_, gatherers_.size()}));
  }

  /// How much nearer another centre is than that of a point's label.
  double wrong_labels(const Reference<T>& found) const {
    double error = 0, most = 0;
    for (std::size_t i = 0; i < points_.size(); ++i) {
      most = std::max(most, std::abs(static_cast<double>(points_.data()[i])));
    }
    for (std::size_t i = 0; i < n(); ++i) {
      const double excess = found.square(i, static_cast<std::size_t>(labels_(i, 0))) -
                            found.square(i, found.nearest(i));
      error = worse(error, excess);
    }
    const auto rounding = static_cast<double>(std::numeric_limits<T>::epsilon());
    const double scale = rounding * static_cast<double>(features()) * most * most;
    return scale > 0 ? error / scale : error;
  }

  Matrix<T> points_;
  std::size_t clusters_, iterations_;
  bool transform_;
  std::string output_, labels_file_;
  std::size_t tile_;
  const AppStreams& all_streams_;
  std::vector<const AppStream*> streams_;
  std::vector<std::size_t> gatherers_;  ///< tiles whose streams add up the sums in their memory
  Matrix<T> labels_;
  Matrix<T> centres_;  ///< a column for each iteration
  Matrix<T> sums_;     ///< a column for each tile
  Matrix<T> totals_;   ///< of each memory
  KmeansKernels<T> kernels_;
  TiledMatrix<T> point_tiles_, label_tiles_, centre_tiles_, sum_tiles_, total_tiles_;
  double inertia_ = 0;
  std::size_t empty_ = 0;
};

/// Points around as many random middles as there are clusters.
template <class T>
Matrix<T> generate(const Parameters& parameters, const KmeansOptions& options) {
  constexpr double kSpread = 0.5;
  Matrix<T> points = make_matrix<T>(parameters.n, options.features, 1);
  if (!parameters.computed) return points;
  std::mt19937_64 random(parameters.seed);
  std::uniform_real_distribution<double> unit(0, 1);
  Matrix<double> middles(options.features, options.clusters);
  std::generate_n(middles.data(), middles.size(), [&] { return unit(random); });
  for (std::size_t i = 0; i < parameters.n; ++i) {
    const std::size_t middle = random() % options.clusters;
    for (std::size_t f = 0; f < options.features; ++f) {
      points(i, f) = static_cast<T>(middles(f, middle) + kSpread * (unit(random) - 0.5));
    }
  }
  return points;
}

template <class T>
std::unique_ptr<Workload> prepare_in(const Parameters& parameters, const KmeansOptions& options,
                                     const weir::Runtime& runtime, const AppStreams& app_streams) {
  for (const std::string& file : {parameters.output, options.labels}) {
    if (!file.empty()) check_output_format(file);
  }
  Matrix<T> points =
      parameters.input.empty() ? generate<T>(parameters, options) : read_table<T>(parameters.input);
  if (points.rows() < options.clusters) {
    fail_input("--clusters {}: there are only {} points: choose fewer clusters", options.clusters,
               points.rows());
  }
  if (points.columns() > kMostFeatures) {
    fail_input("{}: found points with {}, expected at most {}", parameters.input,
               counted(points.columns(), "column"), kMostFeatures);
  }
  const std::size_t tile = choose_tile(points.rows(), parameters.tile, parameters.tiles, 0);
  return std::make_unique<Kmeans<T>>(std::move(points), options, tile, parameters, runtime,
                                     app_streams);
}

class KmeansApplication final : public Application {
 public:
  const char* name() const override { return "kmeans"; }
  const char* example() const override {
    return "weir run kmeans --input table.csv --clusters 5 --labels l.npy";
  }
  const char* summary() const override { return "find clusters of --n points"; }
  bool iterates() const override { return true; }
  std::span<const Preset> presets() const override { return kPresets; }
  const char* input_help() const override {
    return "Points, a line or row for each: CSV, .npy or Matrix Market";
  }
  const char* output_help() const override {
    return "File for the centres, a row for each: .mtx or .npy";
  }
  void add_options(CommandOptions& options) override {
    options.add("--clusters", options_.clusters, "Number of clusters to find [8]")
        .within(std::size_t{1}, kMostClusters);
    options.add("--features", options_.features, "Coordinates of each generated point [34]")
        .within(std::size_t{1}, kMostFeatures);
    options.add("--labels", options_.labels, "File for the cluster of each point: .mtx or .npy");
  }
  void register_kernels(const Parameters& parameters, const weir::Runtime& runtime) const override {
    if (parameters.single) {
      KmeansKernels<float>(runtime, WEIR_KERNEL_SHAPE_SERIAL);
    } else {
      KmeansKernels<double>(runtime, WEIR_KERNEL_SHAPE_SERIAL);
    }
  }
  std::unique_ptr<Workload> prepare(const Parameters& parameters, const weir::Runtime& runtime,
                                    const AppStreams& app_streams) override {
    const Parameters filled = with_usual(parameters, kPresets[1]);
    return filled.single ? prepare_in<float>(filled, options_, runtime, app_streams)
                         : prepare_in<double>(filled, options_, runtime, app_streams);
  }

 private:
  KmeansOptions options_;
};

}  // namespace

std::unique_ptr<Application> make_kmeans() { return std::make_unique<KmeansApplication>(); }

}  // namespace weir::apps
