#include "face_detection/face_detection.hpp"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/command_options.hpp"
#include "common/film.hpp"
#include "common/image.hpp"
#include "common/input_error.hpp"
#include "common/pipeline_workload.hpp"
#include "face_detection/cascade.hpp"
#include "face_detection/detector.hpp"
#include "face_detection/drawn_faces.hpp"
#include "face_detection/window_kernel.hpp"

namespace weir::apps {

namespace {

constexpr std::size_t kUnderWay = 2, kStripRows = 16;

struct Photograph {
  std::string file;  ///< of a film with the number of the picture behind it: "film.mp4#12"
  std::string name;  ///< of a file with faces, without an extension
  ColourImage image;
  std::vector<Box> drawn = {};  ///< faces of a picture that was drawn
};

/// The file of a picture's result in a folder.
std::string result_in(const std::string& folder, const std::string& name) {
  return std::filesystem::path(folder) / (name + ".png");
}

struct DetectionOptions {
  static constexpr double kFactor = 1.1;
  static constexpr std::size_t kNeighbours = 3;
  double factor = kFactor;
  std::size_t neighbours = kNeighbours;
  PipelineSwitches switches;

  bool usual() const noexcept { return factor == kFactor && neighbours == kNeighbours; }
};

/// Some rows of windows of a level.
struct Strip {
  std::uint32_t level, first;
};

/// The state of a picture in flight.
struct Frame {
  Image grey;
  std::vector<float> scales;
  std::vector<Level> levels;
  std::vector<JudgedLevel> judged;  ///< when a device judges
  std::vector<Box> candidates;

  void clear() { *this = {}; }
};

/// The result for a picture.
struct Detection {
  std::size_t levels = 0;
  std::vector<Box> candidates, faces;  ///< from the left
};

// What an item takes a core of an AMD EPYC, in virtual time that of a simulated host.
constexpr double kGreyNs = 180'000, kResizeNs = 55'000, kIntegralNs = 19'000, kScanNs = 16'000,
                 kCutNs = 26'000, kCollectNs = 1300;

class FaceDetection final : public PipelineWorkload {
  using Number = std::uint32_t;

 public:
  FaceDetection(std::string output, std::vector<Photograph> photographs, Cascade cascade,
                const DetectionOptions& options, const weir::Runtime& runtime,
                const AppStreams& app_streams)
      : PipelineWorkload(runtime, app_streams, "face-detection", options.switches,
                         places_for(cascade)),
        output_(std::move(output)),
        photographs_(std::move(photographs)),
        cascade_(std::move(cascade)),
        options_(options),
        frames_(kUnderWay) {
    if (device() == nullptr) return;
    tables_.emplace(runtime, cascade_);
    scan_on_device_ = window_stage(runtime, cascade_, *tables_);
  }

  /// Pictures.
  std::size_t n() const override { return photographs_.size(); }

  void save() const override {
    if (output_.empty()) return;
    for (std::size_t i = 0; i < photographs_.size(); ++i) {
      write_image(output_for(i), marked(photographs_[i].image, detections_[i].faces));
    }
  }
  std::vector<Figure> figures() const override {
    std::size_t candidates = 0, faces = 0;
    for (const Detection& detection : detections_) {
      candidates += detection.candidates.size();
      faces += detection.faces.size();
    }
    return {{"candidates", static_cast<double>(candidates)}, {"faces", static_cast<double>(faces)}};
  }

