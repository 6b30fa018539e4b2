#include "nn/nn.hpp"

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <nearest.wk.h>
#include "common/command_options.hpp"
#include "common/counted.hpp"
#include "common/csv.hpp"
#include "common/dense.hpp"
#include "common/real_kernel.hpp"
#include "common/shared_parts.hpp"
#include "common/tiled_matrix.hpp"

#define KERNEL_FILE "nn/nearest.wk"
#include "common/real_kernels.inc"

namespace weir::apps {

namespace {

constexpr std::size_t kMostWanted = 1000;
constexpr Preset kPresets[] = {
    {"tiny", 20000, 0, 7, 0}, {"small", 524288, 0, 64, 0}, {"paper", 5242880, 0, 512, 0}};

struct Query {
  double latitude = 40, longitude = 120;
  std::size_t wanted = 10;
  std::string chunks;  ///< how many tiles a place fetches at once, "": they are dealt to streams
};

/// A record and how far it is from the target.
struct Neighbour {
  double distance;
  std::size_t record;

  bool operator<(const Neighbour& other) const noexcept {
    return distance != other.distance ? distance < other.distance : record < other.record;
  }
};

std::size_t groups_of(std::size_t records) {
  return weir::group_count(records, static_cast<std::size_t>(CHUNK));
}

template <class T>
weir::Kernel make_kernel(const weir::Runtime& runtime, weir_kernel_shape shape) {
  return register_kernel<T>(
      runtime, {"nn.nearest", HOST_KERNELS(nn_nearest), nearest_wk, "nearest.wk"}, shape,
      [](const weir_call* call) {
        constexpr double kOperations = 6;
        const double n = weir::Call(call).scalar<double>(0);
        return weir_cost{kOperations * n, 2 * sizeof(T) * n};
      },
      [](const weir::Call& call) {
        return weir::Groups{
            static_cast<std::uint32_t>(elements<T>(call, 1) / (2 * call.scalar<std::size_t>(4)))};
      });
}

template <class T>
class NearestNeighbours final : public Workload {
 public:
  NearestNeighbours(Matrix<T> records, const Query& query, std::size_t tile, std::string output,
                    const weir::Runtime& runtime, const AppStreams& app_streams)
      : records_(std::move(records)),
        query_(query),
        tile_(tile),
        output_(std::move(output)),
        found_(tiles() * found_in_tile(), 1),
        batch_(app_streams.batch_of(tiles(), 2 * sizeof(T) * tile)),
        streams_(app_streams.spread((tiles() + batch_ - 1) / batch_)),
        kernel_(make_kernel<T>(runtime, app_streams.shape_for(tiles()))),
        record_tiles_(runtime, records_, tile, 2, app_streams.size(), "records"),
        found_tiles_(runtime, found_, found_in_tile(), 1, app_streams.size(), "found"),
        shared_(runtime, app_streams) {}

  std::size_t n() const override { return records_.rows(); }
  std::size_t tile() const override { return tile_; }
  std::size_t tiles() const override { return (n() + tile_ - 1) / tile_; }
  double operations() const override { return 6 * static_cast<double>(n()); }
  double traffic() const override { return 2 * sizeof(T) * static_cast<double>(n()); }

  void reset() override {}
  void enqueue() override { shares() ? share() : deal(); }
  void await(std::chrono::nanoseconds timeout) override {
    if (shares()) shared_.wait(timeout);
  }
  void cancel() noexcept override { shared_.cancel(); }

  std::vector<std::pair<std::string, std::string>> remarks() const override {
    if (!shares()) return {};
    return shared_.describe();
  }

