#include "wave/wave.hpp"

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "common/command_options.hpp"
#include "common/dense.hpp"
#include "wave/reference_wave.hpp"
#include "wave/slabs.hpp"
#include "wave/wave_options.hpp"

namespace weir::apps {

namespace {

constexpr std::size_t kUsualEdge = 96, kUsualSteps = 100;

template <class T>
class Wave final : public Workload {
 public:
  Wave(Matrix<T> result, std::size_t steps, std::size_t block, bool overlap, std::string output,
       const weir::Runtime& runtime, const AppStreams& app_streams)
      : field_(std::move(result)),
        n_(field_.rows()),
        steps_(steps),
        output_(std::move(output)),
        layers_{.interface = 2 * n_ / 3},
        source_{n_ / 2, n_ / 2, n_ / 2, {}},
        wavelet_(steps),
        wavelet_buffer_(runtime.wrap(wavelet_, "wavelet")),
        slabs_(runtime, app_streams, n_, {layers_}, block, overlap) {
    for (std::size_t step = 0; step < steps; ++step) {
      wavelet_[step] = static_cast<T>(source_.wavelet(static_cast<double>(step)));
    }
  }

  std::size_t n() const override { return n_; }
  /// Planes of the largest action.
  std::size_t tile() const override { return slabs_.block(); }
  /// Actions of a step.
  std::size_t tiles() const override { return slabs_.actions(); }
  double operations() const override {
    const double n = static_cast<double>(n_);
    return WaveKernels<T>::step_operations * n * n * n * static_cast<double>(steps_);
  }

  void reset() override {}
  void enqueue() override {
    slabs_.upload();
    slabs_.clear();
    for (const Slab<T>& slab : slabs_.all()) {
      if (slab.has(source_.z)) slab.stream->stream.upload(wavelet_buffer_.all());
    }
    for (std::size_t step = 0; step < steps_; ++step) {
      slabs_.step(step, 0, [&](const Slab<T>& slab, PlaneRange range, std::size_t field) {
        inject(slab, range, field, step);
      });
    }
    slabs_.download(steps_ % 2);
  }

  void finish() override {
    for (const Slab<T>& slab : slabs_.all()) {
      copy_cells(slabs_.shape(), slab.memory[steps_ % 2], kReach, slab.planes, field_, slab.first);
    }
  }
  void save() const override {
    if (!output_.empty()) write_matrix(output_, field_);
  }

  std::vector<Verification> verify(const ReferenceBlas&) const override {
    constexpr double kLimit = 10;
    const std::vector<double> expected = reference_wave(n_, layers_, source_, steps_);
    double error = 0, size = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      error = std::hypot(error, static_cast<double>(field_.data()[i]) - expected[i]);
      size = std::hypot(size, expected[i]);
    }
    const double rounding = static_cast<double>(std::numeric_limits<T>::epsilon());
    return {{"|u - reference| / (steps eps |reference|)",
             error / (rounding * static_cast<double>(steps_) * size), kLimit}};
  }

 private:
  void inject(const Slab<T>& slab, PlaneRange range, std::size_t field, std::size_t step) const {
    if (source_.z < slab.first + range.begin || source_.z >= slab.first + range.end) return;
    slab.stream->stream.compute(
        slabs_.kernels().add_scaled,
        {weir::readwrite(slabs_.cell(slab, field, source_.x, source_.y, source_.z)),
         weir::read(wavelet_buffer_.template elements<T>(step, 1))},
        {T{1}, 1}, "source");
  }

  Matrix<T> field_;  ///< a column for each line of cells
  std::size_t n_, steps_;
  std::string output_;
  Layers layers_;
  Source source_;
  std::vector<T> wavelet_;
  weir::Buffer wavelet_buffer_;
  Slabs<T> slabs_;
};

template <class T>
std::unique_ptr<Workload> prepare_in(const Parameters& parameters, const WaveOptions& options,
                                     const weir::Runtime& runtime, const AppStreams& app_streams) {
  constexpr std::size_t kArrays = 4;  // two fields, the medium and the result
  if (!parameters.output.empty()) check_output_format(parameters.output);
  const std::size_t n = parameters.n > 0 ? parameters.n : kUsualEdge;
  const std::size_t block = choose_tile(n, parameters.tile, parameters.tiles, 0);
  return std::make_unique<Wave<T>>(make_matrix<T>(n, n * n, kArrays),
                                   options.steps > 0 ? options.steps : kUsualSteps, block,
                                   options.overlap, parameters.output, runtime, app_streams);
}

class WaveApplication final : public Application {
 public:
  const char* name() const override { return "wave"; }
  const char* example() const override {
    return "weir run wave --n 256 --domains host,sim --overlap off";
  }
  const char* summary() const override {
    return "simulate a wave in two layers of --n cells per edge, --tile planes per action";
  }
  bool uses(std::string_view option) const override {
    return option != "--streams" && option != "--seed" && option != "--input";
  }
  std::size_t usual_n() const override { return kUsualEdge; }
  void add_options(CommandOptions& options) override {
    options_.add_to(options, std::to_string(kUsualSteps));
  }
  void register_kernels(const Parameters& parameters, const weir::Runtime& runtime) const override {
    if (parameters.single) {
      WaveKernels<float>{runtime};
    } else {
      WaveKernels<double>{runtime};
    }
  }
  std::unique_ptr<Workload> prepare(const Parameters& parameters, const weir::Runtime& runtime,
                                    const AppStreams& app_streams) override {
    WaveOptions::refuse_input(parameters, name());
    return parameters.single ? prepare_in<float>(parameters, options_, runtime, app_streams)
                             : prepare_in<double>(parameters, options_, runtime, app_streams);
  }

 private:
  WaveOptions options_;
};

}  // namespace

std::unique_ptr<Application> make_wave() { return std::make_unique<WaveApplication>(); }

}  // namespace weir::apps
