#include "rtm/rtm.hpp"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "common/command_options.hpp"
#include "common/dense.hpp"
#include "rtm/picture.hpp"
#include "rtm/survey.hpp"
#include "wave/slabs.hpp"
#include "wave/wave_options.hpp"

namespace weir::apps {

namespace {

constexpr std::size_t kUsualEdge = 64, kUsualEvery = 4;
enum Medium : std::size_t { ground, background };

/// Memory of the program in a buffer.
template <class T>
struct Array {
  Array(const weir::Runtime& runtime, std::size_t rows, std::size_t columns, const char* name)
      : memory(rows, columns),
        buffer(runtime.wrap(memory.data(), memory.size() * sizeof(T), name)) {}

  weir::Region column(std::size_t index) const {
    return buffer.template elements<T>(index * memory.rows(), memory.rows());
  }

  Matrix<T> memory;
  weir::Buffer buffer;
};

template <class T>
class Migration final : public Workload {
 public:
  Migration(const Survey& survey, Matrix<T> image, std::size_t steps, std::size_t every,
            std::size_t block, bool overlap, const weir::Runtime& runtime,
            const AppStreams& app_streams)
      : survey_(survey),
        steps_(steps),
        every_(every),
        image_(std::move(image)),
        slabs_(runtime, app_streams, survey.n, {survey.ground, survey.background()}, block,
               overlap),
        wavelet_(runtime, 1, steps, "wavelet"),
        recorded_(runtime, plane(), steps, "recorded") {
    for (std::size_t step = 0; step < steps; ++step) {
      wavelet_.memory(0, step) = static_cast<T>(survey.wavelet(static_cast<double>(step)));
    }
    for (const Slab<T>& slab : slabs_.all()) {
      const std::size_t elements = plane() * slab.planes;
      parts_.push_back({{runtime, elements, steps / every, "snapshots"},
                        {runtime, elements, 2, "fetched snapshots"},
                        {runtime, plane(), slab.planes, "image"}});
    }
  }

  /// Makes save() write the slice below the shot.
  void write_later(std::string picture) { picture_ = std::move(picture); }

  std::size_t n() const override { return survey_.n; }
  /// Planes of the largest action.
  std::size_t tile() const override { return slabs_.block(); }
  /// Actions of a step.
  std::size_t tiles() const override { return slabs_.actions(); }
  double operations() const override {
    constexpr double kPropagations = 3;
    const double n = static_cast<double>(survey_.n);
    return kPropagations * WaveKernels<T>::step_operations * n * n * n *
           static_cast<double>(steps_);
  }

  void reset() override {}

  /// Records the waves that the ground reflects, minus those of the background alone, and keeps
  /// snapshots of the background's wave. Then sends the record back into the background in reverse:
  /// a reflector is where it coincides with that wave.
  void enqueue() override {
    slabs_.upload();
    shot_stream().stream.upload(wavelet_.buffer.all());
    shoot(ground);
    shoot(background);
    migrate();
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      slabs_.all()[i].stream->stream.download(parts_[i].image.buffer.all());
    }
  }

  void finish() override {
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const Slab<T>& slab = slabs_.all()[i];
      copy_cells(slabs_.shape(), parts_[i].image.memory, 0, slab.planes, image_, slab.first);
    }
  }

  void save() const override {
    if (picture_.empty()) return;
    Matrix<T> slice(n(), n());
    double strongest = 0;
    for (std::size_t z = 0; z < n(); ++z) {
      for (std::size_t x = 0; x < n(); ++x) {
        slice(z, x) = image_(x, n() / 2 + n() * z);
        if (z < survey_.first_plane()) continue;
        strongest = std::max(strongest, static_cast<double>(std::abs(slice(z, x))));
      }
    }
    write_picture(picture_, slice, strongest);
  }

  std::vector<Verification> verify(const ReferenceBlas&) const override {
    constexpr double kLimit = 1;
    const double found = static_cast<double>(survey_.strongest_plane(image_));
    return {{"|depth in the image - depth of the interface|, cells",
             std::abs(found - survey_.depth()), kLimit}};
  }

 private:
  /// The buffers of a slab besides its fields.
  struct Part {
    Array<T> snapshots;  ///< in the program's memory
    Array<T> fetched;    ///< two of them, on the way to a memory of their own
    Array<T> image;
  };

