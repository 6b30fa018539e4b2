#include "run_report.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>
#include <weir/version.h>
#include <nlohmann/json.hpp>

#include "report/page.hpp"
#include "terminal.hpp"

namespace weir::cli {

namespace {

using Json = nlohmann::ordered_json;

double median(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  const std::size_t half = samples.size() / 2;
  return samples.size() % 2 == 1 ? samples[half] : (samples[half - 1] + samples[half]) / 2;
}

double least(const std::vector<double>& samples) {
  return *std::min_element(samples.begin(), samples.end());
}

double most(const std::vector<double>& samples) {
  return *std::max_element(samples.begin(), samples.end());
}

/// Returns the error of a check relative to its limit: 1 is at the limit; NaN counts as infinite.
double strain(const apps::Verification& check) {
  constexpr double kBeyond = std::numeric_limits<double>::infinity();
  const double share = check.value / check.limit;
  if (!check.passed()) return share < kBeyond ? share : kBeyond;
  return check.limit > 0 ? share : 0;
}

/// The check that came closest to its limit, or went furthest beyond.
const apps::Verification* worst(const std::vector<apps::Verification>& checks) {
  const auto found =
      std::max_element(checks.begin(), checks.end(),
                       [](const auto& a, const auto& b) { return strain(a) < strain(b); });
  return found == checks.end() ? nullptr : &*found;
}

Json as_json(const apps::Verification& check) {
  return {{"metric", check.metric}, {"value", check.value}, {"limit", check.limit}};
}

double rate_of(const RunReport& report) {
  const double seconds = median(report.samples);
  return seconds > 0 ? report.operations / seconds : 0;
}

double traffic_rate_of(const RunReport& report) {
  const double seconds = median(report.samples);
  return seconds > 0 ? report.traffic / seconds : 0;
}

/// Of a brief run, too: never 0.0.
std::string giga(double rate, const char* unit) {
  const double value = rate / 1e9;
  return value < 0.95 ? fmt::format("{:.2g} G{}", value, unit)
                      : fmt::format("{:.1f} G{}", value, unit);
}

std::string gflops(double rate) { return giga(rate, "FLOP/s"); }

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

Json domain_names(const Json& description) {
  Json names = Json::array();
  for (const Json& domain : description.at("domains")) names.push_back(domain.at("name"));
  return names;
}

std::string where(const RunReport& report, const Json& description) {
  std::string text;
  for (const Json& domain : description.at("domains")) {
    text.append(text.empty() ? "" : "; ");
    text.append(fmt::format("{}: cores {}", domain.at("name").get<std::string>(),
                            domain.at("cores").get<int>()));
    if (report.uses_places) text.append(fmt::format(", places {}", report.sharing.places));
    if (report.uses_streams) text.append(fmt::format(", streams {} each", report.sharing.streams));
  }
  return text;
}

std::string time_of(const RunReport& report) {
  const std::string typical = format_seconds(median(report.samples));
  if (report.samples.size() == 1) return typical + ", one run";
  return fmt::format("{}, median of {} runs ({} to {})", typical, report.samples.size(),
                     format_seconds(least(report.samples)), format_seconds(most(report.samples)));
}

/// Returns why the share of the gemm peak is not known.
std::string peak_problem(const RunReport& report) {
  std::string peaks;
  for (const double each : report.gemm_peaks) {
    peaks += (peaks.empty() ? "" : " and ") + gflops(each);
  }
  return fmt::format(
      "the gemm peak of this machine is not known: it was measured as {}, which other programs or "
      "a changed clock frequency must have slowed: run it again",
      peaks);
}

std::string speed_of(const RunReport& report) {
  const double rate = rate_of(report);
  if (report.traffic > 0) {
    return fmt::format("{}, {}", gflops(rate), giga(traffic_rate_of(report), "B/s"));
  }
  if (report.gemm_peaks.empty()) return gflops(rate);
  if (report.gemm_peak_failed()) return gflops(rate) + "; " + peak_problem(report);
  return fmt::format("{}, {} of this machine's gemm peak ({})", gflops(rate),
                     percent(rate / report.gemm_peak()), gflops(report.gemm_peak()));
}

Json as_json_of_peak(const RunReport& report) {
  const double rate = rate_of(report), peak = report.gemm_peak();
  Json json = {{"value", peak / 1e9}, {"unit", "GFLOP/s"}, {"share", rate / peak}};
  for (const double each : report.gemm_peaks) json["samples"].push_back(each / 1e9);
  if (!report.gemm_peak_failed()) return json;
  json["share"] = nullptr;
  json["problem"] = peak_problem(report);
  return json;
}

std::string overlap_of(const RunReport& report) {
  const weir_trace_summary& trace = report.trace;
  std::string text =
      fmt::format("measured / ideal = {:.2f}: {} of computing, {} of transfers, {} of them hidden",
                  trace.overlap_ratio, format_seconds(trace.compute_s),
                  format_seconds(trace.transfer_s), format_seconds(trace.hidden_s));
  if (report.samples.size() > 1) {
    text += fmt::format(" (the last run, {})", format_seconds(report.samples.back()));
  }
  return text;
}

std::string traffic_of(const RunReport& report) {
  return fmt::format("{}; {} to devices, {} back, {} between them", format_count(report.actions),
                     format_bytes(report.bytes_h2d), format_bytes(report.bytes_d2h),
                     format_bytes(report.bytes_d2d));
}

std::string tasks_of(const RunReport& report) {
  std::string text = "policy " + report.policy;
  for (const weir_queue_share& share : report.shares) {
    text.append(fmt::format("; {} {}", share.place, format_count(share.tasks)));
  }
  return text;
}

}  // namespace

bool RunReport::verified() const noexcept {
  return std::all_of(checks.begin(), checks.end(),
                     [](const auto& check) { return check.passed(); });
}

double RunReport::gemm_peak() const noexcept { return gemm_peaks.empty() ? 0 : most(gemm_peaks); }

bool RunReport::gemm_peak_failed() const noexcept {
  return !gemm_peaks.empty() && rate_of(*this) > gemm_peak();
}

std::string RunReport::text() const {
  const Json facts = Json::parse(description);
  Table table;
  const auto row = [&](const char* name, std::string value) {
    table.add({paint(name, Tone::faint), std::move(value)});
  };
  row("on", where(*this, facts));
  row("time", time_of(*this));
  if (operations > 0) row("speed", paint(speed_of(*this), Tone::strong));
  row("actions", traffic_of(*this));
  if (!policy.empty()) row("tasks", tasks_of(*this));
  for (const auto& [name, remark] : remarks) row(name.c_str(), remark);
  if (trace.ideal_s > 0) {
    row("overlap", overlap_of(*this));
    row("idle", fmt::format("{} of the cores' time; critical path {}", percent(trace.idle_share),
                            format_seconds(trace.critical_path_s)));
  }
  if (!analysis.findings.empty()) row("look at", analysis.findings.front().words);
  for (const apps::Figure& figure : figures) {
    row("result", fmt::format("{} = {:.10g}", figure.name, figure.value));
  }
  for (const apps::Verification& check : checks) {
    row(check.passed() ? "verified" : "WRONG",
        paint(fmt::format("{} = {:.3g}, limit {:g}", check.metric, check.value, check.limit),
              check.passed() ? Tone::good : Tone::bad));
  }
  if (!trace_file.empty()) {
    row("timeline", trace_file + " (drop it into https://ui.perfetto.dev)");
  }
  if (!page.empty()) row("report", page + " (open it in a browser)");
  const std::string steps = iterations > 0 ? fmt::format(", iterations {}", iterations) : "";
  const std::string tiles = tile > 0 ? fmt::format(", tile {}", tile) : "";
  const std::string title = fmt::format("{}: n {}{}{}{}{}", application, n, tiles, steps,
                                        precision.empty() ? "" : ", ", precision);
  return fmt::format("{}\n{}", paint(title, Tone::strong), table.text(2));
}

std::string RunReport::json() const {
  const Json facts = Json::parse(description);
  Json json;
  json["schema"] = "weir.run/1";
  json["version"] = weir_version();
  json["app"] = application;
  json["command"] = command;
  json["params"] = {{"n", n},
                    {"tile", tile},
                    {"precision", precision.empty() ? Json(nullptr) : Json(precision)},
                    {"repeat", repeat},
                    {"seed", parameters.seed},
                    {"input", parameters.input}};
  if (!size.empty()) json["params"]["size"] = size;
  if (iterations > 0) {
    json["params"]["iterations"] = iterations;
    json["params"]["transform"] = parameters.transform ? "on" : "off";
  }
  if (parameters.aspect > 1) json["params"]["aspect"] = parameters.aspect;
  if (parameters.kernels != apps::TileKernels::automatic) {
    json["params"]["kernels"] = parameters.kernels == apps::TileKernels::team ? "team" : "serial";
  }
  json["domains"] = domain_names(facts);
  json["places"] = uses_places ? Json(sharing.places) : Json(nullptr);
  json["streams"] = uses_streams ? Json(sharing.streams) : Json(nullptr);
  json["tiles"] = tiles;
  json["seconds"] = {{"median", median(samples)},
                     {"min", least(samples)},
                     {"max", most(samples)},
                     {"recorded", samples.back()},
                     {"samples", samples}};
  json["verified"] = checks.empty() ? Json(nullptr) : Json(verified());
  json["error"] = checks.empty() ? Json(nullptr) : as_json(*worst(checks));
  for (const apps::Verification& check : checks) json["checks"].push_back(as_json(check));
  json["rate"] = {{"value", rate_of(*this) / 1e9}, {"unit", "GFLOP/s"}};
  if (traffic > 0) json["traffic"] = {{"value", traffic_rate_of(*this) / 1e9}, {"unit", "GB/s"}};
  for (const apps::Figure& figure : figures) json["results"][figure.name] = figure.value;
  if (!gemm_peaks.empty()) json["gemm_peak"] = as_json_of_peak(*this);
  json["actions"] = actions;
  json["bytes"] = {
      {"h2d", bytes_h2d}, {"d2h", bytes_d2h}, {"d2d", bytes_d2d}, {"evicted", bytes_evicted}};
  json["overlap"] = {{"transfer_s", trace.transfer_s}, {"compute_s", trace.compute_s},
                     {"measured_s", trace.measured_s}, {"ideal_s", trace.ideal_s},
                     {"ratio", trace.overlap_ratio},   {"hidden_s", trace.hidden_s},
                     {"idle_share", trace.idle_share}, {"critical_path_s", trace.critical_path_s}};
  json["findings"] = report::as_json(analysis.findings);
  json["policy"] = policy.empty() ? Json(nullptr) : Json(policy);
  for (const weir_queue_share& share : shares) {
    json["shares"].push_back({{"place", share.place},
                              {"tasks", share.tasks},
                              {"busy_s", static_cast<double>(share.busy_ns) / 1e9},
                              {"bytes_in", share.bytes_in},
                              {"bytes_out", share.bytes_out}});
  }
  json.update(Json::parse(details));
  if (!trace_file.empty()) json["trace"] = trace_file;
  json["machine"] = facts.at("machine");
  json["blas"] = facts.at("blas");
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace weir::cli
