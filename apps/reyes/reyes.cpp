#include "reyes/reyes.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/command_options.hpp"
#include "common/depth_frame.hpp"
#include "common/input_error.hpp"
#include "common/pipeline_workload.hpp"
#include "reyes/dice_kernel.hpp"
#include "reyes/patch_stages.hpp"
#include "reyes/split_kernel.hpp"

namespace weir::apps {

namespace {

constexpr Colour kSky = {0, 0, 51};
constexpr std::size_t kLargestEdge = 8192;

struct ReyesOptions {
  std::size_t width = 1024, height = 768;
  PipelineSwitches switches;
};

// What an item takes a core of an AMD EPYC, in virtual time that of a simulated host.
constexpr std::size_t kDiceParts = 8;  ///< best on five of eight devices
constexpr double kSplitNs = 115, kDiceNs = 6100, kShadeNs = 75;

class Reyes final : public PipelineWorkload {
 public:
  Reyes(std::string output, const ReyesOptions& options, const weir::Runtime& runtime,
        const AppStreams& app_streams)
      : PipelineWorkload(runtime, app_streams, "reyes", options.switches,
                         StagePlaces::hosts_and_device),
        output_(std::move(output)),
        patches_(teapot()),
        camera_(options.width, options.height),
        frame_(options.width, options.height) {
    if (device_runs("cuda") && !baseline()) {
      split_on_device_ = split_stage(runtime, camera_, relief());
      most_diced_ = SmallPatch::kMostMicropolygons;
    }
    if (device() != nullptr) dice_on_device_ = dice_stage(runtime, camera_, most_diced_);
  }

  /// Patches.
  std::size_t n() const override { return patches_.size(); }

  void save() const override {
    if (!output_.empty()) write_image(output_, frame_.image(kSky));
  }
  std::vector<Figure> figures() const override {
    return {{"covered pixels", static_cast<double>(frame_.covered_pixels())}};
  }

  std::vector<Verification> verify(const ReferenceBlas&) const override {
    DepthFrame serial(frame_.width(), frame_.height());
    Counts counts;
    for (const Patch& patch : patches_) draw(patch, serial, counts);
    return {
        {"tasks that a recursion has more or less",
         difference("split", counts.split) + difference("dice", counts.dice) +
             difference("shade", counts.shade),
         0},
        {"pixels that differ from a recursion", static_cast<double>(frame_.differences(serial)), 0},
        {"pixels without the surface nearby", static_cast<double>(stray_pixels()), 0}};
  }

 private:
  struct Counts {
    std::uint64_t split = 0, dice = 0, shade = 0;
  };

  template <class Again, class Out>
  void split(const Patch& patch, const Again& again, const Out& out) const {
    const PatchSize size = size_of(patch, camera_);
    if (is_small(patch, size)) {
      return each_part(small_patch(patch, size), [&](const SmallPatch& part) { out.put(part); });
    }
    for (const Patch& half : halves_of(patch, size)) again.put(half);
  }
  template <class Out>
  void dice(const SmallPatch& patch, const Out& out) const {
    for (std::size_t i = 0; i < patch.micropolygons(); ++i) {
      out.put(micropolygon(patch, camera_, i));
    }
  }

  void clear() override {
    frame_.clear();
    split_by_device_ = 0;
  }
  std::uint64_t tasks_of(const weir_stage_info& stage) const override {
    const bool by_device = split_on_device_ && std::string_view(stage.name) == "split";
    return by_device ? split_by_device_ : stage.complete;
  }

  void connect(const weir::Pipeline& pipeline) override {
    const auto patches = pipeline.tunnel<Patch>("patches");
    const auto small = pipeline.tunnel<SmallPatch>("small patches");
    const auto polygons = pipeline.tunnel<Micropolygon>("micropolygons");
    pipeline.source("scene", weir::into(patches),
                    [this, next = std::size_t{0}](const weir::Outlet<Patch>& out) mutable {
                      out.put(patches_[next]);
                      return ++next < patches_.size();
                    });
    connect_split(pipeline, patches, small);
    connect_dice(pipeline, small, polygons);
    pipeline.stage(
        "shade", polygons, [this](const Micropolygon& polygon) { shade(polygon, frame_); },
        at(2, kShadeNs));
  }