  /// Adds cells up pixel by pixel.
  std::vector<Verification> verify(const ReferenceBlas&) const override {
    std::size_t different = 0;
    for (std::size_t i = 0; i < photographs_.size(); ++i) {
      std::vector<Box> boxes = boxes_by_pixels(photographs_[i].image);
      std::sort(boxes.begin(), boxes.end());
      different += boxes != detections_.at(i).candidates;
    }
    std::vector<Verification> checks = {
        {"pictures with other candidates when cells are added up pixel by pixel",
         static_cast<double>(different), 0}};
    if (!photographs_[0].drawn.empty() && options_.usual()) {
      checks.push_back({"drawn faces that were not found, and others that were",
                        static_cast<double>(mistaken_faces()), 0});
    }
    return checks;
  }
  std::vector<std::pair<std::string, std::string>> remarks() const override {
    auto remarks = PipelineWorkload::remarks();
    if (photographs_[0].drawn.empty()) return remarks;
    std::size_t faces = 0;
    for (const Photograph& each : photographs_) faces += each.drawn.size();
    remarks.insert(
        remarks.begin(),
        {"input",
         fmt::format("drawn: {} of {} x {} pixels with {} faces, and a cascade "
                     "that knows them; --input and --cascade read files",
                     photographs_.size() == 1 ? std::string("a picture")
                                              : fmt::format("{} pictures", photographs_.size()),
                     photographs_[0].image.width, photographs_[0].image.height, faces)});
    return remarks;
  }

 private:
  /// Larger windows do not fit the tiles of a device.
  static StagePlaces places_for(const Cascade& cascade) {
    return std::max(cascade.width, cascade.height) <= WindowTile::kMostWindow
               ? StagePlaces::hosts_and_device
               : StagePlaces::hosts;
  }
  Frame& frame_of(std::uint64_t picture) { return frames_[picture % frames_.size()]; }
  static std::size_t strip_rows(const Level& level) { return kStripRows * level.step(); }

  void make_grey(std::size_t picture) {
    Frame& frame = frame_of(picture);
    const ColourImage& image = photographs_[picture].image;
    frame.grey = grey_of(image);
    frame.scales = scales_of(image.width, image.height, cascade_, options_.factor);
    frame.levels.resize(frame.scales.size());
    frame.judged.resize(frame.scales.size());
  }
  static void resize(Frame& frame, std::size_t level) {
    frame.levels[level].resize(frame.grey, frame.scales[level]);
  }
  template <class Out>
  void put_strips(const Frame& frame, std::uint32_t level, const Out& out) const {
    const Level& from = frame.levels[level];
    for (std::size_t row = 0; row < from.rows(cascade_); row += strip_rows(from)) {
      out.put({level, static_cast<std::uint32_t>(row)});
    }
  }
  template <class Out>
  void scan(const Frame& frame, const Strip& strip, const Out& out) const {
    const Level& level = frame.levels[strip.level];
    const std::size_t end = std::min(strip.first + strip_rows(level), level.rows(cascade_));
    level.scan(cascade_, strip.first, end, [&](const Box& box) { out.put(box); });
  }

  /// A level returns its candidates when all of its tiles have been judged.
  void collect(Frame& frame, const JudgedTile& tile) {
    if (tile.header.step == 0) return;  // the device has skipped its kernel
    const Level& level = frame.levels[tile.header.level];
    JudgedLevel& judged = frame.judged[tile.header.level];
    judged.add(tile, level, cascade_);
    if (!judged.complete()) return;
    level.walk(
        cascade_, 0, level.rows(cascade_), [&](const Box& box) { frame.candidates.push_back(box); },
        judged);
  }

  void clear() override {
    detections_.assign(photographs_.size(), {});
    for (Frame& frame : frames_) frame.clear();
  }
  void complete(std::uint64_t picture) {
    Frame& frame = frame_of(picture);
    Detection& detection = detections_[picture];
    detection = {frame.levels.size(), frame.candidates,
                 group(frame.candidates, options_.neighbours)};
    for (std::vector<Box>* boxes : {&detection.candidates, &detection.faces}) {
      clip(*boxes, frame.grey.width, frame.grey.height);
      std::sort(boxes->begin(), boxes->end());
    }
    frame.clear();
  }

  weir::PipelineOptions wanted() override {
    return {.epochs = frames_.size(),
            .on_epoch = [this](std::uint64_t picture) { complete(picture); }};
  }