  /// Merges the results of the parts.
  void finish() override {
    std::vector<Neighbour> all;
    for (std::size_t i = 0; i < tiles(); ++i) {
      for (std::size_t group = 0; group < groups_of(tile_); ++group) {
        const T* const squares = &found_(i * found_in_tile() + group * 2 * query_.wanted, 0);
        const std::size_t first = i * tile_ + group * static_cast<std::size_t>(CHUNK);
        for (std::size_t k = 0; k < query_.wanted; ++k) {
          const T number = squares[query_.wanted + k];
          if (number < 0) break;
          all.push_back({std::sqrt(static_cast<double>(squares[k])),
                         first + static_cast<std::size_t>(number)});
        }
      }
    }
    nearest_ = smallest(std::move(all));
  }

  std::vector<Figure> figures() const override {
    return {{"nearest record", static_cast<double>(nearest_.front().record)},
            {"its distance", nearest_.front().distance}};
  }

  /// A line for each neighbour: number of the record, latitude, longitude, distance.
  void save() const override {
    if (output_.empty()) return;
    Matrix<double> lines(nearest_.size(), 4);
    for (std::size_t i = 0; i < nearest_.size(); ++i) {
      const std::size_t record = nearest_[i].record;
      lines(i, 0) = static_cast<double>(record);
      lines(i, 1) = records_(record, 0);
      lines(i, 2) = records_(record, 1);
      lines(i, 3) = nearest_[i].distance;
    }
    write_matrix(output_, lines);
  }

  /// The distances of all records, in double: those of the records that were found are the
  /// smallest.
  std::vector<Verification> verify(const ReferenceBlas&) const override {
    std::vector<Neighbour> all(n());
    for (std::size_t i = 0; i < n(); ++i) all[i] = {distance(i), i};
    const std::vector<Neighbour> expected = smallest(std::move(all));
    double error = expected.size() == nearest_.size() ? 0 : INFINITY;
    for (std::size_t i = 0; i < std::min(expected.size(), nearest_.size()); ++i) {
      error = worse(error, std::abs(distance(nearest_[i].record) - expected[i].distance));
    }
    constexpr double kLimit = 10, kDegrees = 360;
    const auto rounding = static_cast<double>(std::numeric_limits<T>::epsilon());
    return {{"max |distance - reference| / (360 eps)", error / (kDegrees * rounding), kLimit}};
  }

 private:
  bool shares() const noexcept { return !query_.chunks.empty(); }

  /// Numbers that the groups of a tile leave.
  std::size_t found_in_tile() const { return groups_of(tile_) * 2 * query_.wanted; }

  /// Enqueues consecutive tiles: one copy for all of their records, and one for all of their
  /// results.
  void search(const weir::StreamRef& stream, Rows tiles) const {
    stream.upload(record_tiles_.region(tiles, 0));
    for (std::size_t i = tiles.begin; i < tiles.end; ++i) {
      const std::size_t count = std::min(tile_, n() - i * tile_);
      stream.compute(
          kernel_, {weir::read(record_tiles_.region(i, 0)), weir::write(found_tiles_.region(i, 0))},
          {count, n(), static_cast<T>(query_.latitude), static_cast<T>(query_.longitude),
           query_.wanted});
    }
    stream.download(found_tiles_.region(tiles, 0));
  }

  void deal() const {
    for (std::size_t batch = 0; batch < streams_.size(); ++batch) {
      const std::size_t first = batch * batch_;
      search(streams_[batch]->stream, {first, std::min(first + batch_, tiles())});
    }
  }

  void share() {
    const auto enqueue = [this](const weir::Chunk& chunk) {
      search(chunk.stream, {chunk.first, chunk.first + chunk.count});
      return chunk.stream.mark();
    };
    shared_.start(tiles(), enqueue, {.name = "tiles", .chunks = query_.chunks.c_str()});
  }

  double distance(std::size_t record) const {
    return std::hypot(records_(record, 0) - query_.latitude,
                      records_(record, 1) - query_.longitude);
  }

  std::vector<Neighbour> smallest(std::vector<Neighbour> all) const {
    const std::size_t count = std::min(query_.wanted, all.size());
    std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count), all.end());
    all.resize(count);
    return all;
  }

