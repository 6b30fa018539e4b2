#include "stencil/stencil.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>
#include <weir/pipeline.hpp>

#include <cross.wk.h>
#include "common/command_options.hpp"
#include "common/csv.hpp"
#include "common/deadline.hpp"
#include "common/dense.hpp"
#include "common/parsing.hpp"
#include "common/pipeline_runner.hpp"
#include "common/real_kernel.hpp"

#define KERNEL_FILE "stencil/cross.wk"
#include "common/real_kernels.inc"

namespace weir::apps {

namespace {

using Region = weir_stencil_region;

constexpr Preset kPresets[] = {
    {"tiny", 150, 32, 0, 0}, {"small", 2048, 512, 0, 0}, {"paper", 4096, 512, 0, 0}};
constexpr double kOperations = 5;  ///< for a value and sweep

/// The options of this application only.
struct StencilParameters {
  std::size_t sweeps = 1;
  PipelineSwitches switches;
  bool lazy = true;
};

weir_cost cost_of(double values, std::size_t bytes) {
  return {kOperations * values, static_cast<double>(bytes) * values};
}

template <class T>
weir::Kernel make_tile_kernel(const weir::Runtime& runtime) {
  return register_kernel<T>(
      runtime, {"stencil.tile", HOST_KERNELS(stencil_tile), cross_wk, "cross.wk"},
      WEIR_KERNEL_SHAPE_SERIAL,
      [](const weir_call* given) {
        const weir::Call call(given);
        return cost_of(call.scalar<double>(0) * call.scalar<double>(1), 2 * sizeof(T));
      },
      [](const weir::Call& call) {
        return weir::Groups{weir::group_count(call.scalar<std::size_t>(1), WIDTH),
                            call.scalar<std::uint32_t>(0)};
      });
}

template <class T>
weir::Kernel make_task_kernel(const weir::Runtime& runtime) {
  return register_kernel<T>(
      runtime, {"stencil.tasks", HOST_KERNELS(stencil_tasks), cross_wk, "cross.wk"},
      WEIR_KERNEL_SHAPE_SERIAL,
      [](const weir_call* call) {
        return cost_of(weir::Call(call).scalar<double>(0), 6 * sizeof(T));
      },
      [](const weir::Call& call) {
        return weir::Groups{weir::group_count(call.scalar<std::size_t>(0), WIDTH)};
      });
}

// What a value, a task of five values and a result take a core of an AMD EPYC, in virtual time that
// of a simulated host.
constexpr double kValueNs = 4.9;
constexpr double kTaskNs = 5.5;
constexpr double kResultNs = 2.3;

/// The columns of the matrix are the rows of the stencil: both are in a row in memory.
template <class T>
class StencilRun final : public Workload, public WatchedPipeline {
 public:
  StencilRun(Matrix<T> given, std::size_t edge, const Parameters& parameters,
             const StencilParameters& own, const weir::Runtime& runtime,
             const AppStreams& app_streams)
      : given_(std::move(given)),
        edge_(edge),
        own_(own),
        output_(parameters.output),
        runtime_(runtime),
        place_(app_streams.place(app_streams.places() - 1)),
        kernel_(baseline() ? make_task_kernel<T>(runtime) : make_tile_kernel<T>(runtime)),
        result_(runtime.buffer(given_.size() * sizeof(T))),
        runner_(runtime, own.switches) {}

  std::size_t n() const override { return given_.rows(); }
  std::size_t tile() const override { return region(); }
  std::size_t tiles() const override { return parts(given_.rows()) * parts(given_.columns()); }
  double operations() const override { return kOperations * updates(); }
  double traffic() const override { return (baseline() ? 6 : 2) * sizeof(T) * updates(); }

  void reset() override { runner_.reset(); }

  void enqueue() override {
    copied_before_ = runtime_.stats().bytes_h2d;
    sweep_ = 0;
    from_ = given_.data();
    begin();
  }
  /// The baseline sweeps the whole matrix repeatedly: a pipeline for each sweep.
  void await(std::chrono::nanoseconds timeout) override {
    const Deadline deadline(timeout);
    runner_.wait(timeout);
    while (baseline() && ++sweep_ < own_.sweeps) {
      const T* const made = result_.template data<T>();
      std::copy(made, made + given_.size(), between_.data());
      from_ = between_.data();
      begin();
      runner_.wait(deadline.remaining_ns());
    }
    copied_ = runtime_.stats().bytes_h2d - copied_before_;
    stages_.clear();
    for (const weir_stage_info& stage : runner_.stages()) stages_[stage.name] = stage.complete;
  }
  void cancel() noexcept override { runner_.cancel(); }
  bool watch() override {
    runner_.watch();
    return true;
  }
  void observe(const UsePipeline& use) const override { runner_.observe(use); }