  void connect(const weir::Pipeline& pipeline) override {
    const auto pictures = pipeline.tunnel<Number>("pictures");
    const auto to_resize = pipeline.tunnel<Number>("levels to resize");
    const auto to_integrate = pipeline.tunnel<Number>("levels to integrate");
    pipeline.source("film", weir::into(pictures),
                    [this, next = Number{0}](const weir::Outlet<Number>& out,
                                             weir::StageContext context) mutable {
                      out.put(next++);
                      context.end_epoch();
                      return next < photographs_.size();
                    });
    pipeline.stage(
        "grey", pictures, weir::into(to_resize),
        [this](Number picture, const weir::Outlet<Number>& out) {
          make_grey(picture);
          if (!frame_of(picture).levels.empty()) out.put(0);
        },
        at(0, kGreyNs));
    pipeline.stage(
        "resize", to_resize, weir::into(to_resize, to_integrate),
        [this](Number level, const weir::Outlet<Number>& again, const weir::Outlet<Number>& out,
               weir::StageContext context) {
          Frame& frame = frame_of(context.epoch());
          if (level + 1 < frame.levels.size()) again.put(level + 1);
          resize(frame, level);
          out.put(level);
        },
        at(1, kResizeNs));
    if (scan_on_device_) {
      connect_device(pipeline, to_integrate);
    } else {
      connect_hosts(pipeline, to_integrate);
    }
  }

  void connect_hosts(const weir::Pipeline& pipeline, const weir::Tunnel<Number>& to_integrate) {
    const auto strips = pipeline.tunnel<Strip>("strips");
    const auto candidates = pipeline.tunnel<Box>("candidates");
    pipeline.stage(
        "integral", to_integrate, weir::into(strips),
        [this](Number level, const weir::Outlet<Strip>& out, weir::StageContext context) {
          Frame& frame = frame_of(context.epoch());
          frame.levels[level].integrate(cascade_);
          put_strips(frame, level, out);
        },
        at(2, kIntegralNs));
    pipeline.stage(
        "scan", strips, weir::into(candidates),
        [this](const Strip& strip, const weir::Outlet<Box>& out, weir::StageContext context) {
          scan(frame_of(context.epoch()), strip, out);
        },
        at(3, kScanNs));
    pipeline.stage(
        "collect", candidates,
        [this](const Box& box, weir::StageContext context) {
          frame_of(context.epoch()).candidates.push_back(box);
        },
        alone(4, 0));
  }

  /// The device judges windows, and the host goes through the rows.
  void connect_device(const weir::Pipeline& pipeline, const weir::Tunnel<Number>& to_cut) {
    const auto tiles = pipeline.tunnel<WindowTile>("tiles");
    const auto judged = pipeline.tunnel<JudgedTile>("judged tiles");
    pipeline.stage(
        "cut", to_cut, weir::into(tiles),
        [this](Number level, const weir::Outlet<WindowTile>& out, weir::StageContext context) {
          cut(frame_of(context.epoch()).levels[level], cascade_, level,
              [&](const WindowTile& tile) { out.put(tile); });
        },
        at(2, kCutNs));
    connect_kernel(pipeline, "scan", tiles, judged, *scan_on_device_);
    pipeline.stage(
        "collect", judged,
        [this](const JudgedTile& tile, weir::StageContext context) {
          collect(frame_of(context.epoch()), tile);
        },
        alone(4, kCollectNs));
  }
  weir::StageOptions alone(std::size_t index, double item_ns) const {
    weir::StageOptions options = at(index, item_ns);
    options.workers = 1;
    return options;
  }

  /// A chunk is a picture; the device scans one while the cores work on its neighbours.
  void loop(ChunkLoop& chunks) override {
    const auto begin = [&](std::size_t picture) {
      Frame& frame = frame_of(picture);
      chunks.run("grey", 1, kGreyNs, [&](const ChunkPart&) { make_grey(picture); });
      chunks.run("resize", frame.levels.size(), kResizeNs, [&](const ChunkPart& part) {
        for (std::size_t i = part.first; i < part.end; ++i) resize(frame, i);
      });
      scan_on_device_ ? launch_scan(chunks, frame) : scan_on_hosts(chunks, frame);
    };
    const auto end = [&](std::size_t picture) {
      if (scan_on_device_) collect_scanned(chunks, frame_of(picture));
      complete(picture);
    };
    chunks.each_chunk(photographs_.size(), scan_on_device_.has_value(), begin, end);
  }

