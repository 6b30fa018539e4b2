#include "report/page.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <type_traits>
#include <utility>

#include <weir/weir.h>

#include <fmt/format.h>
#include <report.html.h>
#include "common/file.hpp"
#include "common/input_error.hpp"
#include "report/trace_parts.hpp"

namespace weir::cli::report {

namespace {

constexpr std::size_t kMostNames = 50'000;  ///< others are called by their kind
constexpr unsigned kFailed = 16;            ///< added to a kind

std::string base64(const void* data, std::size_t size) {
  static constexpr char kDigits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const auto* const bytes = static_cast<const unsigned char*>(data);
  std::string text((size + 2) / 3 * 4, '=');
  std::size_t out = 0;
  for (std::size_t i = 0; i < size; i += 3) {
    const std::size_t here = std::min<std::size_t>(3, size - i);
    const unsigned word = static_cast<unsigned>(bytes[i]) << 16 |
                          (here > 1 ? static_cast<unsigned>(bytes[i + 1]) << 8 : 0) |
                          (here > 2 ? static_cast<unsigned>(bytes[i + 2]) : 0);
    for (std::size_t digit = 0; digit <= here; ++digit) {
      text[out + digit] = kDigits[word >> (18 - 6 * digit) & 63];
    }
    out += 4;
  }
  return text;
}

/// Text of a JSON object that may stand inside a page.
std::string embedded(const Json& json) {
  const std::string plain = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string text;
  text.reserve(plain.size());
  for (const char c : plain) {
    if (c == '<') {
      text += "\\u003c";
    } else {
      text += c;
    }
  }
  return text;
}

/// A property of all slices, in little-endian numbers.
template <class T, class Property>
std::string column(const std::vector<Slice>& slices, Property property) {
  std::vector<T> values;
  values.reserve(slices.size());
  for (const Slice& slice : slices) values.push_back(static_cast<T>(property(slice)));
  return base64(values.data(), values.size() * sizeof(T));
}

Json as_json(const Analysis& analysis) {
  Json json = {{"measured_s", analysis.measured_s}, {"compute_s", analysis.compute_s},
               {"transfer_s", analysis.transfer_s}, {"hidden_s", analysis.hidden_s},
               {"ideal_s", analysis.ideal_s},       {"critical_s", analysis.critical_s},
               {"failed", analysis.failed}};
  json["resources"] = json["kinds"] = Json::array();
  for (const Resource& each : analysis.resources) {
    json["resources"].push_back({{"name", each.name},
                                 {"link", each.is_link},
                                 {"actions", each.actions},
                                 {"bytes", each.bytes},
                                 {"busy_s", each.busy_s},
                                 {"streams", each.streams}});
  }
  for (const KindOfAction& each : analysis.kinds) {
    json["kinds"].push_back({{"name", each.name},
                             {"calls", each.calls},
                             {"total_s", each.total_s},
                             {"waited_s", each.waited_s}});
  }
  json["findings"] = as_json(analysis.findings);
  return json;
}

/// Appends the properties of all slices, in columns. Times are in ticks, so that 32 bits hold all
/// of them.
void append_columns(const Trace& trace, const Analysis& analysis, double tick_ns,
                    apps::OutputFile& file) {
  const auto& slices = trace.slices;
  const char* separator = "";
  const auto append = [&](const char* name, const std::string& column) {
    file.append(fmt::format("{}\"{}\":\"", separator, name));
    file.append(column);
    file.append("\"");
    separator = ",\n";
  };
  const auto times = [&](const char* name, std::int64_t Slice::*time) {
    append(name, column<std::uint32_t>(slices, [&](const Slice& slice) {
             return static_cast<double>(slice.*time) / tick_ns;
           }));
  };
  times("started", &Slice::started);
  times("duration", &Slice::duration);
  times("enqueued", &Slice::enqueued);
  times("ready", &Slice::ready);
  append("bytes", column<float>(slices, [](const Slice& slice) { return slice.bytes; }));
  append("row", column<std::uint32_t>(slices, [](const Slice& slice) { return slice.row; }));
  append("stream", column<std::uint32_t>(slices, [](const Slice& slice) { return slice.stream; }));
  append("name", column<std::uint32_t>(slices, [](const Slice& slice) { return slice.name; }));
  append("kind", column<std::uint8_t>(slices, [](const Slice& slice) {
           return static_cast<unsigned>(slice.kind) + (slice.failed ? kFailed : 0U);
         }));
  append("critical",
         base64(analysis.critical.data(), analysis.critical.size() * sizeof(std::uint32_t)));
}

void append_trace(const Trace& trace, const Choices& choices, apps::OutputFile& file) {
  constexpr double kMostTicks = 4e9;
  const Analysis analysis = analyze(trace, choices);
  const double tick_ns = std::max(1.0, analysis.measured_s * 1e9 / kMostTicks);
  Json json = {{"tick_ns", tick_ns}, {"count", trace.slices.size()}, {"streams", trace.streams}};
  json["rows"] = Json::array();
  for (const TraceRow& row : trace.rows) json["rows"].push_back({{"name", row.name}});
  std::vector<std::string> names = trace.names;
  if (names.size() > kMostNames) names.resize(kMostNames);
  json["names"] = std::move(names);
  json["analysis"] = as_json(analysis);
  std::string text = embedded(json);
  text.pop_back();
  file.append(text);
  file.append(",\"columns\":{");
  append_columns(trace, analysis, tick_ns, file);
  file.append("}}");
}

bool is_recording(std::string_view text) {
  return text.substr(0, 256).find("\"traceEvents\"") != std::string_view::npos ||
         text.substr(0, 256).find("\"otherData\"") != std::string_view::npos;
}

Json parse(std::string_view text, const std::string& path) {
  Json facts = Json::parse(text, nullptr, false);
  const bool ours = facts.is_object() && facts.contains("schema") && facts["schema"].is_string() &&
                    facts["schema"].get<std::string>().starts_with("weir.");
  if (!ours) {
    apps::fail_input("{}: is neither a recording nor what weir prints with --json", path);
  }
  return facts;
}

/// Returns the path of the recording of a run, "" when the file does not exist any more.
std::string find_trace(const Json& facts, const std::string& path) {
  if (!facts.contains("trace") || !facts["trace"].is_string()) return "";
  const std::filesystem::path named = facts["trace"].get<std::string>();
  for (const auto& candidate : {std::filesystem::path(path).parent_path() / named, named}) {
    const bool known = candidate.extension() == ".json" || candidate.extension() == ".pftrace";
    if (known && std::filesystem::is_regular_file(candidate)) {
      return candidate.string();
    }
  }
  return "";
}

Part read_part(const std::string& path) {
  const apps::MappedFile file(path);
  const std::string name = std::filesystem::path(path).filename().string();
  if (is_perfetto(file.bytes()) || is_recording(file.bytes())) {
    return {name, nullptr, read_trace(path)};
  }
  Part part{name, parse(file.bytes(), path), {}};
  const std::string trace = find_trace(part.facts, path);
  if (!trace.empty()) part.trace = read_trace(trace);
  return part;
}

}  // namespace

Choices choices_of(const Json& facts) {
  if (!facts.is_object()) return {};
  const auto value = [](const Json& object, const char* key) {
    return object.is_object() ? object.value(key, Json()) : Json();
  };
  const Json tile = value(value(facts, "params"), "tile");
  return {.streams = value(facts, "streams").is_number(),
          .queue = value(facts, "policy").is_string(),
          .parts = tile.is_number() && tile > 0 ? "tiles" : nullptr,
          .pipeline = value(facts, "pipeline").is_object()};
}

Json as_json(const std::vector<Finding>& findings) {
  static constexpr const char* kJudgements[] = {"good", "fair", "bad"};
  Json json = Json::array();
  for (const Finding& each : findings) {
    json.push_back(
        {{"judgement", kJudgements[static_cast<int>(each.judgement)]}, {"words", each.words}});
  }
  return json;
}

std::vector<Part> read_parts(const std::vector<std::string>& paths) {
  std::vector<Part> parts;
  for (const std::string& path : paths) parts.push_back(read_part(path));
  return parts;
}

void write_page(const std::vector<Part>& parts, const std::string& command,
                const std::string& path) {
  static constexpr std::string_view kMark = "@DATA@";
  const std::string_view page = report_html;
  const std::size_t mark = page.find(kMark);
  apps::OutputFile file(path);
  file.append(page.substr(0, mark));
  file.append(fmt::format(R"({{"version":{},"command":{},"parts":[)", embedded(weir_version()),
                          embedded(command)));
  const char* separator = "";
  for (const Part& part : parts) {
    file.append(separator);
    file.append(fmt::format(R"({{"source":{},"facts":{},"trace":)", embedded(part.source),
                            embedded(part.facts)));
    if (part.trace) {
      append_trace(*part.trace, choices_of(part.facts), file);
    } else {
      file.append("null");
    }
    file.append("}");
    separator = ",";
  }
  file.append("]}");
  file.append(page.substr(mark + kMark.size()));
  file.flush();
  file.commit();
}

}  // namespace weir::cli::report