  void save() const override {
    if (output_.empty()) return;
    Matrix<T> made(given_.rows(), given_.columns());
    std::memcpy(made.data(), result_.template data<T>(), made.size() * sizeof(T));
    write_matrix(output_, made);
  }
  std::vector<Figure> figures() const override {
    return {{"bytes copied to devices / bytes of the matrix",
             static_cast<double>(copied_) / static_cast<double>(given_.size() * sizeof(T))}};
  }
  std::string details() const override {
    nlohmann::ordered_json json = {{"form", baseline() ? "baseline" : "pipeline"},
                                   {"lazy", own_.lazy}};
    runner_.describe(json);
    json["stages"] = stages_;
    return json.dump();
  }

  /// Against the same sweeps one after the other: the same bits.
  std::vector<Verification> verify(const ReferenceBlas&) const override {
    const Matrix<T> expected = reference();
    const T* const found = result_.template data<T>();
    double wrong = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): the bits are what counts
      wrong += std::memcmp(&expected.data()[i], &found[i], sizeof(T)) != 0;
    }
    return {{"values with other bits than in sequence", wrong, 0}};
  }

 private:
  /// Five values, of which a task makes one.
  struct Task {
    T values[5];
  };

  /// Everything at once when it is not to be lazy.
  std::size_t region() const {
    return own_.lazy ? edge_ : std::max(given_.rows(), given_.columns());
  }
  std::size_t parts(std::size_t length) const { return (length - 1) / region() + 1; }
  double updates() const {
    return static_cast<double>(given_.size()) * static_cast<double>(own_.sweeps);
  }

  bool baseline() const noexcept { return own_.switches.baseline; }
  void begin() {
    runner_.reset();
    runner_.begin({.name = "stencil"}, [this](const weir::Pipeline& pipeline) {
      if (baseline()) {
        make_tasks(pipeline);
      } else {
        make_regions(pipeline);
      }
    });
  }

  /// Numbers of tiles, the values of each, the stencil, and tiles that are over.
  void make_regions(const weir::Pipeline& pipeline) {
    const auto numbers = pipeline.tunnel<std::uint32_t>("numbers", {.capacity = 64});
    const auto regions = pipeline.tunnel<Region>("regions", {.capacity = 64});
    const auto tiles = pipeline.tunnel<Region>("tiles");
    weir::StencilOptions options{.rows = given_.columns(),
                                 .columns = given_.rows(),
                                 .region_rows = region(),
                                 .region_columns = region(),
                                 .corners = false,
                                 .sweeps = own_.sweeps};
    runner_.set_batches(options);
    const weir::Stencil<T> stencil =
        pipeline.stencil<T>("stencil", regions, tiles, kernel_, place_, result_, options);
    pipeline.source("numbers", weir::into(numbers),
                    [this, next = std::uint32_t{0}](const auto& out) mutable {
                      out.put(next++);
                      return next < tiles_of_making();
                    });
    pipeline.stage("make", numbers, weir::into(regions),
                   [this, stencil](std::uint32_t number, const weir::Outlet<Region>& out) {
                     make(stencil, number, out);
                   },
                   {.item_ns = kValueNs * static_cast<double>(edge_ * edge_)});
    pipeline.stage("collect", tiles, [](const Region&) {});
  }
  /// Values are made in tiles, whatever the regions are.
  std::size_t making(std::size_t length) const { return (length - 1) / edge_ + 1; }
  std::size_t tiles_of_making() const { return making(given_.rows()) * making(given_.columns()); }
  void make(const weir::Stencil<T>& stencil, std::size_t number,
            const weir::Outlet<Region>& out) const {
    const std::size_t across = making(given_.rows());
    const std::size_t row = number / across * edge_, column = number % across * edge_;
    stencil.set(out, row, column, std::min(edge_, given_.columns() - row),
                std::min(edge_, given_.rows() - column), &given_(column, row), given_.rows());
  }