  void scan_on_hosts(ChunkLoop& chunks, Frame& frame) {
    Collected<Strip> planned(chunks.parts());
    Collected<Box> found(chunks.parts());
    chunks.run("integral", frame.levels.size(), kIntegralNs, [&](const ChunkPart& part) {
      const auto out = planned.outlet(part);
      for (std::size_t i = part.first; i < part.end; ++i) {
        frame.levels[i].integrate(cascade_);
        put_strips(frame, static_cast<std::uint32_t>(i), out);
      }
    });
    const std::vector<Strip> strips = planned.take();
    chunks.run("scan", strips.size(), kScanNs, [&](const ChunkPart& part) {
      const auto out = found.outlet(part);
      for (std::size_t i = part.first; i < part.end; ++i) scan(frame, strips[i], out);
    });
    const std::vector<Box> boxes = found.take();
    chunks.run("collect", boxes.size(), 0, [&](const ChunkPart& part) {
      if (part.first == 0) frame.candidates = boxes;
    });
  }
  void launch_scan(ChunkLoop& chunks, const Frame& frame) {
    Collected<WindowTile> cuts(chunks.parts());
    chunks.run("cut", frame.levels.size(), kCutNs, [&](const ChunkPart& part) {
      const auto out = cuts.outlet(part);
      for (std::size_t i = part.first; i < part.end; ++i) {
        cut(frame.levels[i], cascade_, static_cast<std::uint32_t>(i),
            [&](const WindowTile& tile) { out.put(tile); });
      }
    });
    chunks.launch("scan", *scan_on_device_, cuts.take());
  }
  void collect_scanned(ChunkLoop& chunks, Frame& frame) {
    const auto judged = chunks.results<JudgedTile>("scan", *scan_on_device_);
    chunks.run("collect", judged.size(), 0, [&](const ChunkPart& part) {
      if (part.first > 0) return;
      for (const JudgedTile& tile : judged) collect(frame, tile);
    });
    chunks.work(judged.size(), kCollectNs);
  }

  std::vector<Box> boxes_by_pixels(const ColourImage& image) const {
    const Image grey = grey_of(image);
    std::vector<Box> boxes;
    for (const float scale : scales_of(image.width, image.height, cascade_, options_.factor)) {
      Level level;
      level.resize(grey, scale);
      const std::size_t columns = Level::places(level.picture().width, cascade_.width);
      for (std::size_t y = 0; y < level.rows(cascade_); y += level.step()) {
        for (std::size_t x = 0; x < columns; x += level.step()) {
          bool failed_at_once = false;
          if (level.is_face_by_pixels(cascade_, x, y, &failed_at_once)) {
            boxes.push_back(level.box(cascade_, x, y));
          }
          if (failed_at_once) x += level.step();
        }
      }
    }
    clip(boxes, image.width, image.height);
    return boxes;
  }

  /// Of drawn pictures: planted faces that were not found, and found ones that were not planted.
  std::size_t mistaken_faces() const {
    std::size_t mistaken = 0;
    for (std::size_t i = 0; i < photographs_.size(); ++i) {
      const std::vector<Box>&drawn = photographs_[i].drawn, &found = detections_[i].faces;
      for (const Box& face : drawn) {
        mistaken += std::none_of(found.begin(), found.end(),
                                 [&](const Box& each) { return is_about(each, face); });
      }
      for (const Box& face : found) {
        mistaken += std::none_of(drawn.begin(), drawn.end(),
                                 [&](const Box& each) { return is_about(face, each); });
      }
    }
    return mistaken;
  }

  std::string output_for(std::size_t picture) const {
    const bool folder = std::filesystem::is_directory(output_);
    return folder ? result_in(output_, photographs_[picture].name) : output_;
  }

