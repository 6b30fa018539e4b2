#include "report/trace_file.hpp"

#include <cctype>
#include <cmath>
#include <map>
#include <string_view>
#include <unordered_map>

#include "common/file.hpp"
#include "common/input_error.hpp"
#include "report/json_scanner.hpp"
#include "report/trace_parts.hpp"

namespace weir::cli::report {

namespace {

constexpr double kLongestUs = 9e12;  ///< a hundred days: nanoseconds fit into integers

/// One object of "traceEvents".
struct Event {
  char phase = 0;
  std::uint64_t pid = 0, tid = 0, id = 0;
  double ts = 0, dur = 0, enqueued = 0, ready = 0;
  std::uint64_t bytes = 0, cores = 1, place_cores = 1;
  std::string_view category, name, stream, status, argument_name;
};

class Reader {
 public:
  Reader(std::string_view text, const std::string& path)
      : scanner_(text, path), path_(path), most_arrows_(text.size()) {}

  Trace read() {
    std::string_view key;
    scanner_.open_object();
    while (scanner_.next_member(key)) {
      if (key == "otherData") {
        read_origin();
      } else if (key == "traceEvents") {
        scanner_.open_array();
        while (scanner_.next_element()) add(read_event());
      } else {
        scanner_.skip();
      }
    }
    if (!ours_) apps::fail_input("{}: is not a recording of weir", path_);
    finish();
    return std::move(trace_);
  }

 private:
  void read_origin() {
    std::string_view key;
    scanner_.open_object();
    while (scanner_.next_member(key)) {
      if (key == "producer") {
        ours_ = scanner_.string() == "weir";
      } else if (key == "dropped_actions") {
        trace_.dropped = count();
      } else {
        scanner_.skip();
      }
    }
  }

  std::uint64_t count() {
    constexpr double kMost = 1.8e19;
    const double value = scanner_.number();
    if (!(value >= 0 && value < kMost)) scanner_.fail("a count");
    return static_cast<std::uint64_t>(value);
  }

  double micros() {
    const double value = scanner_.number();
    if (!(value >= 0 && value < kLongestUs)) scanner_.fail("a time in microseconds");
    return value;
  }

  Event read_event() {
    Event event;
    std::string_view key;
    scanner_.open_object();
    while (scanner_.next_member(key)) {
      if (key == "ph") {
        const std::string_view phase = scanner_.string();
        event.phase = phase.size() == 1 ? phase[0] : '?';
      } else if (key == "pid") {
        event.pid = count();
      } else if (key == "tid") {
        event.tid = count();
      } else if (key == "id") {
        event.id = count();
      } else if (key == "ts") {
        event.ts = micros();
      } else if (key == "dur") {
        event.dur = micros();
      } else if (key == "cat") {
        event.category = scanner_.string();
      } else if (key == "name") {
        event.name = scanner_.string();
      } else if (key == "args") {
        read_arguments(event);
      } else {
        scanner_.skip();
      }
    }
    return event;
  }

  void read_arguments(Event& event) {
    std::string_view key;
    scanner_.open_object();
    while (scanner_.next_member(key)) {
      if (key == "name") {
        event.argument_name = scanner_.string();
      } else if (key == "stream") {
        event.stream = scanner_.string();
      } else if (key == "status") {
        event.status = scanner_.string();
      } else if (key == "bytes") {
        event.bytes = count();
      } else if (key == "enqueued_us") {
        event.enqueued = micros();
      } else if (key == "ready_us") {
        event.ready = micros();
      } else if (key == "cores") {
        event.cores = count();
      } else if (key == "place_cores") {
        event.place_cores = count();
      } else {
        scanner_.skip();
      }
    }
  }

  void add(const Event& event) {
    switch (event.phase) {
      case 'M': add_name(event); break;
      case 'X': add_slice(event); break;
      case 's': arrow(event.id).first = last_on(event); break;
      case 'f': arrow(event.id).second = last_on(event); break;
      default: break;
    }
  }

  void add_name(const Event& event) {
    if (event.name == "process_name") processes_[event.pid] = unescaped(event.argument_name);
    if (event.name != "thread_name") return;
    trace_.rows[row_of(event.tid)] =
        row_named(processes_[event.pid], unescaped(event.argument_name));
  }

  std::uint32_t row_of(std::uint64_t tid) {
    const auto [found, is_new] = rows_.try_emplace(tid, trace_.rows.size());
    if (is_new) {
      trace_.rows.emplace_back();
      last_.push_back(Arrows::kNone);
    }
    return static_cast<std::uint32_t>(found->second);
  }

  /// Arrows have small numbers.
  Arrows::Ends& arrow(std::uint64_t id) {
    if (id >= most_arrows_) scanner_.fail("the number of an arrow before this byte");
    return arrows_[id];
  }

  std::uint32_t last_on(const Event& event) { return last_[row_of(event.tid)]; }

  static std::int64_t nanoseconds(double micros) { return std::llround(micros * 1e3); }

  void add_slice(const Event& event) {
    const std::uint32_t row = row_of(event.tid);
    last_[row] = static_cast<std::uint32_t>(trace_.slices.size());
    trace_.slices.push_back({.started = nanoseconds(event.ts),
                             .duration = nanoseconds(event.dur),
                             .enqueued = nanoseconds(event.enqueued),
                             .ready = nanoseconds(event.ready),
                             .bytes = event.bytes,
                             .row = row,
                             .stream = streams_(event.stream),
                             .name = names_(event.name),
                             .cores = cores_of(event.cores),
                             .place_cores = cores_of(event.place_cores),
                             .kind = kind_of(event.category, event.name, trace_.rows[row]),
                             .failed = event.status != "ok"});
  }

  void finish() {
    trace_.streams = streams_.take();
    trace_.names = names_.take();
    trace_.edges = arrows_.take();
  }

  JsonScanner scanner_;
  const std::string& path_;
  bool ours_ = false;
  Trace trace_;
  Numbering streams_{unescaped}, names_{unescaped};
  std::map<std::uint64_t, std::string> processes_;
  std::unordered_map<std::uint64_t, std::size_t> rows_;  ///< by thread
  std::vector<std::uint32_t> last_;                      ///< slice of each row
  const std::size_t most_arrows_;                        ///< none takes less than a byte
  Arrows arrows_;
};

}  // namespace

Trace read_trace(const std::string& path) {
  return read_trace_from(apps::MappedFile(path).bytes(), path);
}

Trace read_trace_from(std::string_view bytes, const std::string& name) {
  return is_perfetto(bytes) ? read_perfetto(bytes, name) : Reader(bytes, name).read();
}

}  // namespace weir::cli::report