  /// The baseline: columns, the tasks of each, the kernel, and its results in order.
  void make_tasks(const weir::Pipeline& pipeline) {
    if (own_.sweeps > 1 && between_.size() == 0) {
      between_ = Matrix<T>(given_.rows(), given_.columns());
    }
    T* const made = result_.template data<T>();
    std::copy(from_, from_ + given_.size(), made);
    const std::size_t n = given_.rows(), inner = given_.columns() > 2 && n > 2 ? n - 2 : 0;
    const auto columns = pipeline.tunnel<std::uint32_t>("columns", {.capacity = 16});
    const auto tasks = pipeline.tunnel<Task>("tasks", {.capacity = 65'536});
    const auto values = pipeline.tunnel<T>("values", {.capacity = 65'536});
    pipeline.source("columns", weir::into(columns),
                    [last = inner > 0 ? given_.columns() - 1 : 1,
                     next = std::uint32_t{1}](const auto& out) mutable {
                      if (next < last) out.put(next++);
                      return next < last;
                    });
    pipeline.stage("make", columns, weir::into(tasks),
                   [this, n, inner](std::uint32_t column, const weir::Outlet<Task>& out) {
                     const T* const x = from_ + column * n;
                     for (std::size_t i = 1; i <= inner; ++i) {
                       out.put({{x[i], x[i - 1], x[i + 1], (x - n)[i], (x + n)[i]}});
                     }
                   },
                   {.ordered = true, .item_ns = kTaskNs * static_cast<double>(inner)});
    weir::KernelStageOptions options{.ordered = true};
    runner_.set_batches(options);
    pipeline.kernel("stencil", tasks, weir::into(values), kernel_, place_, options);
    pipeline.stage("collect", values,
                   [made, n, inner, next = std::size_t{0}](T value) mutable {
                     made[(next / inner + 1) * n + next % inner + 1] = value;
                     ++next;
                   },
                   {.workers = 1, .item_ns = kResultNs});
  }

  Matrix<T> reference() const {
    Matrix<T> now(given_.rows(), given_.columns()), next(given_.rows(), given_.columns());
    copy(given_, now);
    copy(given_, next);
    for (std::size_t sweep = 0; sweep < own_.sweeps; ++sweep) {
      for (std::size_t j = 1; j + 1 < given_.columns(); ++j) {
        for (std::size_t i = 1; i + 1 < given_.rows(); ++i) {
          T sum = now(i, j) + now(i - 1, j);
          sum += now(i + 1, j);
          sum += now(i, j - 1);
          sum += now(i, j + 1);
          next(i, j) = sum * static_cast<T>(0.2);
        }
      }
      std::swap(now, next);
    }
    return now;
  }

  Matrix<T> given_, between_;
  const std::size_t edge_;
  const StencilParameters own_;
  const std::string output_;
  const weir::Runtime& runtime_;
  const weir::Place& place_;
  weir::Kernel kernel_;
  weir::Buffer result_;
  const T* from_ = nullptr;  ///< values of the sweep
  std::size_t sweep_ = 0;
  PipelineRunner runner_;
  std::uint64_t copied_before_ = 0, copied_ = 0;
  nlohmann::ordered_json stages_ = nlohmann::ordered_json::object();
};

template <class T>
std::unique_ptr<Workload> prepare_in(const Parameters& parameters, const StencilParameters& own,
                                     const weir::Runtime& runtime, const AppStreams& app_streams) {
  constexpr std::size_t kMatrices = 6;
  if (!parameters.output.empty()) check_output_format(parameters.output);
  Matrix<T> given;
  if (parameters.input.empty()) {
    given = make_matrix<T>(parameters.n, parameters.n, kMatrices);
    fill_random(given, parameters.seed);
  } else {
    given = read_table<T>(parameters.input);
  }
  const std::size_t most = std::max(given.rows(), given.columns());
  const std::size_t edge = choose_tile(most, parameters.tile, parameters.tiles, 0);
  return std::make_unique<StencilRun<T>>(std::move(given), edge, parameters, own, runtime,
                                         app_streams);
}

class StencilApplication final : public Application {
 public:
  const char* name() const override { return "stencil"; }
  const char* example() const override {
    return "weir run stencil --n 2048 --sweeps 3 --domains host,sim:gbps=6";
  }
  const char* summary() const override {
    return "compute five-point means of an --n x --n matrix while its tiles arrive, as a pipeline";
  }
  bool has_pipeline() const override { return true; }
  bool uses(std::string_view option) const override { return option != "--streams"; }
  std::span<const Preset> presets() const override { return kPresets; }
  const char* input_help() const override { return "The matrix: .npy, Matrix Market or CSV"; }
  void add_options(CommandOptions& options) override {
    options.add("--sweeps", own_.sweeps, "Number of sweeps [1]")
        .within(std::size_t{1}, std::size_t{100'000});
    add_pipeline_switches(options, own_.switches,
                          "Copy the five values of each mean into a task (for comparison)");
    options
        .add(
            "--lazy", [this](const std::string& word) { own_.lazy = word == "on"; },
            "on: copy each region when it is complete; off: copy the whole matrix [on]")
        .one_of({"on", "off"});
  }
  void register_kernels(const Parameters& parameters, const weir::Runtime& runtime) const override {
    const bool tasks = own_.switches.baseline;
    if (parameters.single) {
      tasks ? make_task_kernel<float>(runtime) : make_tile_kernel<float>(runtime);
    } else {
      tasks ? make_task_kernel<double>(runtime) : make_tile_kernel<double>(runtime);
    }
  }
  std::unique_ptr<Workload> prepare(const Parameters& parameters, const weir::Runtime& runtime,
                                    const AppStreams& app_streams) override {
    const Parameters filled = with_usual(parameters, kPresets[1]);
    return filled.single ? prepare_in<float>(filled, own_, runtime, app_streams)
                         : prepare_in<double>(filled, own_, runtime, app_streams);
  }

 private:
  StencilParameters own_;
};

}  // namespace

std::unique_ptr<Application> make_stencil() { return std::make_unique<StencilApplication>(); }

}  // namespace weir::apps
