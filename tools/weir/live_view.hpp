// Shows the state of a running pipeline in the terminal.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "common/watched_pipeline.hpp"

namespace weir::cli {

/// Shows on standard error, for the stages of a pipeline in the last period: items per second,
/// utilisation, waiting items, dropped items, and the age of items when the stage completed them. A
/// terminal gets a table four times a second, in place; other output gets a line each second. At
/// the end of a run it shows the same for the whole run.
class LiveView {
 public:
  /// Throws Error{unsupported} when `watched` is null: the application has no pipeline.
  LiveView(apps::WatchedPipeline* watched, std::string application);
  LiveView(const LiveView&) = delete;
  LiveView& operator=(const LiveView&) = delete;
  ~LiveView();

  /// Watches the pipeline from now on; it may not exist yet.
  void begin_run(std::size_t run, std::size_t runs);
  void end_run();

 private:
  void watch();
  std::string period(const weir::PipelineState& state);
  std::string drawn(const weir::PipelineState& state, const weir::PipelineState* before);
  static void show(const std::string& text);
  std::string title(const weir::PipelineState& state) const;

  apps::WatchedPipeline* const watched_;
  const std::string application_;
  const bool in_place_;
  std::size_t lines_ = 0;  ///< of the table on the terminal
  std::mutex mutex_;       ///< guards the members below and the terminal
  std::condition_variable changed_;
  std::size_t run_ = 0, runs_ = 0;
  bool running_ = false, leaving_ = false;
  std::optional<weir::PipelineState> before_;  ///< its names may no longer be valid
  std::thread watcher_;
};

}  // namespace weir::cli
