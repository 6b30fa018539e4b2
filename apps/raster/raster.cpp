#include "raster/raster.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/command_options.hpp"
#include "common/counted.hpp"
#include "common/depth_frame.hpp"
#include "common/input_error.hpp"
#include "common/pipeline_workload.hpp"
#include "common/shared_parts.hpp"
#include "raster/bin_kernel.hpp"
#include "raster/triangles.hpp"

namespace weir::apps {

namespace {

constexpr Colour kBackground = {0, 0, 0};
constexpr std::size_t kLargestEdge = 8192, kMostPictures = 1000000, kUnderWay = 4;

struct RasterOptions {
  std::size_t width = 1024, height = 768, pictures = 100, show = 1;
  double rotation = 0;  ///< degrees from one picture to the next
  std::string chunks;   ///< "": none, a pipeline
  PipelineSwitches switches;
};

/// The result for a picture.
struct Drawn {
  std::uint64_t hash = 0;
  std::size_t covered = 0;
  bool operator==(const Drawn&) const = default;
};
Drawn drawn(const DepthFrame& frame) { return {frame.hash(), frame.covered_pixels()}; }

/// The scene.
class Scene {
 public:
  explicit Scene(const RasterOptions& options) : options_(options) {}

  LitTriangle triangle(std::size_t picture, std::size_t index) const {
    return cube_triangle(index, camera(picture));
  }
  template <class Out>
  void bin(const LitTriangle& lit, const Out& out) const {
    const Setup setup(lit, options_.width, options_.height);
    if (!setup.visible()) return;
    for (std::int32_t row = setup.rows().first; row < setup.rows().end; ++row) {
      for (std::int32_t column = setup.columns().first; column < setup.columns().end; ++column) {
        if (setup.touches(column, row)) out.put({setup.triangle(), column, row});
      }
    }
  }

  /// Draws triangle by triangle, without bins.
  Verification verify(const std::vector<Drawn>& pictures) const {
    DepthFrame frame(options_.width, options_.height);
    std::size_t different = 0;
    for (std::size_t picture = 0; picture < options_.pictures; ++picture) {
      frame.clear();
      for (std::size_t i = 0; i < kCubeTriangles; ++i) draw(triangle(picture, i), frame);
      different += drawn(frame) != pictures.at(picture);
    }
    return {"pictures that differ from those drawn without bins", static_cast<double>(different),
            0};
  }
  static Figure covered(const std::vector<Drawn>& pictures) {
    std::size_t covered = 0;
    for (const Drawn& picture : pictures) covered += picture.covered;
    return {"covered pixels", static_cast<double>(covered)};
  }
  static void describe(const std::vector<Drawn>& pictures, nlohmann::ordered_json& json) {
    json["pictures"] = nlohmann::ordered_json::array();
    for (const Drawn& picture : pictures) {
      json["pictures"].push_back(
          {{"covered", picture.covered}, {"hash", fmt::format("{:016x}", picture.hash)}});
    }
  }

 private:
  RasterCamera camera(std::size_t picture) const {
    return {options_.width, options_.height, options_.rotation * static_cast<double>(picture)};
  }

  void draw(const LitTriangle& lit, DepthFrame& frame) const {
    const Setup setup(lit, options_.width, options_.height);
    if (!setup.visible()) return;
    const auto range = [](const std::array<std::int32_t, 3>& along, std::size_t pixels) {
      const auto [least, most] = std::minmax_element(along.begin(), along.end());
      return std::pair(std::max(0, *least / 16 - 1),
                       std::min(static_cast<std::int32_t>(pixels), *most / 16 + 2));
    };
    const auto [left, right] = range(setup.triangle().x, options_.width);
    const auto [low, high] = range(setup.triangle().y, options_.height);
    for (std::int32_t y = low; y < high; ++y) {
      for (std::int32_t x = left; x < right; ++x) draw_pixel(setup.triangle(), x, y, frame);
    }
  }