  /// A resident kernel splits patches until they are small, as far as they have room in a batch;
  /// patches without room are submitted again.
  void connect_split(const weir::Pipeline& pipeline, const weir::Tunnel<Patch>& patches,
                     const weir::Tunnel<SmallPatch>& small) {
    if (!split_on_device_) {
      return pipeline.stage(
          "split", patches, weir::into(patches, small),
          [this](const Patch& patch, const weir::Outlet<Patch>& again,
                 const weir::Outlet<SmallPatch>& out) { split(patch, again, out); },
          at(0, kSplitNs));
    }
    const auto numbers = pipeline.tunnel<std::uint64_t>("numbers of patches");
    weir::KernelStageOptions options = split_on_device_->options;
    const std::size_t most = options.batch;  // for which there is scratch memory
    set_batches(options);
    options.batch = std::min(options.batch, most);
    pipeline.kernel("split", patches, weir::into(patches, small, numbers), split_on_device_->kernel,
                    *device(), options);
    weir::StageOptions alone = at(0, 0);
    alone.workers = 1;
    pipeline.stage(
        "count", numbers, [this](std::uint64_t number) { split_by_device_ += number; }, alone);
  }

  void connect_dice(const weir::Pipeline& pipeline, const weir::Tunnel<SmallPatch>& small,
                    const weir::Tunnel<Micropolygon>& polygons) {
    if (dice_on_device_) {
      return connect_kernel(pipeline, "dice", small, polygons, *dice_on_device_);
    }
    pipeline.stage(
        "dice", small, weir::into(polygons),
        [this](const SmallPatch& patch, const weir::Outlet<Micropolygon>& out) {
          dice(patch, out);
        },
        at(1, kDiceNs));
  }

  /// One chunk a generation of patches, whose size the next one has to wait for; the device dices
  /// a part of the small ones while the cores shade another.
  void loop(ChunkLoop& chunks) override {
    std::vector<Patch> patches = patches_;
    Collected<Patch> again(chunks.parts());
    Collected<SmallPatch> small(chunks.parts());
    while (!patches.empty()) {
      chunks.run("split", patches.size(), kSplitNs, [&](const ChunkPart& part) {
        const auto halves = again.outlet(part);
        const auto out = small.outlet(part);
        for (std::size_t i = part.first; i < part.end; ++i) split(patches[i], halves, out);
      });
      patches = again.take();
    }
    const std::vector<SmallPatch> all = small.take();
    const std::size_t parts = dice_on_device_ && chunks.overlaps() ? kDiceParts : 1;
    const auto part_of = [&](std::size_t i) {
      const std::size_t first = all.size() * i / parts, end = all.size() * (i + 1) / parts;
      return std::vector(all.data() + first, all.data() + end);
    };
    const auto begin = [&](std::size_t i) {
      if (dice_on_device_) chunks.launch("dice", *dice_on_device_, part_of(i));
    };
    const auto end = [&](std::size_t) {
      const std::vector<Micropolygon> polygons = diced(chunks, all);
      chunks.run("shade", polygons.size(), kShadeNs, [&](const ChunkPart& part) {
        for (std::size_t k = part.first; k < part.end; ++k) shade(polygons[k], frame_);
      });
    };
    chunks.each_chunk(parts, dice_on_device_.has_value(), begin, end);
  }

  std::vector<Micropolygon> diced(ChunkLoop& chunks, const std::vector<SmallPatch>& patches) {
    if (dice_on_device_) return chunks.results<Micropolygon>("dice", *dice_on_device_);
    Collected<Micropolygon> polygons(chunks.parts());
    chunks.run("dice", patches.size(), kDiceNs, [&](const ChunkPart& part) {
      const auto out = polygons.outlet(part);
      for (std::size_t i = part.first; i < part.end; ++i) dice(patches[i], out);
    });
    return polygons.take();
  }

  double difference(const char* stage, std::uint64_t expected) const {
    return std::abs(static_cast<double>(items(stage)) - static_cast<double>(expected));
  }

  void draw(const Patch& patch, DepthFrame& frame, Counts& counts) const {
    ++counts.split;
    const PatchSize size = size_of(patch, camera_);
    if (!is_small(patch, size)) {
      for (const Patch& half : halves_of(patch, size)) draw(half, frame, counts);
      return;
    }
    const SmallPatch small = small_patch(patch, size);
    if (most_diced_ > SmallPatch::kMostOfPart) {
      ++counts.dice;
    } else {
      each_part(small, [&](const SmallPatch&) { ++counts.dice; });
    }
    for (std::size_t i = 0; i < small.micropolygons(); ++i, ++counts.shade) {
      shade(micropolygon(small, camera_, i), frame);
    }
  }

  std::size_t stray_pixels() const;