  /// Draws frames of two pixels around faces.
  static ColourImage marked(ColourImage image, const std::vector<Box>& faces) {
    const auto paint = [&](int x, int y) {
      const auto column = static_cast<std::size_t>(x), row = static_cast<std::size_t>(y);
      if (x < 0 || y < 0 || column >= image.width || row >= image.height) return;
      std::uint8_t* const pixel = &image.colours[3 * (row * image.width + column)];
      pixel[0] = pixel[2] = 0;
      pixel[1] = 255;
    };
    for (const Box& face : faces) {
      for (const int inset : {0, 1}) {
        const int right = face.x + face.width - 1 - inset, left = face.x + inset;
        const int bottom = face.y + face.height - 1 - inset, top = face.y + inset;
        for (int x = left; x <= right; ++x) {
          paint(x, top);
          paint(x, bottom);
        }
        for (int y = top; y <= bottom; ++y) {
          paint(left, y);
          paint(right, y);
        }
      }
    }
    return image;
  }

  static nlohmann::ordered_json listed(const std::vector<Box>& boxes) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const Box& box : boxes) list.push_back({box.x, box.y, box.width, box.height});
    return list;
  }
  void describe(nlohmann::ordered_json& json) const override {
    json["pictures"] = nlohmann::ordered_json::array();
    for (std::size_t i = 0; i < photographs_.size(); ++i) {
      json["pictures"].push_back({{"file", photographs_[i].file},
                                  {"levels", detections_[i].levels},
                                  {"candidates", listed(detections_[i].candidates)},
                                  {"faces", listed(detections_[i].faces)}});
    }
  }

  const std::string output_;
  const std::vector<Photograph> photographs_;
  const Cascade cascade_;
  const DetectionOptions options_;
  std::optional<CascadeTables> tables_;  ///< for a device
  std::optional<DeviceStage> scan_on_device_;
  std::vector<Frame> frames_;
  std::vector<Detection> detections_;  ///< by picture
};

std::string stem_of(const std::string& path) { return std::filesystem::path(path).stem().string(); }

std::vector<Photograph> read_film_photographs(const std::string& path, std::size_t most) {
  std::vector<Photograph> photographs;
  for (ColourImage& image : read_film(path, most)) {
    const std::size_t number = photographs.size() + 1;
    photographs.push_back({fmt::format("{}#{}", path, number),
                           fmt::format("{}-{:06}", stem_of(path), number), std::move(image)});
  }
  return photographs;
}

/// A picture, those of a folder by their names, or those of a film.
std::vector<Photograph> read_photographs(const std::string& path, std::size_t most) {
  if (is_film(path)) return read_film_photographs(path, most);
  std::vector<std::string> paths;
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
      if (is_image(entry.path().string())) paths.push_back(entry.path().string());
    }
    if (error) fail_input("{}: cannot be read: {}", path, error.message());
    if (paths.empty()) fail_input("{}: found no picture in the folder", path);
    std::sort(paths.begin(), paths.end());
    if (most > 0) paths.resize(std::min(most, paths.size()));
  } else {
    paths.push_back(path);
  }
  const ReadLimits limits;
  std::uint64_t bytes = 0;
  std::vector<Photograph> photographs;
  for (const std::string& each : paths) {
    photographs.push_back({each, stem_of(each), read_colours(each, limits)});
    bytes += photographs.back().image.colours.size();
    if (bytes <= limits.bytes) continue;
    fail_input(
        "{}: the first {} pictures take {} bytes, expected at most {}: take fewer with --pictures",
        path, photographs.size(), bytes, limits.bytes);
  }
  return photographs;
}

std::vector<Photograph> draw_photographs(std::size_t count, std::uint64_t seed) {
  std::vector<Photograph> photographs;
  for (std::size_t i = 1; i <= count; ++i) {
    DrawnPicture drawn = draw_faces(seed * count + i - 1);
    photographs.push_back({fmt::format("drawn#{}", i), fmt::format("drawn-{:06}", i),
                           std::move(drawn.image), std::move(drawn.faces)});
  }
  return photographs;
}

/// Throws InputError when a result would overwrite its picture or another result.
void check_results(const std::string& folder, const std::vector<Photograph>& photographs) {
  std::set<std::string> results;
  for (const Photograph& each : photographs) {
    const std::string result = result_in(folder, each.name);
    if (!results.insert(result).second) {
      fail_input("{}: would be the result of two pictures: rename one", result);
    }
    std::error_code missing;
    if (std::filesystem::equivalent(result, each.file, missing)) {
      fail_input("{}: the result would replace the picture: choose another folder", result);
    }
  }
}

