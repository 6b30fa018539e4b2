#include "report_text.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "report/analysis.hpp"
#include "terminal.hpp"

namespace weir::cli {

namespace {

using report::Analysis;
using report::Json;
using report::Judgement;

std::string percent(double part, double whole) {
  return whole > 0 ? fmt::format("{:.0f} %", 100 * part / whole) : "-";
}

Tone tone_of(Judgement judgement) {
  return judgement == Judgement::good  ? Tone::good
         : judgement == Judgement::bad ? Tone::bad
                                       : Tone::warning;
}

/// Returns a text member of a JSON object, "" if the object has no such member.
std::string text_in(const Json& object, const char* key) {
  const bool has = object.is_object() && object.contains(key) && object[key].is_string();
  return has ? object[key].get<std::string>() : "";
}

void add_summary(Table& table, const Analysis& analysis) {
  const auto row = [&](const char* name, std::string value) {
    table.add({paint(name, Tone::faint), std::move(value)});
  };
  std::string time = format_seconds(analysis.measured_s);
  if (analysis.ideal_s > 0) {
    time += fmt::format(", {:.2f} times the busiest place or link",
                        analysis.measured_s / analysis.ideal_s);
  }
  row("recorded", time);
  row("kernels", fmt::format("{} in {}, {} of the cores' time", format_count(analysis.kernels),
                             format_seconds(analysis.compute_s),
                             percent(analysis.spent.work_s, analysis.measured_s)));
  if (analysis.transfer_s > 0) {
    row("transfers", fmt::format("{}, {} of it hidden", format_seconds(analysis.transfer_s),
                                 percent(analysis.hidden_s, analysis.transfer_s)));
  }
  row("longest chain", fmt::format("{}, {} of the time", format_seconds(analysis.critical_s),
                                   percent(analysis.critical_s, analysis.measured_s)));
}

std::string resources_of(const Analysis& analysis) {
  if (analysis.resources.empty()) return "";
  Table table;
  table.add({"place or link", "busy", "actions", "moved"});
  for (const report::Resource& each : analysis.resources) {
    table.add({each.name, percent(each.busy_s, analysis.measured_s), format_count(each.actions),
               each.is_link ? format_bytes(each.bytes) : ""});
  }
  return "\n" + table.text(2, {1, 2, 3});
}

std::string kinds_of(const Analysis& analysis) {
  constexpr std::size_t kMost = 12;
  if (analysis.kinds.empty()) return "";
  Table table;
  table.add({"kernel or copy", "calls", "total", "waited"});
  for (std::size_t i = 0; i < std::min(kMost, analysis.kinds.size()); ++i) {
    const report::KindOfAction& each = analysis.kinds[i];
    table.add({each.name, format_count(each.calls), format_seconds(each.total_s),
               format_seconds(each.waited_s)});
  }
  std::string text = "\n" + table.text(2, {1, 2, 3});
  if (analysis.kinds.size() > kMost) {
    text += fmt::format("  and {} more\n", analysis.kinds.size() - kMost);
  }
  return text;
}

std::string findings_of(const Analysis& analysis) {
  std::string text = analysis.findings.empty() ? "" : "\n";
  for (const report::Finding& each : analysis.findings) {
    text += fmt::format("  {} {}\n", paint("-", tone_of(each.judgement)), each.words);
  }
  return text;
}

std::string text_of(const report::Part& part) {
  Table table;
  const std::string command = text_in(part.facts, "command");
  if (!command.empty()) table.add({paint("command", Tone::faint), command});
  const std::string title = paint(part.source, Tone::strong) + "\n";
  if (!part.trace) {
    table.add({paint("recorded", Tone::faint),
               "nothing: repeat the command with --trace FILE to see where the time went"});
    return title + table.text(2);
  }
  const Analysis analysis = report::analyze(*part.trace, report::choices_of(part.facts));
  add_summary(table, analysis);
  return title + table.text(2) + resources_of(analysis) + kinds_of(analysis) +
         findings_of(analysis);
}

}  // namespace

std::string report_text(const std::vector<report::Part>& parts) {
  std::string text;
  for (const report::Part& part : parts) text += (text.empty() ? "" : "\n") + text_of(part);
  return text;
}

}  // namespace weir::cli