  std::size_t plane() const { return slabs_.shape().plane(); }
  const AppStream& shot_stream() const {
    const auto& all = slabs_.all();
    return *std::find_if(all.begin(), all.end(), [&](const Slab<T>& slab) {
              return slab.has(survey_.shot_depth);
            })->stream;
  }
  bool has_shot(const Slab<T>& slab, PlaneRange range) const {
    return survey_.shot_depth >= slab.first + range.begin &&
           survey_.shot_depth < slab.first + range.end;
  }
  weir::Region shot_plane(const Slab<T>& slab, std::size_t field) const {
    const std::size_t z = survey_.shot_depth - slab.first;
    return slabs_.planes(slab, field, {z, z + 1});
  }

  /// Lets the wavelet into a medium and records it.
  void shoot(Medium medium) {
    slabs_.clear();
    for (std::size_t step = 0; step < steps_; ++step) {
      slabs_.step(step, medium, [&](const Slab<T>& slab, PlaneRange range, std::size_t field) {
        if (!has_shot(slab, range)) return;
        const weir::Stream& stream = slab.stream->stream;
        const weir::Region cell = slabs_.cell(slab, field, n() / 2, n() / 2, survey_.shot_depth);
        stream.compute(slabs_.kernels().add_scaled,
                       {weir::readwrite(cell), weir::read(wavelet_.column(step))}, {T{1}, 1},
                       "shot");
        record(slab, field, step, medium);
      });
      if (medium == background) take_snapshots(step + 1);
    }
  }

  /// Records the plane of the receivers; the background's is subtracted from the ground's.
  void record(const Slab<T>& slab, std::size_t field, std::size_t step, Medium medium) const {
    const weir::Stream& stream = slab.stream->stream;
    const weir::Operand received = weir::read(shot_plane(slab, field));
    const weir::Region trace = recorded_.column(step);
    if (medium == ground) {
      stream.compute(slabs_.kernels().copy, {received, weir::write(trace)}, {}, "record");
    } else {
      stream.compute(slabs_.kernels().add_scaled, {weir::readwrite(trace), received},
                     {T{-1}, plane()}, "record");
    }
  }

  /// Whether the field after some steps is kept.
  bool has_snapshot(std::size_t made) const { return made % every_ == 0; }

  void take_snapshots(std::size_t made) {
    if (!has_snapshot(made)) return;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const Slab<T>& slab = slabs_.all()[i];
      const weir::Region field = slabs_.planes(slab, made % 2, {0, slab.planes});
      const weir::Region kept = parts_[i].snapshots.column(made / every_ - 1);
      slab.stream->stream.transfer({slab.stream->memory, field.buffer, field.region},
                                   {nullptr, kept.buffer, kept.region});
    }
  }

  void migrate() {
    slabs_.clear();
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      slabs_.all()[i].stream->stream.compute(
          slabs_.kernels().set, {weir::write(parts_[i].image.buffer.all())}, {0}, "clear");
    }
    for (std::size_t step = 0; step < steps_; ++step) {
      const std::size_t made =
          steps_ - step;  // when the receivers recorded the values that are sent back now
      slabs_.step(step, background, [&](const Slab<T>& slab, PlaneRange range, std::size_t field) {
        if (!has_shot(slab, range)) return;
        inject(slab, field, made - 1, T{1});
        if (made < steps_) inject(slab, field, made, T{-1});
      });
      if (has_snapshot(made)) correlate(made, (step + 1) % 2);
    }
  }

  /// Adds the record of a step to the plane of the receivers. A plane sends out the integral of the
  /// added values, so the code adds their change from step to step.
  void inject(const Slab<T>& slab, std::size_t field, std::size_t step, T factor) const {
    slab.stream->stream.compute(
        slabs_.kernels().add_scaled,
        {weir::readwrite(shot_plane(slab, field)), weir::read(recorded_.column(step))},
        {factor, plane()}, "receivers");
  }

  /// Adds a snapshot times the field of the receivers to the image.
  void correlate(std::size_t made, std::size_t field) {
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const Slab<T>& slab = slabs_.all()[i];
      const weir::Region snapshot = fetch_snapshot(i, made / every_ - 1);
      slab.for_ranges([&](PlaneRange range) {
        slab.stream->stream.compute(
            slabs_.kernels().add_product,
            {weir::readwrite(part_of(parts_[i].image.buffer.all(), range)),
             weir::read(part_of(snapshot, range)), weir::read(slabs_.planes(slab, field, range))},
            {plane() * (range.end - range.begin)}, "image");
      });
    }
  }

  /// Some planes of those of a slab, which are contiguous.
  weir::Region part_of(const weir::Region& planes, PlaneRange range) const {
    const std::size_t bytes = plane() * sizeof(T);
    return {planes.buffer, weir_region_range(planes.region.offset + range.begin * bytes,
                                             (range.end - range.begin) * bytes)};
  }

  /// Copies a snapshot to the memory of its slab.
  weir::Region fetch_snapshot(std::size_t i, std::size_t index) {
    const weir::Region kept = parts_[i].snapshots.column(index);
    const AppStream& app_stream = *slabs_.all()[i].stream;
    if (app_stream.memory == nullptr) return kept;
    const weir::Region fetched = parts_[i].fetched.column(index % 2);
    app_stream.stream.transfer({nullptr, kept.buffer, kept.region},
                               {app_stream.memory, fetched.buffer, fetched.region});
    return fetched;
  }

  Survey survey_;
  std::size_t steps_, every_;
  Matrix<T> image_;  ///< a column for each line of cells
  Slabs<T> slabs_;
  Array<T> wavelet_;         ///< a column for each step, as the next
  Array<T> recorded_;        ///< by the receivers
  std::vector<Part> parts_;  ///< of each slab
  std::string picture_;
};