class FaceDetectionApplication final : public Application {
 public:
  const char* name() const override { return "face-detection"; }
  const char* example() const override {
    return "weir run face-detection --output faces.png\n"
           "  weir run face-detection --input photo.jpg --cascade faces.xml --output faces.png";
  }
  bool has_tiles() const override { return false; }
  const char* summary() const override {
    return "find faces in pictures, drawn ones or files: --input photo.jpg --cascade "
           "lbpcascade_frontalface.xml";
  }
  bool has_precision() const override { return false; }
  bool uses(std::string_view option) const override {
    return option != "--n" && (option != "--streams" || options_.switches.baseline);
  }
  bool streams_in_baseline() const override { return true; }
  bool has_pipeline() const override { return true; }
  const char* input_help() const override {
    return "Picture, folder of pictures, or a film where ffmpeg is installed [a picture with faces "
           "that is drawn]";
  }
  const char* output_help() const override {
    return "Picture with frames around faces: .png or .ppm; or a folder for all";
  }
  void add_options(CommandOptions& options) override {
    options.add(
        "--cascade", cascade_,
        "Cascade of OpenCV over local binary patterns, as in Debian's opencv-data [one that "
        "knows drawn faces]");
    options
        .add("--factor", options_.factor,
             "How much larger faces are from one level to the next [1.1]")
        .within(1.01, 16.0);
    options.add(
        "--neighbours", options_.neighbours,
        "A face needs more overlapping candidates than this; 0: each candidate is a face [3]");
    options
        .add("--pictures", pictures_,
             "Number of pictures: the first ones of a folder or film [all], or drawn ones [1]")
        .within(std::size_t{1}, std::size_t{1} << 30);
    add_pipeline_switches(options, options_.switches);
  }
  void register_kernels(const Parameters&, const weir::Runtime& runtime) const override {
    window_kernel(runtime);
  }
  std::unique_ptr<Workload> prepare(const Parameters& parameters, const weir::Runtime& runtime,
                                    const AppStreams& app_streams) override {
    const std::string& output = parameters.output;
    const bool draws = parameters.input.empty() && cascade_.empty();
    if (parameters.input.empty() && !draws) {
      fail_input(
          "face-detection has a cascade and no picture: give it --input FILE, a folder of pictures "
          "or a film");
    }
    if (cascade_.empty() && !draws) {
      fail_input("face-detection needs a cascade for {}: give it --cascade FILE, as in opencv-data",
                 parameters.input);
    }
    Cascade cascade = draws ? drawn_face_cascade() : read_cascade(cascade_);
    std::vector<Photograph> photographs =
        draws ? drawn(parameters.seed) : read_photographs(parameters.input, pictures_);
    if (!output.empty() && std::filesystem::is_directory(output)) {
      check_results(output, photographs);
    } else if (!output.empty()) {
      check_colour_format(output);
      if (photographs.size() > 1) {
        fail_input("{}: there are {} pictures: expected a folder", output, photographs.size());
      }
    }
    return std::make_unique<FaceDetection>(output, std::move(photographs), std::move(cascade),
                                           options_, runtime, app_streams);
  }

 private:
  std::vector<Photograph> drawn(std::uint64_t seed) const {
    const std::size_t most = ReadLimits().bytes / kDrawnBytes;
    if (pictures_ > most) {
      fail_input(
          "{} pictures are too many to draw in the memory of this machine, expected at most {}",
          pictures_, most);
    }
    return draw_photographs(std::max<std::size_t>(pictures_, 1), seed);
  }

  std::string cascade_;
  std::size_t pictures_ = 0;  ///< at most; 0: all
  DetectionOptions options_;
};

}  // namespace

std::unique_ptr<Application> make_face_detection() {
  return std::make_unique<FaceDetectionApplication>();
}

}  // namespace weir::apps