  const std::string output_;
  const std::vector<Patch> patches_;
  const ReyesCamera camera_;
  std::optional<DeviceStage> dice_on_device_;
  std::optional<SplitStage> split_on_device_;
  std::uint64_t split_by_device_ = 0;
  std::size_t most_diced_ = SmallPatch::kMostOfPart;  ///< micropolygons of an item, at most
  DepthFrame frame_;
};

/// A point of a patch by de Casteljau's construction in double.
std::array<double, 3> point_of(const Patch& patch, double u, double v) {
  std::array<double, 3> found;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const auto curve = [](std::array<double, 4> p, double t) {
      for (std::size_t left = 3; left > 0; --left) {
        for (std::size_t i = 0; i < left; ++i) p[i] += t * (p[i + 1] - p[i]);
      }
      return p[0];
    };
    std::array<double, 4> across;
    for (std::size_t row = 0; row < 4; ++row) {
      std::array<double, 4> along;
      for (std::size_t i = 0; i < 4; ++i) along[i] = patch.points[4 * row + i][axis];
      across[row] = curve(along, u);
    }
    found[axis] = curve(across, v);
  }
  return found;
}

/// Pixels that are covered where no point of the surface is near, and those that are not covered
/// though points are all around. Micropolygons go beyond their patch by less than their size.
std::size_t Reyes::stray_pixels() const {
  constexpr int kReach = 3;
  const auto width = static_cast<int>(frame_.width()), height = static_cast<int>(frame_.height());
  const double scale = height / (2 * std::tan(std::acos(-1.0) / 6));
  std::vector<bool> near(frame_.width() * frame_.height()), hit(near.size());
  const auto index = [&](int x, int y) {
    return static_cast<std::size_t>(y) * frame_.width() + static_cast<std::size_t>(x);
  };
  const std::size_t steps = frame_.height() / 2 + 16;  // a patch is less than half as high
  for (const Patch& patch : patches_) {
    for (std::size_t i = 0; i < steps * steps; ++i) {
      const auto last = static_cast<double>(steps - 1);
      const std::size_t row = i / steps, column = i % steps;
      const auto point =
          point_of(patch, static_cast<double>(column) / last, static_cast<double>(row) / last);
      const double away = 3 - point[2];
      const int x = static_cast<int>(std::floor(point[0] / away * scale + width / 2.0));
      const int y = static_cast<int>(std::floor(point[1] / away * scale + height / 2.0));
      if (x < 0 || y < 0 || x >= width || y >= height) continue;
      hit[index(x, y)] = true;
    }
  }
  const auto around = [&](int x, int y, const auto& test) {
    for (int dy = -kReach; dy <= kReach; ++dy) {
      for (int dx = -kReach; dx <= kReach; ++dx) {
        const int column = x + dx, row = y + dy;
        if (column < 0 || row < 0 || column >= width || row >= height) continue;
        if (test(column, row)) return true;
      }
    }
    return false;
  };
  std::size_t stray = 0;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const bool covered = frame_.covered(static_cast<std::size_t>(x), static_cast<std::size_t>(y));
      if (covered) {
        stray += !around(x, y, [&](int column, int row) { return bool(hit[index(column, row)]); });
      } else if (hit[index(x, y)]) {
        stray += !around(x, y, [&](int column, int row) {
          return frame_.covered(static_cast<std::size_t>(column), static_cast<std::size_t>(row));
        });
      }
    }
  }
  return stray;
}

class ReyesApplication final : public Application {
 public:
  const char* name() const override { return "reyes"; }
  const char* example() const override {
    return "weir run reyes --width 1280 --height 720 --output teapot.png";
  }
  bool has_tiles() const override { return false; }
  const char* summary() const override {
    return "draw a teapot by splitting patches, in a pipeline: --output teapot.png";
  }
  bool has_precision() const override { return false; }
  bool uses(std::string_view option) const override {
    return option != "--n" && option != "--seed" && option != "--input" &&
           (option != "--streams" || options_.switches.baseline);
  }
  bool streams_in_baseline() const override { return true; }
  bool has_pipeline() const override { return true; }
  const char* output_help() const override { return "Picture of the teapot: .png or .ppm"; }
  void add_options(CommandOptions& options) override {
    options.add("--width", options_.width, "Width of the picture in pixels [1024]")
        .within(std::size_t{1}, kLargestEdge);
    options.add("--height", options_.height, "Height of the picture in pixels [768]")
        .within(std::size_t{1}, kLargestEdge);
    add_pipeline_switches(options, options_.switches);
  }
  void register_kernels(const Parameters&, const weir::Runtime& runtime) const override {
    dice_kernel(runtime);
  }
  std::unique_ptr<Workload> prepare(const Parameters& parameters, const weir::Runtime& runtime,
                                    const AppStreams& app_streams) override {
    if (!parameters.input.empty()) {
      fail_input("{}: reyes draws one teapot: leave --input out", parameters.input);
    }
    if (!parameters.output.empty()) check_colour_format(parameters.output);
    DepthFrame::check(options_.width, options_.height, 1);
    return std::make_unique<Reyes>(parameters.output, options_, runtime, app_streams);
  }

 private:
  ReyesOptions options_;
};

}  // namespace

std::unique_ptr<Application> make_reyes() { return std::make_unique<ReyesApplication>(); }

}  // namespace weir::apps