  const RasterOptions& options_;
};

/// Pictures that places fetch, each drawn by one kernel.
class SharedRaster final : public Workload {
 public:
  SharedRaster(std::string output, const RasterOptions& options, const weir::Runtime& runtime,
               const AppStreams& app_streams)
      : output_(std::move(output)),
        options_(options),
        pictures_(options.pictures),
        buffer_(runtime.wrap(pictures_, "pictures")),
        kernel_(runtime.kernel("draw picture", [this](const weir::Call& call) { draw(call); })),
        shared_(runtime, app_streams) {}

  /// Pictures.
  std::size_t n() const override { return options_.pictures; }
  std::size_t tile() const override { return 0; }
  std::size_t tiles() const override { return 0; }
  double operations() const override { return 0; }

  void reset() override { std::fill(pictures_.begin(), pictures_.end(), Drawn{}); }
  void enqueue() override {
    const auto enqueue = [this](const weir::Chunk& chunk) {
      for (std::size_t i = chunk.first; i < chunk.first + chunk.count; ++i) {
        chunk.stream.compute(kernel_, {weir::write(part(i, 1))}, {static_cast<std::int64_t>(i)});
      }
      return chunk.stream.download(part(chunk.first, chunk.count));
    };
    shared_.start(n(), enqueue, {.name = "pictures", .chunks = options_.chunks.c_str()});
  }
  void await(std::chrono::nanoseconds timeout) override { shared_.wait(timeout); }
  void cancel() noexcept override { shared_.cancel(); }

  void save() const override {
    if (!output_.empty()) write_image(output_, shown_);
  }
  std::vector<Figure> figures() const override { return {Scene::covered(pictures_)}; }
  std::vector<Verification> verify(const ReferenceBlas&) const override {
    return {scene_.verify(pictures_)};
  }
  std::vector<std::pair<std::string, std::string>> remarks() const override {
    return shared_.describe();
  }
  std::string details() const override {
    nlohmann::ordered_json json = {{"form", "shared"}};
    Scene::describe(pictures_, json);
    return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  }

 private:
  weir::Region part(std::size_t first, std::size_t count) const {
    return buffer_.elements<Drawn>(first, count);
  }

  void draw(const weir::Call& call) {
    const auto picture = static_cast<std::size_t>(call.scalar<std::int64_t>(0));
    DepthFrame frame(options_.width, options_.height);
    const struct {
      DepthFrame& frame;
      void put(const BinTask& task) const { draw_bin(task, frame); }
    } out{frame};
    for (std::size_t i = 0; i < kCubeTriangles; ++i) scene_.bin(scene_.triangle(picture, i), out);
    call.span<Drawn>(0)[0] = drawn(frame);
    if (picture + 1 == options_.show && !output_.empty()) shown_ = frame.image(kBackground);
  }

  const std::string output_;
  const RasterOptions options_;
  const Scene scene_{options_};
  std::vector<Drawn> pictures_;
  weir::Buffer buffer_;
  weir::Kernel kernel_;
  SharedParts shared_;
  ColourImage shown_;
};

// What an item takes a core of an AMD EPYC, in virtual time that of a simulated host.
constexpr double kVertexNs = 6000, kRasterNs = 2000, kBlendNs = 250;

class Raster final : public PipelineWorkload {
 public:
  Raster(std::string output, const RasterOptions& options, const weir::Runtime& runtime,
         const AppStreams& app_streams)
      : PipelineWorkload(runtime, app_streams, "raster", options.switches,
                         StagePlaces::hosts_and_device),
        output_(std::move(output)),
        options_(options),
        frames_(std::min(options.pictures, kUnderWay), DepthFrame(options.width, options.height)) {
    if (device() != nullptr) {
      raster_on_device_ = bin_stage(runtime, options.width, options.height);
    }
  }

  /// Pictures.
  std::size_t n() const override { return options_.pictures; }