template <class T>
std::unique_ptr<Workload> prepare_in(const Parameters& parameters, const WaveOptions& options,
                                     std::size_t every, const weir::Runtime& runtime,
                                     const AppStreams& app_streams) {
  constexpr std::size_t kArrays = 8;  // fields, media, images and fetched snapshots
  if (!parameters.output.empty()) check_picture_format(parameters.output);
  const std::size_t n = parameters.n > 0 ? parameters.n : kUsualEdge;
  if (n < Survey::kSmallestEdge) {
    fail_input("--n {}: the interface is too near to the shot: choose at least {}", n,
               Survey::kSmallestEdge);
  }
  const Survey survey(n);
  const std::size_t steps = options.steps > 0 ? options.steps : survey.usual_steps();
  if (every > steps) {
    fail_input("--every {}: there are {} steps, so that no snapshot would be taken", every, steps);
  }
  const std::size_t traces = steps / n + 1;
  auto migration = std::make_unique<Migration<T>>(
      survey, make_matrix<T>(n, n * n, kArrays + traces + steps / every), steps, every,
      choose_tile(n, parameters.tile, parameters.tiles, 0), options.overlap, runtime, app_streams);
  migration->write_later(parameters.output);
  return migration;
}

class RtmApplication final : public Application {
 public:
  const char* name() const override { return "rtm"; }
  const char* example() const override { return "weir run rtm --output ground.pgm --verify"; }
  const char* summary() const override {
    return "image the interface of two layers from a shot; --output FILE.pgm is a picture";
  }
  bool runs_on_ranks() const override { return false; }
  bool uses(std::string_view option) const override {
    return option != "--streams" && option != "--seed" && option != "--input";
  }
  std::size_t usual_n() const override { return kUsualEdge; }
  const char* output_help() const override {
    return "File for a slice of the image: .pgm for a picture, .mtx or .npy";
  }
  void add_options(CommandOptions& options) override {
    options_.add_to(options, "enough for the wave to reach the interface and return");
    options.add("--every", every_, "Steps between snapshots of the shot's wave [4]")
        .within(std::size_t{1}, std::size_t{1000000});
  }
  std::unique_ptr<Workload> prepare(const Parameters& parameters, const weir::Runtime& runtime,
                                    const AppStreams& app_streams) override {
    WaveOptions::refuse_input(parameters, name());
    return parameters.single
               ? prepare_in<float>(parameters, options_, every_, runtime, app_streams)
               : prepare_in<double>(parameters, options_, every_, runtime, app_streams);
  }

 private:
  WaveOptions options_;
  std::size_t every_ = kUsualEvery;
};

}  // namespace

std::unique_ptr<Application> make_rtm() { return std::make_unique<RtmApplication>(); }

}  // namespace weir::apps
