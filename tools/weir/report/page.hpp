// The report: one HTML file that needs nothing else.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "report/analysis.hpp"
#include "report/trace_file.hpp"

namespace weir::cli::report {

using Json = nlohmann::ordered_json;

/// One part of a report: the JSON that a command printed with --json, a recording, or both.
struct Part {
  std::string source;  ///< name of its file
  Json facts;          ///< null: there is only a recording
  std::optional<Trace> trace;
};

/// Returns the choices of the program of a run, from the JSON of `weir run`; null: unknown.
Choices choices_of(const Json& facts);

/// Returns findings as an array of objects with `judgement` and `words`.
Json as_json(const std::vector<Finding>& findings);

/// Reads files of either kind; the recording that a run names is looked for beside its file and in
/// the working folder. Throws apps::InputError.
std::vector<Part> read_parts(const std::vector<std::string>& paths);

/// Writes the report, which appears when it is complete. Throws apps::InputError.
void write_page(const std::vector<Part>& parts, const std::string& command,
                const std::string& path);

}  // namespace weir::cli::report
