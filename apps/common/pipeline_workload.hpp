// A problem whose solution is a pipeline.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>
#include <weir/pipeline.hpp>

#include "common/chunk_loop.hpp"
#include "common/command_options.hpp"
#include "common/pipeline_runner.hpp"
#include "common/workload.hpp"

namespace weir::apps {

/// Where the baseline is a ChunkLoop.
void add_pipeline_switches(CommandOptions& options, PipelineSwitches& switches);

/// Where stages run.
enum class StagePlaces {
  hosts,             ///< all on host places
  hosts_and_device,  ///< one of them on a device, when there is one
};

/// Runs the stages of a problem as a pipeline, or as the chunk loop that is its baseline, and
/// counts their items.
class PipelineWorkload : public Workload, public WatchedPipeline {
 public:
  std::size_t tile() const override { return 0; }
  std::size_t tiles() const override { return 0; }
  double operations() const override { return 0; }

  void reset() final;
  void enqueue() final;
  void await(std::chrono::nanoseconds timeout) final;
  void cancel() noexcept final { runner_.cancel(); }
  bool watch() final;
  void observe(const UsePipeline& use) const final { runner_.observe(use); }

  std::vector<std::pair<std::string, std::string>> remarks() const override;
  /// Calls describe().
  std::string details() const final;

 protected:
  PipelineWorkload(const weir::Runtime& runtime, const AppStreams& app_streams, const char* name,
                   const PipelineSwitches& switches, StagePlaces places = StagePlaces::hosts);

  /// Forgets the results of the run before.
  virtual void clear() = 0;
  /// Returns the options of the pipeline, except its name, place and batches.
  virtual weir::PipelineOptions wanted() { return {}; }
  /// Adds tunnels and stages; what it captures must live as long as this.
  virtual void connect(const weir::Pipeline& pipeline) = 0;
  /// Does the same without a pipeline.
  virtual void loop(ChunkLoop& chunks) = 0;
  /// How many tasks a stage of the last run had: its items, unless it makes some of its own.
  virtual std::uint64_t tasks_of(const weir_stage_info& stage) const { return stage.complete; }
  /// Adds the results to the JSON report.
  virtual void describe(nlohmann::ordered_json&) const {}

  /// Returns where stage `index` runs: round robin over the places, except devices that run another
  /// stage; in virtual time an item takes a core of a simulated host `item_ns`.
  weir::StageOptions at(std::size_t index, double item_ns) const;
  /// A place for a stage that is a kernel; null: the stage is to run on the host.
  const weir::Place* device() const noexcept { return device_; }
  bool device_runs(const char* backend) const {
    return device_ != nullptr && device_backend_ == backend;
  }
  weir_relief relief() const noexcept { return switches_.relief; }
  /// Adds a stage on the device.
  template <class In, class Out>
  void connect_kernel(const weir::Pipeline& pipeline, const char* name,
                      const weir::Tunnel<In>& input, const weir::Tunnel<Out>& output,
                      const DeviceStage& stage) const {
    weir::KernelStageOptions options = stage.options;
    set_batches(options);
    pipeline.kernel(name, input, weir::into(output), stage.kernel, *device_, options);
  }
  /// Cores that may work at once: more than any StageContext::worker() or ChunkPart::index.
  std::size_t workers() const noexcept { return streams_.cores(); }
  bool baseline() const noexcept { return switches_.baseline; }
  /// Sets the batches of a stage on a device as the switches say.
  void set_batches(weir::KernelStageOptions& options) const noexcept {
    runner_.set_batches(options);
  }
  /// Items that a stage had in the last run.
  std::uint64_t items(const char* stage) const;

 private:
  void find_places(StagePlaces wanted);

  const weir::Runtime& runtime_;
  const AppStreams& streams_;
  const std::string name_;
  const PipelineSwitches switches_;
  std::vector<std::size_t> places_;  ///< of stages that are functions, among those of the streams
  const weir::Place* device_ = nullptr;
  std::string device_backend_;
  const AppStream* device_stream_ = nullptr;
  std::vector<ChunkLoop::Stage> stages_;  ///< of the last run
  std::optional<ChunkLoop> chunks_;       ///< of the baseline
  PipelineRunner runner_;
};

}  // namespace weir::apps
