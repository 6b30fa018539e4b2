#include "report/trace_file.hpp"

#include <cctype>
#include <cmath>
#include <limits>
#include <map>
#include <string_view>
#include <unordered_map>

#include "common/file.hpp"
#include "common/input_error.hpp"
#include "report/json_scanner.hpp"

namespace weir::cli::report {

namespace {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
constexpr double kLongestUs = 9e12;  ///< a hundred days: nanoseconds fit into integers

/// Numbers texts in the order in which they first come. They must outlive it.
class Numbering {
 public:
  std::uint32_t operator()(std::string_view raw) {
    const auto [found, is_new] = numbers_.try_emplace(raw, numbers_.size());
    if (is_new) texts_.push_back(unescaped(raw));
    return static_cast<std::uint32_t>(found->second);
  }
  std::vector<std::string> take() { return std::move(texts_); }

 private:
  std::unordered_map<std::string_view, std::size_t> numbers_;
  std::vector<std::string> texts_;
};

/// "sim:0/p0" of "sim:0/p0 core 3 (2)".
std::string owner_of(std::string name) {
  const std::size_t copy = name.rfind(" (");
  if (copy != std::string::npos && name.back() == ')') name.resize(copy);
  const std::size_t core = name.rfind(" core ");
  return core == std::string::npos ? name : name.substr(0, core);
}

/// One object of "traceEvents".
struct Event {
  char phase = 0;
  std::uint64_t pid = 0, tid = 0, id = 0;
  double ts = 0, dur = 0, enqueued = 0, ready = 0;
  std::uint64_t bytes = 0;
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
    const std::string name = unescaped(event.argument_name);
    TraceRow& row = trace_.rows[row_of(event.tid)];
    row = {processes_[event.pid], name, owner_of(name)};
  }

  std::uint32_t row_of(std::uint64_t tid) {
    const auto [found, is_new] = rows_.try_emplace(tid, trace_.rows.size());
    if (is_new) {
      trace_.rows.emplace_back();
      last_.push_back(kNone);
    }
    return static_cast<std::uint32_t>(found->second);
  }

  /// Arrows have small numbers.
  std::pair<std::uint32_t, std::uint32_t>& arrow(std::uint64_t id) {
    if (id >= most_arrows_) scanner_.fail("the number of an arrow before this byte");
    if (id >= arrows_.size()) arrows_.resize(id + 1, {kNone, kNone});
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
                             .kind = kind_of(event, trace_.rows[row]),
                             .failed = event.status != "ok"});
  }

  /// The direction of a transfer is in its name, unless the program gave it another; then a link
  /// with a row for each says it.
  static Kind kind_of(const Event& event, const TraceRow& row) {
    if (event.category == "compute") return Kind::compute;
    if (event.category != "transfer") return Kind::sync;
    if (event.name == "d2d") return Kind::d2d;
    if (event.name == "d2h") return Kind::d2h;
    return event.name != "h2d" && row.owner.ends_with(" out") ? Kind::d2h : Kind::h2d;
  }

  void finish() {
    trace_.streams = streams_.take();
    trace_.names = names_.take();
    for (const auto& ends : arrows_) {
      if (ends.first < ends.second && ends.second != kNone) trace_.edges.push_back(ends);
    }
  }

  JsonScanner scanner_;
  const std::string& path_;
  bool ours_ = false;
  Trace trace_;
  Numbering streams_, names_;
  std::map<std::uint64_t, std::string> processes_;
  std::unordered_map<std::uint64_t, std::size_t> rows_;  ///< by thread
  std::vector<std::uint32_t> last_;                      ///< slice of each row
  const std::size_t most_arrows_;                        ///< none takes less than a byte
  std::vector<std::pair<std::uint32_t, std::uint32_t>> arrows_;
};

}  // namespace

Trace read_trace(const std::string& path) {
  return read_trace_from(apps::MappedFile(path).bytes(), path);
}

Trace read_trace_from(std::string_view bytes, const std::string& name) {
  return Reader(bytes, name).read();
}

}  // namespace weir::cli::report
