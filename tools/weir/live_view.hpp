// What a running pipeline does, in the terminal.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "common/watched_pipeline.hpp"

namespace weir::cli {

/// Shows on standard error what happened in the stages of a pipeline in the last period: items a
/// second, how busy they were, what waits for them, what was dropped, and how old items were when
/// the stage was done with them. A terminal gets a table four times a second, in place; anything
/// else a line each second. When a run is over it says so of the whole run.
class LiveView {
 public:
  /// Throws Error{unsupported} for what has no pipeline; null is such.
  LiveView(apps::WatchedPipeline* watched, std::string application);
  LiveView(const LiveView&) = delete;
  LiveView& operator=(const LiveView&) = delete;
  ~LiveView();

  /// Looks at the pipeline from now on, which may not be there yet.
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
  std::size_t lines_ = 0;  ///< of the table that is there
  std::mutex mutex_;       ///< of all that follows, and of the terminal
  std::condition_variable changed_;
  std::size_t run_ = 0, runs_ = 0;
  bool running_ = false, leaving_ = false;
  std::optional<weir::PipelineState> before_;  ///< its names may be gone
  std::thread watcher_;
};

}  // namespace weir::cli
