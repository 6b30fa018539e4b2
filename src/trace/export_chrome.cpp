// Chrome's trace event format: one JSON object whose "traceEvents" are in the order of their times.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/compile.h>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/json.hpp"
#include "trace/entry.hpp"
#include "trace/export_format.hpp"

namespace weir::rt::trace {

namespace {

bool is_plain(std::string_view text) noexcept {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return c >= ' ' && c <= '~' && c != '"' && c != '\\' && c != '<';
  });
}

/// Writes one event after the other as text, without a tree in memory.
class ChromeWriter {
 public:
  ChromeWriter(const Drawing& drawing, sys::FileWriter& file)
      : recording_(drawing.recording),
        graph_(drawing.graph),
        timeline_(drawing.timeline),
        file_(file) {
    for (const StreamName& stream : recording_.streams)
      streams_.push_back(json_escaped(stream.name));
    // No thread has the number of a process: viewers would take it for a main thread.
    const std::size_t first_thread = timeline_.processes().size() + 1;
    for (const Row& row : timeline_.rows()) {
      rows_.push_back(
          fmt::format(R"("pid":{},"tid":{})", row.process + 1, first_thread + rows_.size()));
    }
  }

  void write_all();

 private:
  template <class Format, class... Args>
  void put(const Format& format, const Args&... args) {
    fmt::format_to(fmt::appender(text_), format, args...);
  }
  void put_name(std::string_view name);
  void put_micros(std::int64_t ns);
  void flush();

  void describe_processes();
  void describe_rows();
  void open_event(char phase, std::uint32_t row);
  void write_moment(const Moment& moment);
  void write_slice(std::uint32_t position);
  void write_arrow(char phase, std::uint32_t number, const Moment& moment);

  const Recording& recording_;
  const Graph& graph_;
  const Timeline& timeline_;
  sys::FileWriter& file_;
  std::vector<std::string> streams_;  ///< escaped names
  std::vector<std::string> rows_;     ///< the beginning of events on them
  fmt::memory_buffer text_;           ///< not yet written to the file
  const char* separator_ = "\n";
};

void ChromeWriter::write_all() {
  put(FMT_COMPILE(R"({{"otherData":{{"producer":"weir","actions":{},"dropped_actions":{}}},)"
                  R"("traceEvents":[)"),
      recording_.entries.size(), recording_.dropped);
  describe_processes();
  describe_rows();
  for (const Moment& moment : timeline_.moments()) {
    write_moment(moment);
    flush();
  }
  put(FMT_COMPILE("\n]}}\n"));
  flush();
}

void ChromeWriter::flush() {
  file_.write(text_.data(), text_.size());
  text_.clear();
}

void ChromeWriter::put_name(std::string_view name) {
  if (is_plain(name)) {
    put(FMT_COMPILE("{}"), name);
  } else {
    put(FMT_COMPILE("{}"), json_escaped(name));
  }
}

void ChromeWriter::put_micros(std::int64_t ns) {
  put(FMT_COMPILE("{}.{:03}"), ns / 1000, ns % 1000);
}

void ChromeWriter::describe_processes() {
  for (std::size_t process = 0; process < timeline_.processes().size(); ++process) {
    put(FMT_COMPILE(R"({}{{"ph":"M","pid":{},"name":"process_name","args":{{"name":"{}"}}}})"),
        separator_, process + 1, json_escaped(timeline_.processes()[process]));
    separator_ = ",\n";
    put(FMT_COMPILE(
            R"({}{{"ph":"M","pid":{},"name":"process_sort_index","args":{{"sort_index":{}}}}})"),
        separator_, process + 1, process);
  }
}

void ChromeWriter::describe_rows() {
  for (std::uint32_t row = 0; row < timeline_.rows().size(); ++row) {
    open_event('M', row);
    put(FMT_COMPILE(R"(,"name":"thread_name","args":{{"name":"{}"}}}})"),
        json_escaped(timeline_.rows()[row].name));
    open_event('M', row);
    put(FMT_COMPILE(R"(,"name":"thread_sort_index","args":{{"sort_index":{}}}}})"), row);
  }
}

void ChromeWriter::open_event(char phase, std::uint32_t row) {
  put(FMT_COMPILE(R"({}{{"ph":"{}",{})"), separator_, phase, rows_[row]);
}

/// Viewers bind an arrow to the slice that the latest event before it on its row left open: arrows
/// into a slice follow its event, arrows out of it precede the next one.
void ChromeWriter::write_moment(const Moment& moment) {
  if (moment.edge != Edge::end) {
    write_slice(moment.position);
    for (const auto number : graph_.arriving(moment.position)) write_arrow('f', number, moment);
  }
  if (moment.edge != Edge::begin) {
    for (const auto number : graph_.leaving(moment.position)) write_arrow('s', number, moment);
  }
}

void ChromeWriter::write_slice(std::uint32_t position) {
  const Entry& entry = recording_.entries[position];
  open_event('X', timeline_.row_of(position));
  put(FMT_COMPILE(R"(,"ts":)"));
  put_micros(timeline_.since_begin(entry.started));
  put(FMT_COMPILE(R"(,"dur":)"));
  put_micros(duration(entry));
  put(FMT_COMPILE(R"(,"cat":"{}","name":")"), kind_name(entry.kind));
  put_name(label(entry));
  put(FMT_COMPILE(R"(","args":{{"id":{},"stream":"{}","bytes":{},"status":"{}","enqueued_us":)"),
      entry.id, streams_[entry.stream], entry.bytes, status_name(entry.status));
  put_micros(timeline_.since_begin(entry.enqueued));
  put(FMT_COMPILE(R"(,"ready_us":)"));
  put_micros(timeline_.since_begin(entry.ready));
  if (const std::uint32_t width = width_of(recording_, entry); width > 1) {
    put(FMT_COMPILE(R"(,"cores":{},"place_cores":{})"), entry.cores, width);
  }
  put(FMT_COMPILE("}}}}"));
}

void ChromeWriter::write_arrow(char phase, std::uint32_t number, const Moment& moment) {
  open_event(phase, timeline_.row_of(moment.position));
  put(FMT_COMPILE(R"(,"ts":)"));
  put_micros(moment.time);
  put(FMT_COMPILE(R"(,"id":{},"cat":"dep","name":"dep"{}}})"), number + 1,
      phase == 'f' ? R"(,"bp":"e")" : "");
}

}  // namespace

void write_chrome(const Drawing& drawing, sys::FileWriter& file) {
  ChromeWriter(drawing, file).write_all();
}

}  // namespace weir::rt::trace