  void save() const override {
    if (!output_.empty()) write_image(output_, shown_);
  }
  std::vector<Figure> figures() const override { return {Scene::covered(pictures_)}; }
  std::vector<Verification> verify(const ReferenceBlas&) const override {
    return {scene_.verify(pictures_)};
  }

 private:
  DepthFrame& frame_of(std::uint64_t picture) { return frames_[picture % frames_.size()]; }

  void clear() override {
    pictures_.clear();
    for (DepthFrame& frame : frames_) frame.clear();
  }
  /// Its frame is free for another picture then.
  void complete(std::uint64_t picture) {
    DepthFrame& frame = frame_of(picture);
    pictures_.push_back(drawn(frame));
    if (picture + 1 == options_.show && !output_.empty()) shown_ = frame.image(kBackground);
    frame.clear();
  }

  weir::PipelineOptions wanted() override {
    return {.epochs = frames_.size(),
            .on_epoch = [this](std::uint64_t picture) { complete(picture); }};
  }

  void connect(const weir::Pipeline& pipeline) override {
    const auto triangles = pipeline.tunnel<LitTriangle>("triangles");
    const auto bins = pipeline.tunnel<BinTask>("bins");
    pipeline.source("scene", weir::into(triangles),
                    [this, next = std::size_t{0}](const weir::Outlet<LitTriangle>& out,
                                                  weir::StageContext context) mutable {
                      out.put(scene_.triangle(next / kCubeTriangles, next % kCubeTriangles));
                      if (++next % kCubeTriangles == 0) context.end_epoch();
                      return next < options_.pictures * kCubeTriangles;
                    });
    pipeline.stage(
        "vertex", triangles, weir::into(bins),
        [this](const LitTriangle& lit, const weir::Outlet<BinTask>& out) { scene_.bin(lit, out); },
        at(0, kVertexNs));
    if (raster_on_device_) return connect_device(pipeline, bins);
    pipeline.stage(
        "raster", bins,
        [this](const BinTask& task, weir::StageContext context) {
          draw_bin(task, frame_of(context.epoch()));
        },
        at(1, kRasterNs));
  }
  /// The device draws bins, and the host puts them together.
  void connect_device(const weir::Pipeline& pipeline, const weir::Tunnel<BinTask>& bins) {
    const auto drawn = pipeline.tunnel<DrawnBin>("drawn bins");
    connect_kernel(pipeline, "raster", bins, drawn, *raster_on_device_);
    pipeline.stage(
        "blend", drawn,
        [this](const DrawnBin& bin, weir::StageContext context) {
          blend(bin, frame_of(context.epoch()));
        },
        at(1, kBlendNs));
  }

  /// A chunk is a picture; the device draws one while the cores work on its neighbours.
  void loop(ChunkLoop& chunks) override {
    Collected<BinTask> binned(chunks.parts());
    const auto begin = [&](std::size_t picture) {
      chunks.run("vertex", kCubeTriangles, kVertexNs, [&](const ChunkPart& part) {
        const auto out = binned.outlet(part);
        for (std::size_t i = part.first; i < part.end; ++i)
          scene_.bin(scene_.triangle(picture, i), out);
      });
      if (raster_on_device_) return chunks.launch("raster", *raster_on_device_, binned.take());
      const std::vector<BinTask> tasks = binned.take();
      chunks.run("raster", tasks.size(), kRasterNs, [&](const ChunkPart& part) {
        for (std::size_t i = part.first; i < part.end; ++i) draw_bin(tasks[i], frame_of(picture));
      });
    };
    const auto end = [&](std::size_t picture) {
      if (raster_on_device_) blend_bins(chunks, frame_of(picture));
      complete(picture);
    };
    chunks.each_chunk(options_.pictures, raster_on_device_.has_value(), begin, end);
  }
  void blend_bins(ChunkLoop& chunks, DepthFrame& frame) const {
    const auto drawn = chunks.results<DrawnBin>("raster", *raster_on_device_);
    chunks.run("blend", drawn.size(), kBlendNs, [&](const ChunkPart& part) {
      for (std::size_t i = part.first; i < part.end; ++i) blend(drawn[i], frame);
    });
  }

