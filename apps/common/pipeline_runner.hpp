// Runs pipelines of applications, with techniques that can be switched off, and reports their
// figures.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include <nlohmann/json.hpp>
#include <weir/pipeline.hpp>

#include "common/chunk_loop.hpp"
#include "common/command_options.hpp"
#include "common/watched_pipeline.hpp"

namespace weir::apps {

/// Options of all pipelines.
struct PipelineSwitches {
  bool baseline = false;  ///< the form of the paper that pipelines are compared with
  ChunkOverlap overlap = ChunkOverlap::copies;  ///< of the baseline
  bool batching = true;                         ///< otherwise stages get one item at a time
  std::size_t batch = 0;      ///< items of a batch on a device; 0: the pipeline chooses
  std::size_t in_flight = 0;  ///< batches on a device; 0: the pipeline chooses
  bool end_tracking = true;   ///< otherwise the end is guessed from a silence
  weir_relief relief = WEIR_RELIEF_BOTH;
  bool operator==(const PipelineSwitches&) const = default;
};
void add_pipeline_switches(CommandOptions& options, PipelineSwitches& switches,
                           const char* baseline_help);

/// Runs one pipeline after the other, with the techniques that the switches leave.
///
/// Without end tracking a feed stays open, so that the pipeline never ends by itself; it is closed
/// when nothing was counted for a while. This measures the cost of timeouts; weir still counts, so
/// a timeout that was too short loses nothing.
class PipelineRunner {
 public:
  /// Throws Error{unsupported} where a switch makes no sense.
  PipelineRunner(const weir::Runtime& runtime, const PipelineSwitches& switches);

  // From one thread. They throw Error.
  /// Makes a pipeline, adds what connect() does, and starts it.
  void begin(weir::PipelineOptions options,
             const std::function<void(const weir::Pipeline&)>& connect);
  /// Waits for the end of the pipeline; destroys it after a failure.
  void wait(std::chrono::nanoseconds timeout);
  void reset() noexcept;
  /// Stages that have an input.
  std::vector<weir_stage_info> stages() const;
  /// Sets the batches of a stage on a device as the switches say.
  template <class Options>
  void set_batches(Options& options) const noexcept {
    if (!switches_.batching) {
      options.batch = 1;
    } else if (switches_.batch > 0) {
      options.batch = switches_.batch;
    }
    if (switches_.in_flight > 0) options.in_flight = switches_.in_flight;
  }
  /// Adds the switches, and of the last run `pipeline`: its graph in figures, with findings.
  void describe(nlohmann::ordered_json& json) const;

  // Any thread.
  void watch() noexcept;
  /// See WatchedPipeline.
  void observe(const UsePipeline& use) const;
  /// Cancels the pipeline, and later ones before they start.
  void cancel() noexcept;

 private:
  void wait_for_silence(std::chrono::nanoseconds timeout);
  void prop_open();

  const weir::Runtime& runtime_;
  const PipelineSwitches switches_;
  mutable std::mutex mutex_;  ///< pipeline_ is made or destroyed, or others look at it
  bool watched_ = false, cancelled_ = false;
  std::optional<weir::Pipeline> pipeline_;
  weir::Feed<char> prop_;  ///< keeps it from its end
  double waited_s_ = 0;    ///< from the last thing that was counted to the end
};

}  // namespace weir::apps
