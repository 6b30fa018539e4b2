// The report of `weir run`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <weir/weir.hpp>

#include "common/workload.hpp"
#include "report/analysis.hpp"

namespace weir::cli {

/// The facts of one `weir run`. Counts are those of the last repetition.
struct RunReport {
  std::string application;
  std::string precision;  ///< "": it has none
  apps::Parameters parameters;
  apps::Sharing sharing;
  bool uses_places = true;   ///< whether the run uses the number of places
  bool uses_streams = true;  ///< likewise
  std::size_t repeat = 0;
  std::string size;  ///< name of a preset, "": none
  std::size_t n = 0, tile = 0, tiles = 0, iterations = 0;
  double operations = 0;
  double traffic = 0;              ///< bytes that the kernels move, 0: not counted
  std::vector<double> gemm_peaks;  ///< operations a second, before and after the runs; or none
  std::vector<double> samples;     ///< seconds; the last is that of the recording
  std::vector<apps::Figure> figures;
  std::vector<apps::Verification> checks;
  std::uint64_t actions = 0, bytes_h2d = 0, bytes_d2h = 0, bytes_d2d = 0, bytes_evicted = 0;
  std::string policy;                    ///< of the task queue, "": streams
  std::vector<weir_queue_share> shares;  ///< of its places
  weir_trace_summary trace = WEIR_TRACE_SUMMARY_INIT;
  report::Analysis analysis;  ///< of the recording; empty: it was too long to read
  std::string trace_file;
  std::string page;                                          ///< file of the report, "": none
  std::string command;                                       ///< that made it, for a shell
  std::string description;                                   ///< of the runtime, JSON
  std::vector<std::pair<std::string, std::string>> remarks;  ///< of the application
  std::string details = "{}";                                ///< likewise, a JSON object
  std::vector<std::string> complaints;                       ///< likewise
  bool silent = false;                                       ///< another process reports

  /// Whether no check failed.
  bool verified() const noexcept;
  /// Returns the larger measurement of the gemm peak: other programs only make one slower.
  double gemm_peak() const noexcept;
  /// Whether the gemm peak, which nothing can exceed, was measured too low to compare with.
  bool gemm_peak_failed() const noexcept;

  /// Returns the report as text.
  std::string text() const;
  /// One object, schema "weir.run/1".
  std::string json() const;
};

}  // namespace weir::cli