  void describe(nlohmann::ordered_json& json) const override { Scene::describe(pictures_, json); }

  const std::string output_;
  const RasterOptions options_;
  const Scene scene_{options_};
  std::optional<DeviceStage> raster_on_device_;
  std::vector<DepthFrame> frames_;  ///< of the pictures in flight
  std::vector<Drawn> pictures_;
  ColourImage shown_;
};

class RasterApplication final : public Application {
 public:
  const char* name() const override { return "raster"; }
  const char* example() const override {
    return "weir run raster --pictures 100 --turn 3 --output cube.png --live";
  }
  bool has_tiles() const override { return false; }
  const char* summary() const override {
    return "draw pictures of a cube, each as soon as it is complete: --pictures 100 --turn 3";
  }
  bool has_precision() const override { return false; }
  bool uses(std::string_view option) const override {
    return option != "--n" && option != "--seed" && option != "--input" &&
           (option != "--streams" || options_.switches.baseline);
  }
  bool streams_in_baseline() const override { return true; }
  bool has_pipeline() const override { return true; }
  std::string help() const override { return options_.chunks == "help" ? chunk_list() : ""; }
  const char* output_help() const override { return "File for one of the pictures: .png or .ppm"; }
  void add_options(CommandOptions& options) override {
    options.add("--width", options_.width, "Width of a picture in pixels [1024]")
        .within(std::size_t{1}, kLargestEdge);
    options.add("--height", options_.height, "Height of a picture in pixels [768]")
        .within(std::size_t{1}, kLargestEdge);
    options.add("--pictures", options_.pictures, "Number of pictures [100]")
        .within(std::size_t{1}, kMostPictures);
    options
        .add("--turn", options_.rotation,
             "Degrees that the camera turns from one picture to the next [0]")
        .within(-360.0, 360.0);
    options.add("--show", options_.show, "Which picture goes to --output [1]")
        .within(std::size_t{1}, kMostPictures);
    options.add(
        "--chunk", options_.chunks,
        "Distribute pictures over the places in chunks by this policy, instead of running a "
        "pipeline; 'help' lists the policies");
    add_pipeline_switches(options, options_.switches);
  }
  void register_kernels(const Parameters&, const weir::Runtime& runtime) const override {
    bin_kernel(runtime);
  }
  std::unique_ptr<Workload> prepare(const Parameters& parameters, const weir::Runtime& runtime,
                                    const AppStreams& app_streams) override {
    if (!parameters.input.empty()) {
      fail_input("{}: raster draws one cube: leave --input out", parameters.input);
    }
    if (options_.show > options_.pictures) {
      fail_input("--show {} of {}: take one of them, or more --pictures", options_.show,
                 counted(options_.pictures, "picture"));
    }
    if (!parameters.output.empty()) check_colour_format(parameters.output);
    DepthFrame::check(options_.width, options_.height, std::min(options_.pictures, kUnderWay));
    if (!options_.chunks.empty()) {
      if (options_.switches != PipelineSwitches()) {
        throw weir::Error(WEIR_STATUS_UNSUPPORTED,
                          "--chunk makes no pipeline: leave --baseline, --overlap, "
                          "--no-batching, --batch, --in-flight, --end and --relief out");
      }
      return std::make_unique<SharedRaster>(parameters.output, options_, runtime, app_streams);
    }
    return std::make_unique<Raster>(parameters.output, options_, runtime, app_streams);
  }

 private:
  RasterOptions options_;
};

}  // namespace

std::unique_ptr<Application> make_raster() { return std::make_unique<RasterApplication>(); }

}  // namespace weir::apps