  Matrix<T> records_;  ///< latitudes and longitudes
  Query query_;
  std::size_t tile_;
  std::string output_;
  Matrix<T> found_;                        ///< results of groups, tile by tile
  std::size_t batch_;                      ///< tiles that share one copy
  std::vector<const AppStream*> streams_;  ///< of each batch
  weir::Kernel kernel_;
  TiledMatrix<T> record_tiles_, found_tiles_;
  SharedParts shared_;
  std::vector<Neighbour> nearest_;
};

/// Over the whole earth, as hurricanes are not.
template <class T>
Matrix<T> generate(std::size_t n, const Parameters& parameters) {
  Matrix<T> records = make_matrix<T>(n, 2, 1);
  if (!parameters.computed) return records;
  std::mt19937_64 random(parameters.seed);
  std::uniform_real_distribution<double> latitude(-90, 90), longitude(-180, 180);
  for (std::size_t i = 0; i < n; ++i) {
    records(i, 0) = static_cast<T>(latitude(random));
    records(i, 1) = static_cast<T>(longitude(random));
  }
  return records;
}

template <class T>
Matrix<T> read_records(const std::string& path) {
  Matrix<T> records = read_table<T>(path);
  if (records.columns() != 2) {
    fail_input("{}: found {}, expected latitude and longitude", path,
               counted(records.columns(), "column"));
  }
  constexpr double kMost[] = {90, 360};
  constexpr const char* kNames[] = {"latitude", "longitude"};
  for (std::size_t j = 0; j < 2; ++j) {
    for (std::size_t i = 0; i < records.rows(); ++i) {
      if (std::abs(records(i, j)) <= kMost[j]) continue;
      fail_input("{}: record {}: found the {} {}, expected -{} to {} degrees", path, i + 1,
                 kNames[j], records(i, j), kMost[j], kMost[j]);
    }
  }
  return records;
}

template <class T>
std::unique_ptr<Workload> prepare_in(const Parameters& parameters, const Query& query,
                                     const weir::Runtime& runtime, const AppStreams& app_streams) {
  if (!parameters.output.empty()) check_output_format(parameters.output);
  Matrix<T> records = parameters.input.empty() ? generate<T>(parameters.n, parameters)
                                               : read_records<T>(parameters.input);
  const std::size_t tile = choose_tile(records.rows(), parameters.tile, parameters.tiles, 0);
  return std::make_unique<NearestNeighbours<T>>(std::move(records), query, tile, parameters.output,
                                                runtime, app_streams);
}

class NnApplication final : public Application {
 public:
  const char* name() const override { return "nn"; }
  const char* example() const override {
    return "weir run nn --input places.csv --latitude 48 --longitude 11";
  }
  const char* summary() const override {
    return "find the nearest of --n records of latitude and longitude";
  }
  std::span<const Preset> presets() const override { return kPresets; }
  const char* input_help() const override {
    return "Records of latitude,longitude in degrees: CSV, .npy or Matrix Market";
  }
  const char* output_help() const override {
    return "File for number, latitude, longitude and distance of the nearest: .mtx or .npy";
  }
  void add_options(CommandOptions& options) override {
    options.add("--latitude", query_.latitude, "Latitude of the target [40]").within(-90.0, 90.0);
    options.add("--longitude", query_.longitude, "Longitude of the target [120]")
        .within(-360.0, 360.0);
    options.add("--neighbours", query_.wanted, "Number of neighbours to find [10]")
        .within(std::size_t{1}, kMostWanted);
    options.add("--chunk", query_.chunks,
                "Distribute tiles over the places in chunks by this policy; 'help' lists the "
                "policies [tiles are dealt to streams]");
  }
  std::string help() const override { return query_.chunks == "help" ? chunk_list() : ""; }
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
    return filled.single ? prepare_in<float>(filled, query_, runtime, app_streams)
                         : prepare_in<double>(filled, query_, runtime, app_streams);
  }

 private:
  Query query_;
};

}  // namespace

std::unique_ptr<Application> make_nn() { return std::make_unique<NnApplication>(); }

}  // namespace weir::apps
